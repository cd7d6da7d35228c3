package operator

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

// NodePoolsOf are the NodePools of a HostedCluster, which are in its namespace and name it.
func NodePoolsOf(ctx context.Context, reader client.Reader, hc *hyperv1.HostedCluster) ([]hyperv1.NodePool, error) {
	list := &hyperv1.NodePoolList{}
	if err := reader.List(ctx, list, client.InNamespace(hc.Namespace)); err != nil {
		return nil, fmt.Errorf("listing NodePools of %s: %w", names.BackReference(hc), err)
	}
	return slices.DeleteFunc(list.Items, func(np hyperv1.NodePool) bool { return np.Spec.ClusterName != hc.Name }), nil
}
