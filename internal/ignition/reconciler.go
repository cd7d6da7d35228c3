package ignition

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/ignition/payload"
	"hcp.internal/platform/internal/ignition/tokens"
	"hcp.internal/platform/internal/release"
)

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
