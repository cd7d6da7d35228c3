package ignition

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/ignition/payload"
	"hcp.internal/platform/internal/ignition/tokens"
	"hcp.internal/platform/internal/release"
)

// lookupTimeout of the inputs, of which the release may come from a registry far away.
const lookupTimeout = time.Minute

// Reconciler makes the payloads of token Secrets and keeps their tokens.
//
// It is the only writer of their keys token (after the first), old_token, payload, last-payload, reason and message, and of the annotations that say
// when the token was made and that a machine came. It deletes them when they say that their time has come.
type Reconciler struct {
	Client    client.Client // writes
	Live      client.Reader // uncached: no Secret is cached
	Namespace string
	Clock     clock.PassiveClock
	Tokens    *tokens.Store
	Releases  release.Provider
	// Listed says whether this process may read a token Secret; nil: it may read all.
	Listed func(name string) bool
	// NewToken makes a token that nobody can guess.
	NewToken func() string
	// Kubernetes and OpenShift make payloads of the two kinds of release.
	Kubernetes, OpenShift payload.Generator
	// FeatureGates is the file with the FeatureGate that a user wants; for OpenShift releases.
	FeatureGates string
	// Metrics may be nil.
	Metrics *Metrics

	payloads payloadCache
}

// Reconcile does one pass over a Secret.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if r.Listed != nil && !r.Listed(req.Name) {
		r.forget(req.Name)
		return ctrl.Result{}, nil
	}
	secret := &corev1.Secret{}
	err := r.Live.Get(ctx, req.NamespacedName, secret)
	gone := apierrors.IsNotFound(err)
	if err != nil && !gone {
		return ctrl.Result{}, fmt.Errorf("reading secret %s: %w", req, err)
	}
	if gone || !isToken(secret) || !secret.DeletionTimestamp.IsZero() {
		r.forget(req.Name)
		return ctrl.Result{}, nil
	}
	obs := Observed{Secret: secret}
	if expires, ends := expiration(secret); !ends || r.Clock.Now().Before(expires) {
		obs.Data, obs.Err = r.payload(ctx, secret)
	}
	plan := planFor(obs, r.Clock.Now(), r.NewToken)
	if plan.Delete {
		r.forget(secret.Name)
		return ctrl.Result{}, r.remove(ctx, secret)
	}
	if err := r.store(ctx, obs, plan); err != nil {
		if apierrors.IsNotFound(err) {
			return ctrl.Result{RequeueAfter: time.Second}, nil // the NodePool controller was faster
		}
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: plan.RecheckAfter}, nil
}

func isToken(obj metav1.Object) bool {
	return obj.GetAnnotations()[hyperv1.TokenSecretAnnotation] == "true"
}

func (r *Reconciler) forget(name string) {
	r.Tokens.Delete(name)
	r.payloads.forget(name)
}

// remove deletes what was read, not what may have been made under the same name since.
func (r *Reconciler) remove(ctx context.Context, secret *corev1.Secret) error {
	err := r.Client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion})
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting secret %s, which has expired: %w", secret.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("deleted expired token", "secret", secret.Name)
	return nil
}

// store writes the Secret and makes its tokens known. A new token is known before it can be read, so that no machine is faster; should
// the write fail, it is forgotten again.
func (r *Reconciler) store(ctx context.Context, obs Observed, plan Plan) error {
	secret := obs.Secret
	serve := func(list []tokens.Token) {
		data := obs.Data
		if obs.Err != nil {
			// The last payload stays: what cannot be made now may be a registry that is down. Its tokens are kept as they are.
			if last := r.Tokens.Payload(secret.Name); last != nil && !invalid(obs.Err) {
				r.Tokens.Set(last, list...)
				return
			}
			if data = lastGood(secret); data == nil || invalid(obs.Err) {
				r.Tokens.Delete(secret.Name)
				return
			}
		}
		p := &tokens.Payload{Secret: secret.Name, NodePool: secret.Annotations[hyperv1.NodePoolAnnotation], Data: data}
		p.Invalid = payload.Check(data) != nil
		r.Tokens.Set(p, list...)
	}
	serve(plan.Tokens)
	if plan.Changed == nil {
		return nil
	}
	patch := client.MergeFromWithOptions(secret, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, plan.Changed, patch, client.FieldOwner(names.IgnitionServer)); err != nil {
		if plan.Rotated {
			serve(plan.Before)
		}
		return fmt.Errorf("updating secret %s: %w", secret.Name, err)
	}
	log := ctrl.LoggerFrom(ctx)
	if plan.Rotated {
		r.Metrics.rotated()
		log.Info("rotated token", "secret", secret.Name)
	}
	if reason := string(plan.Changed.Data[token.ReasonKey]); reason != string(secret.Data[token.ReasonKey]) {
		log.Info("reported payload", "secret", secret.Name, "reason", reason)
	}
	return nil
}

func invalid(err error) bool {
	var i *payload.InvalidError
	return errors.As(err, &i)
}

// payload makes the payload, or takes the one that was made of the same inputs.
func (r *Reconciler) payload(ctx context.Context, secret *corev1.Secret) ([]byte, error) {
	lookup, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	in, kubernetes, err := r.inputs(lookup, secret)
	if err != nil {
		return nil, err
	}
	generator := r.OpenShift
	if kubernetes {
		generator = r.Kubernetes
	}
	key := in.Key()
	if data, ok := r.payloads.get(secret.Name, key); ok {
		r.Metrics.hit()
		return data, nil
	}
	r.Metrics.missed()
	start := r.Clock.Now()
	data, err := generator.Generate(ctx, in) // which bounds itself: what takes a moment for one release takes minutes for another
	if !kubernetes {
		if err := r.reportRelease(ctx, err); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	r.Metrics.generated(r.Clock.Since(start))
	r.payloads.put(secret.Name, key, data)
	return data, nil
}

// payloadCache holds the payload of each token Secret with the key of its inputs.
type payloadCache struct {
	mu   sync.Mutex
	made map[string]made
}

type made struct {
	key  string
	data []byte
}

func (c *payloadCache) get(secret, key string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.made[secret]
	return m.data, ok && m.key == key
}

func (c *payloadCache) put(secret, key string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made = map[string]made{}
	}
	c.made[secret] = made{key: key, data: data}
}

func (c *payloadCache) forget(secret string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.made, secret)
}
