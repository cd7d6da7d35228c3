package privatelinks

import (
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/endpoints"
)

// Finalizers of AzurePrivateLinkServices.
const (
	// AzureServiceFinalizer is the hypershift-operator's, for the Private Link service.
	AzureServiceFinalizer = "hypershift.openshift.io/azure-pls-cleanup"
	// AzureEndpointFinalizer is the control-plane-operator's, for the private endpoint and its names.
	AzureEndpointFinalizer = "hypershift.openshift.io/azure-private-link-service"
)

// cloud is what there is to know of one.
type cloud struct {
	kind schema.GroupVersionKind
	// balancers are the Services that links are made of.
	balancers []string
	// linked tells whether a control plane is reached that way.
	linked func(hcp *hyperv1.HostedControlPlane) bool
	// link is what is asked for; address is the load balancer's. live is nil, or what is there: what can't change is taken from it.
	link func(hcp *hyperv1.HostedControlPlane, service, address string, live client.Object) client.Object
	// empty is an object of the kind.
	empty func() client.Object
}

// AzureBalancers are the Services that have links on Azure.
var AzureBalancers = []string{endpoints.PrivateRouterServiceName, endpoints.OAuthServiceName}

// Azure makes AzurePrivateLinkServices, GCP GCPPrivateServiceConnects.
var (
	azure = cloud{
		kind: hyperv1.GroupVersion.WithKind("AzurePrivateLinkService"), balancers: AzureBalancers,
		linked: AzureLinked, link: azureLink, empty: func() client.Object { return &hyperv1.AzurePrivateLinkService{} },
	}
	google = cloud{
		kind: hyperv1.GroupVersion.WithKind("GCPPrivateServiceConnect"), balancers: []string{endpoints.PrivateRouterServiceName},
		linked: googleLinked, link: googleLink, empty: func() client.Object { return &hyperv1.GCPPrivateServiceConnect{} },
	}
)

// AzureLinked tells whether machines reach a control plane by a Private Link service.
func AzureLinked(hcp *hyperv1.HostedControlPlane) bool {
	a := hcp.Spec.Platform.Azure
	return hcp.Spec.Platform.Type == hyperv1.AzurePlatform && a != nil && payload.Private(hcp) && a.Private != nil && a.Private.Type == hyperv1.AzurePrivateTypePrivateLink
}

func googleLinked(hcp *hyperv1.HostedControlPlane) bool {
	return hcp.Spec.Platform.Type == hyperv1.GCPPlatform && hcp.Spec.Platform.GCP != nil && payload.Private(hcp)
}

// addressOf is where an internal load balancer is; empty: svc has none, or none yet.
func addressOf(svc *corev1.Service) string {
	if svc == nil || !svc.DeletionTimestamp.IsZero() || svc.Spec.Type != corev1.ServiceTypeLoadBalancer || !endpoints.InternalLoadBalancer(svc) {
		return ""
	}
	for _, at := range svc.Status.LoadBalancer.Ingress {
		if _, err := netip.ParseAddr(at.IP); err == nil {
			return at.IP
		}
	}
	return ""
}

// metaOf is what links of both kinds have in common. They go with the HostedControlPlane.
func metaOf(hcp *hyperv1.HostedControlPlane, name string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Namespace: hcp.Namespace, Name: name,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedControlPlane", Name: hcp.Name, UID: hcp.UID}},
	}
	if back := hcp.Annotations[hyperv1.HostedClusterAnnotation]; back != "" {
		m.Annotations = map[string]string{hyperv1.HostedClusterAnnotation: back}
	}
	return m
}

func azureLink(hcp *hyperv1.HostedControlPlane, service, address string, live client.Object) client.Object {
	a := hcp.Spec.Platform.Azure
	obj := &hyperv1.AzurePrivateLinkService{ObjectMeta: metaOf(hcp, service)}
	obj.Spec = hyperv1.AzurePrivateLinkServiceSpec{
		LoadBalancerIP: hyperv1.IPAddress(address), SubscriptionID: hyperv1.AzureSubscriptionID(a.SubscriptionID), ResourceGroupName: a.ResourceGroupName, Location: strings.ToLower(strings.ReplaceAll(a.Location, " ", "")),
		GuestSubnetID: hyperv1.AzureSubnetResourceID(a.SubnetID), GuestVNetID: a.VnetID, BaseDomain: hyperv1.AzureDNSName(BaseDomain(hcp)),
	}
	if p := a.Private.PrivateLink; p != nil {
		obj.Spec.NATSubnetID, obj.Spec.AdditionalAllowedSubscriptions = p.NATSubnetID, p.AdditionalAllowedSubscriptions
	}
	if l, ok := live.(*hyperv1.AzurePrivateLinkService); ok && l.Spec.BaseDomain != "" {
		obj.Spec.BaseDomain = l.Spec.BaseDomain // it can't change, and names that users see may
	}
	return obj
}

func googleLink(hcp *hyperv1.HostedControlPlane, service, address string, _ client.Object) client.Object {
	obj := &hyperv1.GCPPrivateServiceConnect{ObjectMeta: metaOf(hcp, service)}
	obj.Spec = hyperv1.GCPPrivateServiceConnectSpec{
		LoadBalancerIP: hyperv1.IPAddress(address), ConsumerAcceptList: []hyperv1.GCPProject{hyperv1.GCPProject(hcp.Spec.Platform.GCP.Project)},
	}
	return obj
}

// BaseDomain is the zone of the names by which users reach a control plane: what is behind the first label of a Route's, or the cluster's base domain.
func BaseDomain(hcp *hyperv1.HostedControlPlane) string {
	for _, service := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer} {
		s := endpoints.StrategyFor(hcp, service)
		if s == nil || s.Type != hyperv1.Route || s.Route == nil {
			continue
		}
		if _, zone, ok := strings.Cut(string(s.Route.Hostname), "."); ok && strings.Contains(zone, ".") {
			return zone
		}
	}
	return string(hcp.Spec.DNS.BaseDomain)
}
