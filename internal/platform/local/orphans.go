package local

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	infrav1 "hcp.internal/api/infrastructure/v1beta1"
)

// orphanKinds are those with finalizers of Cluster API and of our provider.
var orphanKinds = []schema.GroupVersionKind{
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "MachineDeployment"},
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "MachineSet"},
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Machine"},
	infrav1.GroupVersion.WithKind("LocalMachine"),
	infrav1.GroupVersion.WithKind("LocalCluster"),
}

// DeleteOrphanedMachines implements platform.OrphanDeleter: machines are pods of the namespace, which end with it, so nothing is lost when
// the objects that stand for them go first. Only what is being deleted already is touched.
func (Platform) DeleteOrphanedMachines(ctx context.Context, c client.Client, _ *hyperv1.HostedCluster, hcpNamespace string) error {
	var errs []error
	for _, gvk := range orphanKinds {
		// Unstructured lists are read from the API server, so that no cache is made for a deletion.
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := c.List(ctx, list, client.InNamespace(hcpNamespace)); err != nil {
			if !meta.IsNoMatchError(err) {
				errs = append(errs, fmt.Errorf("listing %ss in %s: %w", gvk.Kind, hcpNamespace, err))
			}
			continue
		}
		for i := range list.Items {
			obj := &list.Items[i]
			if obj.GetDeletionTimestamp().IsZero() || len(obj.GetFinalizers()) == 0 {
				continue
			}
			body := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q,"finalizers":null}}`, obj.GetResourceVersion())
			if err := c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, body)); client.IgnoreNotFound(err) != nil {
				errs = append(errs, fmt.Errorf("removing the finalizers of %s %s/%s: %w", gvk.Kind, hcpNamespace, obj.GetName(), err))
			}
		}
	}
	return errors.Join(errs...)
}
