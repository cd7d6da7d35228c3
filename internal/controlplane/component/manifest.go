package component

import (
	"fmt"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// ManifestOption changes how a file beside the workload is treated.
type ManifestOption func(*manifestAdapter)

type manifestAdapter struct {
	adapts            []func(WorkloadContext, client.Object) error
	predicates        []Predicate
	reconcileExisting bool
	skip              bool
	skipWhen          []Predicate
	locked            bool
	name              func(*hyperv1.HostedControlPlane) string
}

// nameOf is the name of a manifest for a control plane.
func (a *manifestAdapter) nameOf(hcp *hyperv1.HostedControlPlane, m asset) string {
	if a != nil && a.name != nil {
		if name := a.name(hcp); name != "" {
			return name
		}
	}
	return m.object.GetName()
}

// wanted says whether the manifest exists for this control plane.
func (a *manifestAdapter) wanted(ctx WorkloadContext) (bool, error) {
	if a == nil {
		return true, nil
	}
	for _, p := range a.predicates {
		if ok, err := p(ctx); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// AdaptManifest changes the manifest after it was loaded. T is its Go type.
func AdaptManifest[T client.Object](adapt func(WorkloadContext, T) error) ManifestOption {
	return func(a *manifestAdapter) {
		a.adapts = append(a.adapts, func(ctx WorkloadContext, obj client.Object) error {
			typed, ok := obj.(T)
			if !ok {
				return fmt.Errorf("adapting %s: it is a %T", obj.GetName(), obj)
			}
			return adapt(ctx, typed)
		})
	}
}

// When says when the manifest exists. Where it does not, a manifest of ours that is there is deleted. All predicates of a
// manifest must hold.
func When(p Predicate) ManifestOption {
	return func(a *manifestAdapter) { a.predicates = append(a.predicates, p) }
}

// ReconcileExisting starts from the live object, when there is one, instead of from the file: for what is generated once.
func ReconcileExisting() ManifestOption {
	return func(a *manifestAdapter) { a.reconcileExisting = true }
}

// Locked writes the manifest only when the live object is the one that the adapt function decided from: the function sets the
// resourceVersion of what it read, and none when nothing was there. For what must not be lost to a stale read.
func Locked() ManifestOption {
	return func(a *manifestAdapter) { a.locked = true }
}

// Named gives the manifest another name than its file does; an empty one stands for the file's.
func Named(name func(*hyperv1.HostedControlPlane) string) ManifestOption {
	return func(a *manifestAdapter) { a.name = name }
}

// SkipManifest neither creates nor deletes the manifest: another writer does.
func SkipManifest() ManifestOption {
	return func(a *manifestAdapter) { a.skip = true }
}

// SkipWhen is SkipManifest while p holds.
func SkipWhen(p Predicate) ManifestOption {
	return func(a *manifestAdapter) { a.skipWhen = append(a.skipWhen, p) }
}

// skipped says whether the manifest is another writer's.
func (a *manifestAdapter) skipped(ctx WorkloadContext) (bool, error) {
	if a == nil || a.skip {
		return a != nil, nil
	}
	for _, p := range a.skipWhen {
		if yes, err := p(ctx); yes || err != nil {
			return yes, err
		}
	}
	return false, nil
}

// SetHostedClusterAnnotation puts the reference to the HostedCluster on the manifest.
func SetHostedClusterAnnotation() ManifestOption {
	return AdaptManifest(func(ctx WorkloadContext, obj client.Object) error {
		annotations := obj.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[hostedClusterAnnotation] = ctx.HCP.Annotations[hostedClusterAnnotation]
		obj.SetAnnotations(annotations)
		return nil
	})
}

// DisableIfAnnotationExist drops the manifest from control planes with the annotation.
func DisableIfAnnotationExist(annotation string) ManifestOption {
	return When(func(ctx WorkloadContext) (bool, error) {
		_, found := ctx.HCP.Annotations[annotation]
		return !found, nil
	})
}

// EnableForPlatform keeps the manifest on these platforms only.
func EnableForPlatform(platforms ...hyperv1.PlatformType) ManifestOption {
	return When(func(ctx WorkloadContext) (bool, error) {
		return slices.Contains(platforms, ctx.HCP.Spec.Platform.Type), nil
	})
}

// AdaptPodDisruptionBudget sets how many pods may be evicted: one at a time in a highly available control plane, none in one
// with single replicas, where a person has to decide.
func AdaptPodDisruptionBudget() ManifestOption {
	return AdaptPodDisruptionBudgetOf(WorkloadContext.HighlyAvailable)
}

// AdaptPodDisruptionBudgetOf is AdaptPodDisruptionBudget for a component that is not as available as its control plane: survives
// says whether it stands the loss of one pod.
func AdaptPodDisruptionBudgetOf(survives func(WorkloadContext) bool) ManifestOption {
	return AdaptManifest(func(ctx WorkloadContext, pdb *policyv1.PodDisruptionBudget) error {
		one := intstr.FromInt32(1)
		if survives(ctx) {
			pdb.Spec.MinAvailable, pdb.Spec.MaxUnavailable = nil, &one
		} else {
			pdb.Spec.MinAvailable, pdb.Spec.MaxUnavailable = &one, nil
		}
		pdb.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
		return nil
	})
}
