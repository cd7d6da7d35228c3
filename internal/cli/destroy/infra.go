package destroy

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/create"
	"hcp.internal/platform/internal/kube/read"
)

// clusterPage is how many HostedClusters one request returns.
const clusterPage = 500

// checkInfra refuses to clean up for an infrastructure that --infra-id names while a HostedCluster lives on it: a name or namespace that is wrong
// looks like a HostedCluster that is gone. hc is nil if there is none of that name.
func checkInfra(ctx context.Context, c client.Client, o Options, hc *hyperv1.HostedCluster) error {
	switch {
	case o.InfraID == "" || hc != nil && hc.Spec.InfraID == o.InfraID:
		return nil
	case hc != nil && hc.Spec.InfraID != "":
		return fmt.Errorf("HostedCluster %s/%s has infrastructure %s, and not that of --infra-id %s: leave --infra-id out to destroy this HostedCluster, or check its name and --namespace",
			hc.Namespace, hc.Name, hc.Spec.InfraID, o.InfraID)
	}
	list := &hyperv1.HostedClusterList{}
	for err := range read.Pages(ctx, c, list, clusterPage) {
		if apierrors.IsForbidden(err) {
			return fmt.Errorf("it isn't known whether a HostedCluster still uses infrastructure %[1]s: %[2]w; run it as somebody who may list HostedClusters in all namespaces. "+
				"If you are sure that none does, delete what is left by kubectl delete secrets -n %[3]s -l %[4]s=true,%[5]s=%[1]s, and in AWS by `hypershift destroy infra aws` and `hypershift destroy iam aws`",
				o.InfraID, err, o.Namespace, create.SafeToDeleteLabel, create.AutoCreatedForLabel)
		}
		if err != nil {
			return fmt.Errorf("looking for a HostedCluster that uses infrastructure %s: %w", o.InfraID, err)
		}
		for i := range list.Items {
			if owner := &list.Items[i]; owner.Spec.InfraID == o.InfraID {
				return fmt.Errorf("infrastructure %s belongs to HostedCluster %s/%s, and it still exists: if that is the one to destroy, give its --name %[3]s and --namespace %[2]s; nothing was deleted",
					o.InfraID, owner.Namespace, owner.Name)
			}
		}
	}
	return nil
}
