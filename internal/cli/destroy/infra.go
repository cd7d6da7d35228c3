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

// checkPlatform refuses a HostedCluster of another platform than the command's. One whose platform has no command may be destroyed by any.
func checkPlatform(o Options, hc *hyperv1.HostedCluster) error {
	arg := create.PlatformArg(hc.Spec.Platform.Type)
	if o.platform == "" || arg == "" || arg == o.platform {
		return nil
	}
	return fmt.Errorf("HostedCluster %[1]s/%[2]s uses platform %[3]s: run `hypershift destroy cluster %[4]s %[2]s --namespace %[1]s`, which knows what it may have in a cloud; nothing was deleted",
		hc.Namespace, hc.Name, hc.Spec.Platform.Type, arg)
}

// checkMadeAgain refuses to clean up for an infrastructure on which somebody has made a HostedCluster of the same name again, after the one that was
// deleted had gone.
func checkMadeAgain(ctx context.Context, c client.Client, o Options, deleted *hyperv1.HostedCluster) error {
	now := &hyperv1.HostedCluster{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(deleted), now); err != nil {
		return client.IgnoreNotFound(err)
	}
	if now.UID == deleted.UID || o.InfraID == "" || now.Spec.InfraID != o.InfraID {
		return nil
	}
	return fmt.Errorf("HostedCluster %s/%s was destroyed and somebody has made it again on infrastructure %s, which therefore stays: run it again to destroy that one, too", now.Namespace, now.Name, o.InfraID)
}

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
