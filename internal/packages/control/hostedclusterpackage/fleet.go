package hostedclusterpackage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/packages/control/rollout"
)

var (
	namespaceKind   = corev1.SchemeGroupVersion.WithKind("Namespace")
	hostedListKind  = hyperv1.GroupVersion.WithKind("HostedClusterList")
	errNotTheNewest = fmt.Errorf("the HostedClusterPackage was changed meanwhile: %w", outcome.ErrStale)
)

// parallel is how many Packages are read or written at the same time, so that a wave does not wait for answers one after the other.
const parallel = 16

// fleet is the rollout.Fleet of one pass.
type fleet struct {
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
	// owner as observed; Record brings it up to date.
	owner *packagesv1.HostedClusterPackage
	view  view
	// good is what is applied where the newest is taken back.
	good template
	// applied is what is known of Packages that were changed.
	applied *applied
	// refusals are what could not be written a moment ago.
	refusals *refusals
	// matching are the control-plane namespaces of clusters that the selector matches, read when first asked for.
	matching map[string]bool
}

// Look implements rollout.Fleet.
func (f *fleet) Look(ctx context.Context, namespaces []string) (map[string]rollout.Package, error) {
	found := make([]*packagesv1.Package, len(namespaces))
	err := errors.Join(atOnce(len(namespaces), func(i int) error {
		p := &packagesv1.Package{}
		err := f.live.Get(ctx, types.NamespacedName{Namespace: namespaces[i], Name: f.owner.Name}, p)
		if err != nil {
			if ignoreNotFound(err) == nil {
				return nil
			}
			return fmt.Errorf("reading package %s/%s: %w", namespaces[i], f.owner.Name, err)
		}
		found[i] = p
		return nil
	})...)
	out := map[string]rollout.Package{}
	for _, p := range found {
		if p != nil {
			out[p.Namespace] = f.view.packageOf(p)
		}
	}
	return out, err
}

// atOnce runs do for the numbers below n, some at the same time. A failure of one keeps no other from being tried; there is an error, or nil, for each.
func atOnce(n int, do func(i int) error) []error {
	errs := make([]error, n)
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range n {
		group.Go(func() error {
			errs[i] = do(i)
			return nil // that of one stops nobody
		})
	}
	_ = group.Wait() // always nil
	return errs
}

// Record implements rollout.Fleet.
func (f *fleet) Record(ctx context.Context, status packagesv1.HostedClusterPackageStatus) error {
	if !slices.Equal(status.Processing, f.owner.Status.Processing) {
		before := f.owner.ResourceVersion
		after := f.owner.DeepCopy()
		if f.owner.Status.ObservedGeneration == status.ObservedGeneration {
			// One write instead of two. That a generation was observed is only told once a pass over it came through.
			f.fill(after, status)
		}
		after.Status.Processing = status.Processing
		if err := f.write(ctx, after); err != nil {
			return err
		}
		if f.owner.ResourceVersion == before {
			return errNotTheNewest // it is gone, which is no error of a patch
		}
		return nil
	}
	live := &packagesv1.HostedClusterPackage{}
	if err := f.live.Get(ctx, client.ObjectKeyFromObject(f.owner), live); err != nil {
		return err
	}
	if live.UID != f.owner.UID || live.Generation != f.owner.Generation || !live.DeletionTimestamp.IsZero() ||
		!slices.Equal(live.Status.Processing, f.owner.Status.Processing) {
		return errNotTheNewest
	}
	return nil
}

func (f *fleet) write(ctx context.Context, after *packagesv1.HostedClusterPackage) error {
	if err := patch.Status(ctx, f.client, f.owner, after); err != nil {
		if apierrors.IsConflict(err) {
			return errNotTheNewest
		}
		return err
	}
	f.owner = after
	return nil
}

// Report implements rollout.Fleet.
func (f *fleet) Report(ctx context.Context, status packagesv1.HostedClusterPackageStatus) error {
	after := f.owner.DeepCopy()
	f.fill(after, status)
	return f.write(ctx, after)
}

// published are the conditions that are always there.
var published = []string{packagesv1.ConditionAvailable, packagesv1.ConditionProgressing, packagesv1.ConditionHasPausedPackage}

func (f *fleet) fill(after *packagesv1.HostedClusterPackage, status packagesv1.HostedClusterPackageStatus) {
	have := after.Status.Conditions
	if len(status.Conditions) == len(published) {
		conditions.Remove(&have, packagesv1.ConditionRemovalHeld)
	}
	conditions.Set(&have, f.clock.Now(), status.Conditions...)
	status.Conditions = have
	after.Status = status
}

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
	if err := f.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), FieldOwner); err != nil {
		return fmt.Errorf("applying package %s/%s of hosted cluster %s: %w", c.Namespace, f.owner.Name, c.Cluster, err)
	}
	f.applied.put(c.Namespace, generation{obj.GetUID(), obj.GetGeneration(), appliedAt(obj)})
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
	if f.matching == nil {
		if err := f.lookForClusters(ctx); err != nil {
			return err
		}
	}
	if f.matching[p.Namespace] {
		return nil // a cache did not know yet
	}
	obj := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: f.owner.Name}}
	err := f.client.Delete(ctx, obj, client.Preconditions{UID: &p.UID})
	if apierrors.IsConflict(err) {
		return nil // it is another one by now, and the next pass looks at that
	}
	return ignoreNotFound(err)
}

func (f *fleet) lookForClusters(ctx context.Context) error {
	selector, err := selectorOf(f.owner)
	if err != nil {
		return err
	}
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(hostedListKind)
	if err := f.live.List(ctx, &list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("listing hosted clusters: %w", err)
	}
	f.matching = map[string]bool{}
	for i := range list.Items {
		f.matching[names.ControlPlaneNamespace(list.Items[i].Namespace, list.Items[i].Name)] = true
	}
	return nil
}
