package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/hostedcluster/capi"
	"hcp.internal/platform/internal/hostedcluster/sources"
	"hcp.internal/platform/internal/kube/apply"
)

// stamper marks everything that is created or applied for one HostedCluster with the reference back to it, by which events find it, and with
// the label that lets it into our cache.
type stamper struct {
	client.Client
	reference string
}

func (s stamper) stamp(obj any) {
	o, ok := obj.(metav1.Object)
	if !ok {
		return
	}
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[names.OwnedByLabel] = names.HypershiftOperator
	annotations[hyperv1.HostedClusterAnnotation] = s.reference
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
}

// Apply implements client.Client.
func (s stamper) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	s.stamp(obj)
	return s.Client.Apply(ctx, obj, opts...)
}

// Create implements client.Client.
func (s stamper) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	s.stamp(obj)
	return s.Client.Create(ctx, obj, opts...)
}

// Writer carries out steps for one HostedCluster.
type Writer struct {
	client  client.Client
	applier *apply.Applier
	plain   client.Client // leaves no reference
	hc      *hyperv1.HostedCluster
	clock   clock.PassiveClock
}

// NewWriter makes the writer for hc.
func NewWriter(c client.Client, hc *hyperv1.HostedCluster, clk clock.PassiveClock) *Writer {
	stamped := stamper{c, names.BackReference(hc)}
	return &Writer{client: stamped, applier: apply.New(stamped, names.HypershiftOperator), plain: c, hc: hc, clock: clk}
}

// execute does everything that the step asks for, whatever fails on the way; only its components come after all else has been done.
func (w *Writer) execute(ctx context.Context, s Step) error {
	if s.Create != nil {
		if err := w.client.Create(ctx, s.Create); err != nil {
			// Also when it exists: the next pass sees whose it is.
			return fmt.Errorf("creating Namespace %s: %w", s.Create.Name, err)
		}
	}
	errs := []error{apply.New(w.plain, names.HypershiftOperator).All(ctx, s.Shared...)}
	for _, obj := range s.Apply {
		errs = append(errs, w.apply(ctx, obj))
	}
	for _, obj := range s.Delete {
		errs = append(errs, w.applier.Delete(ctx, obj))
	}
	for _, key := range s.Mark {
		errs = append(errs, sources.Mark(ctx, w.client, w.hc, key))
	}
	if s.Initialized != nil {
		errs = append(errs, capi.MarkInitialized(ctx, w.client, s.Initialized, w.clock.Now()))
	}
	if s.Ready != nil {
		errs = append(errs, w.makeReady(ctx, *s.Ready))
	}
	for _, secret := range s.Own {
		errs = append(errs, sources.AddOwner(ctx, w.plain, w.hc, secret))
	}
	if s.Certificate != nil {
		errs = append(errs, w.makeCertificate(ctx, *s.Certificate))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return w.deploy(ctx, s.Deploy)
}

// apply applies an object. A copy of the user's object that can't follow its source any more is made anew: it has no other state, and until then the control plane
// would go on with what the source held before.
func (w *Writer) apply(ctx context.Context, obj client.Object) error {
	err := w.applier.Apply(ctx, obj)
	if !apierrors.IsInvalid(err) {
		return err
	}
	live, ok := obj.DeepCopyObject().(client.Object)
	if !ok || w.client.Get(ctx, client.ObjectKeyFromObject(obj), live) != nil || !sources.Stuck(live, obj, w.hc) {
		return err
	}
	if err := w.applier.Delete(ctx, live); err != nil {
		return err
	}
	return w.applier.Apply(ctx, obj)
}

// makeReady brings the status of an infrastructure object up to what it is to hold, and writes nothing when it does.
func (w *Writer) makeReady(ctx context.Context, want Readiness) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.Infra.GetObjectKind().GroupVersionKind())
	key := client.ObjectKeyFromObject(want.Infra)
	if err := w.client.Get(ctx, key, live); err != nil {
		return client.IgnoreNotFound(err) // it has not been made: the step says why
	}
	have, _, _ := unstructured.NestedMap(live.Object, "status")
	if apply.Contains(have, want.Status, func(string) bool { return false }) {
		return nil
	}
	body, err := json.Marshal(map[string]any{"status": want.Status})
	if err != nil {
		return fmt.Errorf("encoding the status of %s %s: %w", live.GetKind(), key, err)
	}
	apply.Count(live.GetKind(), "patch", names.HypershiftOperator)
	if err := w.client.Status().Patch(ctx, live, client.RawPatch(types.MergePatchType, body), client.FieldOwner(names.HypershiftOperator)); err != nil {
		return fmt.Errorf("saying that %s %s is ready: %w", live.GetKind(), key, err)
	}
	return nil
}

// deploy plans the components and carries the plans out, one after the other.
func (w *Writer) deploy(ctx context.Context, d Deployment) error {
	d.Context.Context, d.Context.Trouble = ctx, d.trouble
	executor := component.Executor{Client: w.client, Apply: w.applier, Clock: w.clock}
	for _, c := range d.Components() {
		if err := executor.Reconcile(d.Context, c); err != nil {
			return err
		}
	}
	return nil
}

// makeCertificate makes the Secret once. It is created and not applied: a second certificate would be no better.
func (w *Writer) makeCertificate(ctx context.Context, c ServingCertificate) error {
	err := w.client.Get(ctx, c.Secret, &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	cert, key, err := selfSigned(c.Host, w.clock.Now())
	if err != nil {
		return fmt.Errorf("making the certificate of Secret %s: %w", c.Secret, err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Secret.Namespace, Name: c.Secret.Name},
		Type:       c.Kind,
		Data:       map[string][]byte{corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key},
	}
	if err := w.client.Create(ctx, secret, client.FieldOwner(names.HypershiftOperator)); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating Secret %s: %w", c.Secret, err)
	}
	return nil
}
