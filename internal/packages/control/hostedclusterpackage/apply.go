package hostedclusterpackage

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/packages/control/rollout"
)

// Apply implements rollout.Fleet.
func (f *fleet) Apply(ctx context.Context, changes []rollout.Change) []error {
	return atOnce(len(changes), func(i int) error {
		err := f.apply(ctx, changes[i])
		if err == nil {
			f.refusals.forget(changes[i].Namespace)
		} else if ctx.Err() == nil {
			f.refusals.put(changes[i].Namespace, f.view.hash, f.generation(ctx, changes[i].Namespace), err, f.clock.Now())
		}
		return err
	})
}

// generation of the Package in a namespace as a cache has it; 0 when there is none.
func (f *fleet) generation(ctx context.Context, namespace string) int64 {
	p := &packagesv1.Package{}
	if err := f.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: f.owner.Name}, p); err != nil {
		return 0 // it is tried again as soon as there is one
	}
	return p.Generation
}

// apply sends what the template says and nothing else, and takes nothing from other field managers.
func (f *fleet) apply(ctx context.Context, c rollout.Change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	obj, err := f.desired(c)
	if err != nil {
		return err
	}
	// One that gets no answer may land all the same.
	f.applied.forget(c.Namespace)
	write := func(u *unstructured.Unstructured) error {
		return f.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), FieldOwner)
	}
	if err := apply.InTwoParts(obj, write, nil); err != nil {
		return fmt.Errorf("applying package %s/%s of hosted cluster %s: %w", c.Namespace, f.owner.Name, c.Cluster, err)
	}
	f.applied.put(c.Namespace, generation{obj.GetUID(), obj.GetGeneration(), obj.GetResourceVersion(), appliedAt(obj)})
	return nil
}

func (f *fleet) desired(c rollout.Change) (*unstructured.Unstructured, error) {
	t, annotations := f.view.newest, map[string]string{}
	if c.Version == rollout.LastGood {
		t = f.good
		annotations[packagesv1.RolloutReturnedAnnotation] = f.view.hash
	}
	if c.Environment != "" {
		annotations[packagesv1.RolloutEnvironmentAnnotation] = c.Environment
	}
	for k, v := range t.Annotations {
		annotations[k] = v
	}
	data, err := json.Marshal(t.Spec)
	if err != nil {
		return nil, fmt.Errorf("encoding spec.template.spec: %w", err)
	}
	var spec map[string]any
	if err := json.Unmarshal(data, &spec); err != nil {
		return nil, fmt.Errorf("decoding spec.template.spec: %w", err)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	obj.SetGroupVersionKind(packagesv1.GroupVersion.WithKind("Package"))
	obj.SetNamespace(c.Namespace)
	obj.SetName(f.owner.Name)
	if len(t.Labels) > 0 {
		obj.SetLabels(t.Labels)
	}
	if len(annotations) > 0 {
		obj.SetAnnotations(annotations)
	}
	obj.SetOwnerReferences([]metav1.OwnerReference{ownerReference(f.owner)})
	return obj, nil
}

func ownerReference(owner *packagesv1.HostedClusterPackage) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: packagesv1.GroupVersion.String(), Kind: "HostedClusterPackage", Name: owner.Name, UID: owner.UID,
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}
}

// Delete implements rollout.Fleet.
func (f *fleet) Delete(ctx context.Context, p rollout.Package) error {
	if matched, err := f.isMatched(ctx, p.Namespace); err != nil || matched {
		return err // a cache did not know yet
	}
	obj := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: f.owner.Name}}
	err := f.client.Delete(ctx, obj, client.Preconditions{UID: &p.UID})
	if apierrors.IsConflict(err) {
		return nil // it is another one by now, and the next pass looks at that
	}
	return ignoreNotFound(err)
}
