package pkioperator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/events"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/kube/skew"
	"hcp.internal/platform/internal/pki"
)

// config is what all controllers here share.
type config struct {
	// client reads and writes without a cache: passes are rare, and a stale read could replace an authority that was just made.
	client    client.Client
	clock     clock.PassiveClock
	keys      pki.KeySource
	rand      io.Reader
	namespace string
	hcp       string          // name of the HostedControlPlane
	day       time.Duration   // what counts as a day; shorter in tests
	events    events.Recorder // nil: nobody is told
	clocks    *skew.Watch     // nil: the clock is right
}

func (c config) source() source { return source{now: c.clock.Now(), keys: c.keys, rand: c.rand} }

// resync is how long it takes at most to notice what no event tells of.
const resync = time.Hour

// rotation keeps authorities, bundles and client certificates, and the merged bundle.
type rotation struct{ config }

// Reconcile makes one pass for the HostedControlPlane.
func (r *rotation) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	hcp, err := read(ctx, r.client, r.namespace, r.hcp, &hyperv1.HostedControlPlane{})
	if err != nil || hcp == nil || !hcp.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, err
	}
	var conds []metav1.Condition
	var errs []error
	next, now := r.clock.Now().Add(resync), r.clock.Now()
	for _, s := range signers {
		due, err := r.rotate(ctx, hcp, s)
		if err == nil {
			next = earlier(next, due)
		}
		conds, errs = append(conds, degraded(s.condition, err)), append(errs, err)
	}
	err = r.merge(ctx, hcp)
	conds, errs = append(conds, degraded(targetConfigCondition, err)), append(errs, err)
	if err := errors.Join(errs...); outcome.IsConflict(err) {
		return ctrl.Result{}, err // which is no news for a condition
	}
	before := hcp.DeepCopy()
	for i := range conds {
		conds[i].ObservedGeneration = hcp.Generation
	}
	conditions.Set(&hcp.Status.Conditions, now, conds...)
	errs = append(errs, patch.Status(ctx, r.client, before, hcp))
	if err := errors.Join(errs...); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: max(next.Sub(now), time.Second)}, nil
}

// degraded is a condition about an error, in words that hold no content of Secrets.
func degraded(kind string, err error) metav1.Condition {
	if err != nil {
		return conditions.True(kind, rotationErrorReason, err.Error())
	}
	return conditions.False(kind, hyperv1.AsExpectedReason, "")
}

// maxWrites of one pass for a signer: authority, bundle, client certificate.
const maxWrites = 3

func (r *rotation) rotate(ctx context.Context, hcp *hyperv1.HostedControlPlane, s signer) (time.Time, error) {
	obs, err := r.observe(ctx, hcp, s)
	if err != nil {
		return time.Time{}, err
	}
	for range maxWrites + 1 {
		write, due, err := rotate(s, obs, r.day, r.source())
		if err != nil || write == nil {
			return due, err
		}
		if err := r.clocks.Err(); err != nil {
			return due, fmt.Errorf("no certificates are issued: %w", err)
		}
		if err := r.store(ctx, write); err != nil {
			return due, err
		}
		switch obj := write.(type) {
		case *corev1.ConfigMap:
			obs.bundle = obj
		case *corev1.Secret:
			if obj.Name == s.secret {
				obs.secret = obj
			} else {
				obs.client = obj
			}
		}
	}
	return time.Time{}, fmt.Errorf("rotating the certificates of signer %s: they do not come to rest", s.class)
}

func (r *rotation) observe(ctx context.Context, hcp *hyperv1.HostedControlPlane, s signer) (observedSigner, error) {
	obs := observedSigner{namespace: r.namespace, owner: *metav1.NewControllerRef(hcp, hyperv1.GroupVersion.WithKind("HostedControlPlane"))}
	var err1, err2, err3 error
	obs.secret, err1 = read(ctx, r.client, r.namespace, s.secret, &corev1.Secret{})
	obs.bundle, err2 = read(ctx, r.client, r.namespace, s.bundle, &corev1.ConfigMap{})
	obs.client, err3 = read(ctx, r.client, r.namespace, s.client, &corev1.Secret{})
	return obs, errors.Join(err1, err2, err3)
}

// merge writes what the control-plane-operator gives kube-apiserver to trust.
func (r *rotation) merge(ctx context.Context, hcp *hyperv1.HostedControlPlane) error {
	total := ""
	for _, s := range signers {
		bundle, err := read(ctx, r.client, r.namespace, s.bundle, &corev1.ConfigMap{})
		if err != nil {
			return err
		}
		total += encodeBundle(parseBundle(bundle, names.CABundleKey))
	}
	live, err := read(ctx, r.client, r.namespace, pki.TotalClientCABundle, &corev1.ConfigMap{})
	if err != nil || live != nil && live.Data[names.CABundleKey] == total {
		return err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: pki.TotalClientCABundle}}
	if live != nil {
		cm = live
	}
	cm.Data = map[string]string{names.CABundleKey: total}
	own(&cm.ObjectMeta, *metav1.NewControllerRef(hcp, hyperv1.GroupVersion.WithKind("HostedControlPlane")))
	return r.store(ctx, cm)
}

// store creates what was not there and updates what was, with the resourceVersion of that.
func (c config) store(ctx context.Context, obj client.Object) error {
	kind, verb := fmt.Sprintf("%T", obj), "update"
	switch obj.(type) {
	case *corev1.Secret:
		kind = "Secret"
	case *corev1.ConfigMap:
		kind = "ConfigMap"
	}
	var err error
	if obj.GetResourceVersion() == "" {
		verb = "create"
		err = c.client.Create(ctx, obj, client.FieldOwner(names.PKIOperator))
	} else {
		err = c.client.Update(ctx, obj, client.FieldOwner(names.PKIOperator))
	}
	apply.Count(kind, verb, names.PKIOperator)
	if apierrors.IsAlreadyExists(err) {
		err = apierrors.NewConflict(corev1.Resource(kind), obj.GetName(), err)
	}
	if err != nil {
		return fmt.Errorf("writing %s %s: %w", kind, obj.GetName(), err)
	}
	ctrl.LoggerFrom(ctx).Info("wrote", "kind", kind, "name", obj.GetName())
	return nil
}

// read gives nil for what does not exist.
func read[T client.Object](ctx context.Context, reader client.Reader, namespace, name string, into T) (T, error) {
	var none T
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("reading %T %s: %w", into, name, err)
	}
	return into, nil
}
