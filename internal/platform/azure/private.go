package azure

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/platform/cloud"
	"hcp.internal/platform/internal/platform/cluster"
	"hcp.internal/platform/internal/platform/privatelinks"
)

// links says what became of Private Link services. What calls Azure is hcp-cloud, beside both operators.
var links = cloud.Private{
	Kind: "AzurePrivateLinkService",
	Types: []string{
		hyperv1.AzurePrivateLinkServiceAvailable, hyperv1.AzureInternalLoadBalancerAvailable, hyperv1.AzurePLSCreated, hyperv1.AzurePrivateEndpointAvailable,
		hyperv1.AzurePrivateDNSAvailable,
	},
	Good: hyperv1.AzureSuccessReason, Bad: hyperv1.AzureErrorReason,
	Remedy: "Nothing makes a Private Link service yet, so machines in the virtual network don't reach the control plane: that begins once the internal load balancer of " +
		"the control plane has an address, with an operator that was installed with --private-platform Azure",
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
		list.Items[i].SetGroupVersionKind(hyperv1.GroupVersion.WithKind(links.Kind))
		objects = append(objects, &list.Items[i])
	}
	return objects, nil
}

// Remaining implements platform.Dismantler: private endpoints and what they lead to.
func (p Platform) Remaining(ctx context.Context, reader client.Reader, hc *hyperv1.HostedCluster, hcpNamespace string) ([]client.Object, error) {
	return p.Observe(ctx, reader, hc, hcpNamespace)
}

// abandonedAfter is how long a link that is being deleted waits for the control-plane-operator.
const abandonedAfter = 10 * time.Minute

// Abandoned implements platform.Dismantler. The hypershift-operator's own finalizer stays: it is here to remove it.
func (Platform) Abandoned(_ *hyperv1.HostedCluster, obj client.Object, now time.Time) []string {
	if since := obj.GetDeletionTimestamp(); since == nil || now.Sub(since.Time) < abandonedAfter || !slices.Contains(obj.GetFinalizers(), privatelinks.AzureEndpointFinalizer) {
		return nil
	}
	return []string{privatelinks.AzureEndpointFinalizer}
}

// identityRemedy is about a cluster whose control-plane-operator has no identity.
const identityRemedy = "spec.platform.azure.azureAuthenticationConfig.workloadIdentities.controlPlaneOperator is missing, as whom private endpoints are made: name an identity that may write to the " +
	"cluster's resource group"

// Conditions implements platform.ConditionReporter.
func (Platform) Conditions(in cluster.Input) (set []metav1.Condition, absent []string) {
	if hcp := in.HostedControlPlane; hcp != nil {
		if c := conditions.Get(hcp.Status.Conditions, hyperv1.ValidAzureKMSConfig); c != nil {
			set = append(set, conditions.New(c.Type, c.Status, c.Reason, c.Message))
		}
	}
	if !linked(in.HostedCluster) {
		return set, links.Types
	}
	var found []cloud.Link
	for _, obj := range in.Objects {
		if s, ok := obj.(*hyperv1.AzurePrivateLinkService); ok {
			found = append(found, cloud.Link{Name: s.Name, Conditions: s.Status.Conditions})
		}
	}
	l := links
	if ids, err := identitiesOf(in.HostedCluster.Spec.Platform.Azure); err == nil && (ids.workload == nil || ids.workload.ControlPlaneOperator == nil) {
		l.Remedy = identityRemedy
	}
	return append(set, l.Conditions(found)...), nil
}
