package hostedcluster

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/hostnames"
)

// namesRecheck is when a name that is another's is looked at again: that the other one goes is no event of this one.
const namesRecheck = time.Minute

// takenNames are the new names of a hosted cluster that are another's. What its control plane has already is its own, so a settled cluster costs nothing.
func (r *Reconciler) takenNames(ctx context.Context, hc *hyperv1.HostedCluster, plane *hyperv1.HostedControlPlane) ([]hostnames.Conflict, error) {
	wanted := hostnames.New(hc, plane)
	if len(wanted) == 0 {
		return nil, nil
	}
	clusters, planes := &hyperv1.HostedClusterList{}, &hyperv1.HostedControlPlaneList{}
	for _, list := range []client.ObjectList{clusters, planes} {
		if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("looking for others with the same host names: %w", err)
		}
	}
	return hostnames.Taken(hc, wanted, clusters.Items, planes.Items), nil
}
