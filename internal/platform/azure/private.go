package azure

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/cloud"
	"hcp.internal/platform/internal/platform/cluster"
)

// links says what became of Private Link services. Nothing here calls Azure, so somebody else makes them, or nobody.
var links = cloud.Private{
	Kind: "AzurePrivateLinkService",
	Types: []string{
		hyperv1.AzurePrivateLinkServiceAvailable, hyperv1.AzureInternalLoadBalancerAvailable, hyperv1.AzurePLSCreated, hyperv1.AzurePrivateEndpointAvailable,
		hyperv1.AzurePrivateDNSAvailable,
	},
	Good: hyperv1.AzureSuccessReason, Bad: hyperv1.AzureErrorReason,
	Remedy: "This operator makes no Private Link services, so machines in the virtual network don't reach the control plane: make the HostedCluster with " +
		"spec.platform.azure.topology Public and without spec.platform.azure.private",
}

// linked tells whether machines reach the control plane by a Private Link service.
func linked(hc *hyperv1.HostedCluster) bool {
	a := hc.Spec.Platform.Azure
	return a != nil && a.Topology != "" && a.Topology != hyperv1.AzureTopologyPublic && a.Private != nil && a.Private.Type == hyperv1.AzurePrivateTypePrivateLink
}

// Observe implements platform.Observer.
func (Platform) Observe(ctx context.Context, reader client.Reader, hc *hyperv1.HostedCluster, hcpNamespace string) (objects []client.Object, _ error) {
	if !linked(hc) {
		return nil, nil
	}
	list := &hyperv1.AzurePrivateLinkServiceList{}
	if err := cloud.ListLinks(ctx, reader, list, hcpNamespace, links.Kind); err != nil {
		return nil, err
	}
	for i := range list.Items {
		objects = append(objects, &list.Items[i])
	}
	return objects, nil
}

// Conditions implements platform.ConditionReporter.
func (Platform) Conditions(in cluster.Input) (set []metav1.Condition, absent []string) {
	if !linked(in.HostedCluster) {
		return nil, links.Types
	}
	var found []cloud.Link
	for _, obj := range in.Objects {
		if s, ok := obj.(*hyperv1.AzurePrivateLinkService); ok {
			found = append(found, cloud.Link{Name: s.Name, Conditions: s.Status.Conditions})
		}
	}
	return links.Conditions(found), nil
}
