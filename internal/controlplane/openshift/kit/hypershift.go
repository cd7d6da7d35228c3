package kit

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

// BelongToHostedCluster puts the reference to the HostedCluster on manifests of a component that the hypershift-operator keeps, which have no owner.
func BelongToHostedCluster[W component.Workload](b *component.Builder[W], files ...string) *component.Builder[W] {
	for _, file := range files {
		b.WithManifestAdapter(file, component.SetHostedClusterAnnotation())
	}
	return b
}

// RefersToHostedCluster is BelongToHostedCluster for the workload.
func RefersToHostedCluster(ctx component.WorkloadContext, obj client.Object) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[hyperv1.HostedClusterAnnotation] = ctx.HCP.Annotations[hyperv1.HostedClusterAnnotation]
	obj.SetAnnotations(annotations)
}

// WithMachines is the predicate of what manages machines: it is left out where the user does that.
func WithMachines(ctx component.WorkloadContext) (bool, error) {
	_, disabled := ctx.HCP.Annotations[hyperv1.DisableMachineManagement]
	return !disabled, nil
}
