package hostedcluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
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

// writer carries out steps for one HostedCluster.
type writer struct {
	client  client.Client
	applier *apply.Applier
	hc      *hyperv1.HostedCluster
	now     time.Time
}

func newWriter(c client.Client, hc *hyperv1.HostedCluster, now time.Time) *writer {
	stamped := stamper{c, backReference(hc)}
	return &writer{client: stamped, applier: apply.New(stamped, names.HypershiftOperator), hc: hc, now: now}
}

// execute does everything that the step asks for, whatever fails on the way.
func (w *writer) execute(ctx context.Context, s step) error {
	if s.create != nil {
		if err := w.client.Create(ctx, s.create); err != nil {
			// Also when it exists: the next pass sees whose it is.
			return fmt.Errorf("creating Namespace %s: %w", s.create.Name, err)
		}
	}
	errs := []error{w.applier.All(ctx, s.apply...)}
	for _, obj := range s.delete {
		errs = append(errs, w.applier.Delete(ctx, obj))
	}
	for _, key := range s.mark {
		errs = append(errs, w.annotate(ctx, key, `"true"`))
	}
	for _, key := range s.unmark {
		errs = append(errs, w.annotate(ctx, key, "null"))
	}
	if s.initialized != nil {
		errs = append(errs, markInitialized(ctx, w.client, s.initialized, w.now))
	}
	if s.run != nil {
		errs = append(errs, s.run(ctx))
	}
	return errors.Join(errs...)
}

// annotate sets our reference on a source object. It is a merge patch of this one key, because several HostedClusters annotate the same
// object as the same field owner: with server-side apply, each would take the others' annotation away.
func (w *writer) annotate(ctx context.Context, key sourceKey, value string) error {
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: w.hc.Namespace, Name: key.name}}
	obj.SetGroupVersionKind(key.kind.gvk())
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, referencedBy(w.hc.Name), value)
	err := w.client.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", body))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("annotating %s %s/%s: %w", key.kind, w.hc.Namespace, key.name, err)
	}
	return nil
}

func (k kind) gvk() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind(string(k)) }
