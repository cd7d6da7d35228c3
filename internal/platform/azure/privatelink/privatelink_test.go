package privatelink

import (
	"os"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v6"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/privatedns/armprivatedns"
	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m))
}

const clusterID = "7a1f5f2c-9a0d-4a1e-8d57-0d5b2b8f0b11"

// start is an API server with the published definitions.
func start(t testing.TB) client.WithWatch {
	t.Helper()
	g := NewWithT(t)
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(hyperv1.AddToScheme(scheme)).To(Succeed())
	return env.Client(t, scheme)
}

// world is a private hosted cluster whose load balancer is asked to be reached, an account in Azure, and both controllers.
type world struct {
	testing.TB
	c     client.WithWatch
	azure *account
	hc    *hyperv1.HostedCluster
	hcp   *hyperv1.HostedControlPlane
	ns    string
	// after is when the controllers want to look again.
	after [2]time.Duration
}

func byRoute(host string) hyperv1.ServicePublishingStrategy {
	return hyperv1.ServicePublishingStrategy{Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: hyperv1.PublishedHostname(host)}}
}

func platformSpec() hyperv1.PlatformSpec {
	id := hyperv1.WorkloadIdentity{ClientID: "00000000-0000-0000-0000-000000000011"}
	return hyperv1.PlatformSpec{Type: hyperv1.AzurePlatform, Azure: &hyperv1.AzurePlatformSpec{
		Cloud: "AzurePublicCloud", Location: "westeurope", ResourceGroupName: "guest", SubscriptionID: guest, TenantID: "00000000-0000-0000-0000-000000000002",
		VnetID: guestVNet, SubnetID: guestVNet + "/subnets/s", SecurityGroupID: "/subscriptions/" + guest + "/resourceGroups/guest/providers/Microsoft.Network/networkSecurityGroups/nsg",
		Topology: hyperv1.AzureTopologyPrivate, Private: &hyperv1.AzurePrivateSpec{Type: hyperv1.AzurePrivateTypePrivateLink, PrivateLink: &hyperv1.AzurePrivateLinkSpec{AdditionalAllowedSubscriptions: []hyperv1.AzureSubscriptionID{friend}}},
		AzureAuthenticationConfig: hyperv1.AzureAuthenticationConfiguration{AzureAuthenticationConfigType: hyperv1.AzureAuthenticationTypeWorkloadIdentities, WorkloadIdentities: &hyperv1.AzureWorkloadIdentities{
			ImageRegistry: id, Ingress: id, File: id, Disk: id, NodePoolManagement: id, CloudProvider: id, Network: id, ControlPlaneOperator: &id,
		}},
	}}
}

func newWorld(t testing.TB, c client.WithWatch) *world {
	t.Helper()
	g := NewWithT(t)
	w := &world{TB: t, c: c, azure: newAccount()}
	w.hc = testenv.HostedCluster(testenv.Start(t).Namespace(t), "demo")
	w.hc.Spec.InfraID, w.hc.Spec.ClusterID, w.hc.Spec.Platform, w.hc.Spec.DNS.BaseDomain = "demo-abcde", clusterID, platformSpec(), "example.com"
	w.hc.Spec.Services = []hyperv1.ServicePublishingStrategyMapping{
		{Service: hyperv1.APIServer, ServicePublishingStrategy: byRoute("api-demo.private.example.com")}, {Service: hyperv1.OAuthServer, ServicePublishingStrategy: byRoute("oauth-demo.private.example.com")},
		{Service: hyperv1.Konnectivity, ServicePublishingStrategy: byRoute("")}, {Service: hyperv1.Ignition, ServicePublishingStrategy: byRoute("")},
	}
	g.Expect(c.Create(t.Context(), w.hc)).To(Succeed())
	w.ns = names.NamespaceOf(w.hc)
	g.Expect(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}})).To(Succeed())
	spec := w.hc.Spec
	back := map[string]string{hyperv1.HostedClusterAnnotation: names.BackReference(w.hc)}
	w.hcp = &hyperv1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "demo", Annotations: back},
		Spec: hyperv1.HostedControlPlaneSpec{ReleaseImage: "registry.invalid/release:1", PullSecret: spec.PullSecret, Platform: spec.Platform, Networking: spec.Networking, Services: spec.Services,
			IssuerURL: spec.IssuerURL, InfraID: spec.InfraID, ControllerAvailabilityPolicy: hyperv1.SingleReplica, DNS: spec.DNS,
			Etcd: hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}}},
	}
	g.Expect(c.Create(t.Context(), w.hcp)).To(Succeed())
	w.link("private-router", "10.0.0.7")
	return w
}

// link asks for a way to a load balancer.
func (w *world) link(name, address string) {
	NewWithT(w).Expect(w.c.Create(w.Context(), &hyperv1.AzurePrivateLinkService{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name, Annotations: map[string]string{hyperv1.HostedClusterAnnotation: names.BackReference(w.hc)}},
		Spec: hyperv1.AzurePrivateLinkServiceSpec{LoadBalancerIP: hyperv1.IPAddress(address), SubscriptionID: guest, ResourceGroupName: "guest", Location: "westeurope",
			AdditionalAllowedSubscriptions: []hyperv1.AzureSubscriptionID{friend}, GuestSubnetID: guestVNet + "/subnets/s", GuestVNetID: guestVNet, BaseDomain: "private.example.com"},
	})).To(Succeed())
}

// passes bounds how often the controllers are called until nothing is left to do.
const passes = 12

// run calls both controllers, as fresh processes, until they are content.
func (w *world) run(c client.WithWatch) error {
	clk := clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))
	services := &Services{Client: c, Live: c, Clock: clk, Open: func(string) (*Provider, error) { return NewProvider(w.azure.location(management)) }}
	ends := &Endpoints{Client: c, Applier: apply.New(c, "control-plane-operator"), Clock: clk, Open: func(_, subscription string) (*Consumer, error) { return NewConsumer(w.azure.location(subscription)) }}
	for range passes {
		content := true
		for _, name := range []string{"private-router", "oauth-openshift"} {
			req := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.ns, Name: name}}
			first, err := services.Reconcile(w.Context(), req)
			if err != nil {
				return err
			}
			second, err := ends.Reconcile(w.Context(), req)
			if err != nil {
				return err
			}
			if name == "private-router" {
				w.after = [2]time.Duration{first.RequeueAfter, second.RequeueAfter}
			}
			content = content && (first.RequeueAfter == 0 || first.RequeueAfter >= lookAgain) && second.RequeueAfter >= lookAgain
		}
		if content {
			break
		}
	}
	return nil
}

func (w *world) get(name string) *hyperv1.AzurePrivateLinkService {
	obj := &hyperv1.AzurePrivateLinkService{}
	NewWithT(w).Expect(w.c.Get(w.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, obj)).To(Succeed())
	return obj
}

func (w *world) router() *hyperv1.AzurePrivateLinkService { return w.get("private-router") }

func addressOfRecord(s *armprivatedns.RecordSet) string {
	if s == nil || s.Properties == nil || len(s.Properties.ARecords) != 1 {
		return ""
	}
	return *s.Properties.ARecords[0].IPv4Address
}

// connected asserts that machines and users reach the control plane.
func (w *world) connected(t testing.TB) {
	g := NewWithT(t)
	obj, a := w.router(), w.azure
	for _, kind := range []string{"AzureInternalLoadBalancerAvailable", "AzurePLSCreated", "AzurePrivateEndpointAvailable", "AzurePrivateDNSAvailable", "AzurePrivateLinkServiceAvailable"} {
		g.Expect(conditions.Get(obj.Status.Conditions, kind)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", "AzureSuccess")), kind)
	}
	g.Expect(a.services).To(HaveLen(1))
	s := a.services["pls-"+clusterID]
	g.Expect(s).NotTo(BeNil())
	g.Expect(value(s.Properties.EnableProxyProtocol)).To(BeFalse())
	g.Expect(same(s.Properties.Visibility.Subscriptions, []string{guest, friend})).To(BeTrue())
	g.Expect(same(s.Properties.AutoApproval.Subscriptions, []string{guest, friend})).To(BeTrue())
	g.Expect(value(s.Tags["kubernetes.io_cluster_demo"])).To(Equal("owned"))
	g.Expect(value(s.Tags["hypershift.openshift.io_resource-type"])).To(Equal("private-link-service"))
	g.Expect(obj.Status.PrivateLinkServiceAlias).To(Equal(*s.Properties.Alias))
	g.Expect(obj.Status.InternalLoadBalancerID).To(HaveSuffix("/resourceGroups/mgmt/providers/Microsoft.Network/loadBalancers/kubernetes-internal"))
	nat := a.subnets["demo-abcde-pls-nat"]
	g.Expect(nat).NotTo(BeNil())
	g.Expect(*nat.Properties.AddressPrefix).To(Equal("10.0.2.0/24"), "the first that is free")
	g.Expect(*nat.Properties.PrivateLinkServiceNetworkPolicies).To(BeEquivalentTo("Disabled"))
	g.Expect(s.Properties.PrivateEndpointConnections).To(HaveLen(1))
	g.Expect(a.endpoints).To(HaveLen(1))
	e := a.endpoints["private-router-pe"]
	g.Expect(*e.Properties.Subnet.ID).To(Equal(guestVNet + "/subnets/s"))
	ip := string(obj.Status.PrivateEndpointIP)
	g.Expect(ip).To(HavePrefix("192.168.0."))
	for _, name := range []string{"demo.hypershift.local/api", "demo.hypershift.local/*.apps", "private.example.com/api-demo", "private.example.com/oauth-demo"} {
		g.Expect(addressOfRecord(a.records[name])).To(Equal(ip), name)
	}
	g.Expect(a.links).To(HaveLen(2))
	g.Expect(a.links).To(HaveKey("demo.hypershift.local/private-router-vnet-link"))
	g.Expect(a.links).To(HaveKey("private.example.com/private-router-basedomain-vnet-link"))
	g.Expect(obj.Status.DNSZoneName).To(BeEquivalentTo("demo.hypershift.local"))
	for name, host := range map[string]string{"kube-apiserver-private-external": "api-demo.private.example.com", "oauth-private-external": "oauth-demo.private.example.com"} {
		svc := &corev1.Service{}
		g.Expect(w.c.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, svc)).To(Succeed())
		g.Expect(svc.Spec.ExternalName).To(Equal(ip))
		g.Expect(svc.Annotations).To(HaveKeyWithValue("external-dns.alpha.kubernetes.io/hostname", host))
		g.Expect(svc.Labels).To(HaveKeyWithValue("hypershift.openshift.io/azure-pls-external-private-svc", "true"))
	}
}

// gone asserts that nothing is left but what was there before.
func (w *world) gone(t testing.TB) {
	g := NewWithT(t)
	a := w.azure
	g.Expect(a.services).To(BeEmpty())
	g.Expect(a.endpoints).To(BeEmpty())
	g.Expect(a.records).To(BeEmpty())
	g.Expect(a.links).To(BeEmpty())
	g.Expect(a.zones).To(BeEmpty())
	g.Expect(a.subnets).To(HaveLen(2), "the subnet for address translation is ours to remove")
	list := &hyperv1.AzurePrivateLinkServiceList{}
	g.Expect(w.c.List(t.Context(), list, client.InNamespace(w.ns))).To(Succeed())
	g.Expect(list.Items).To(BeEmpty())
}

func (w *world) drop(name string) {
	NewWithT(w).Expect(client.IgnoreNotFound(w.c.Delete(w.Context(), &hyperv1.AzurePrivateLinkService{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}))).To(Succeed())
}

func TestLife(t *testing.T) {
	c := start(t)
	t.Run("When a load balancer is there machines and users should reach it, and a second look change nothing", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, c)
		g.Expect(w.run(c)).To(Succeed())
		w.connected(t)
		g.Expect(w.after[0]).To(BeNumerically(">=", lookAgain))
		calls := len(w.azure.calls)
		testenv.ExpectQuiet(t, c, w.run)
		g.Expect(w.azure.calls).To(HaveLen(calls))
	})
	t.Run("When the link is deleted nothing of it should be left, and others' things stay", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, c)
		g.Expect(w.run(c)).To(Succeed())
		w.drop("private-router")
		g.Expect(w.run(c)).To(Succeed())
		w.gone(t)
	})
	t.Run("When the names of another cluster are in the zone of the base domain the zone and its link should stay", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, c)
		g.Expect(w.run(c)).To(Succeed())
		w.azure.records["private.example.com/api-other"] = &armprivatedns.RecordSet{Name: to.Ptr("api-other"), Type: to.Ptr("Microsoft.Network/privateDnsZones/A")}
		w.drop("private-router")
		g.Expect(w.run(c)).To(Succeed())
		g.Expect(w.azure.records).To(HaveLen(1))
		g.Expect(w.azure.zones).To(HaveLen(1))
		g.Expect(w.azure.links).To(HaveLen(1))
	})
	t.Run("When another hosted cluster made the zone of the base domain and is gone the last one should remove it", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, c)
		w.azure.zones["private.example.com"] = &armprivatedns.PrivateZone{Tags: map[string]*string{typeTag: to.Ptr(typeZone), clusterTag + "other": to.Ptr(owned)}}
		w.azure.links["private.example.com/other"] = &armprivatedns.VirtualNetworkLink{Name: to.Ptr("other"), Tags: map[string]*string{typeTag: to.Ptr(typeZone)},
			Properties: &armprivatedns.VirtualNetworkLinkProperties{VirtualNetwork: &armprivatedns.SubResource{ID: to.Ptr(guestVNet)}}}
		g.Expect(w.run(c)).To(Succeed())
		g.Expect(w.azure.links).To(HaveLen(2), "a network takes one link to a zone")
		w.drop("private-router")
		g.Expect(w.run(c)).To(Succeed())
		w.gone(t)
	})
	t.Run("When the zone of the base domain is the user's it should stay", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, c)
		w.azure.zones["private.example.com"] = &armprivatedns.PrivateZone{}
		g.Expect(w.run(c)).To(Succeed())
		w.connected(t)
		w.drop("private-router")
		g.Expect(w.run(c)).To(Succeed())
		g.Expect(w.azure.zones).To(HaveLen(1))
		g.Expect(w.azure.links).To(BeEmpty())
	})
	t.Run("When the OAuth server has a load balancer, too, both should share a subnet, and the last remove it", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, c)
		w.hcp.Spec.Services[1].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}
		g.Expect(c.Update(t.Context(), w.hcp)).To(Succeed())
		w.azure.addresses["b"] = "10.0.0.8"
		w.link("oauth-openshift", "10.0.0.8")
		g.Expect(w.run(c)).To(Succeed())
		g.Expect(w.azure.services).To(And(HaveLen(2), HaveKey("pls-oauth-openshift-"+clusterID)))
		g.Expect(w.azure.subnets).To(HaveLen(3))
		g.Expect(addressOfRecord(w.azure.records["private.example.com/oauth-demo"])).To(BeEquivalentTo(w.get("oauth-openshift").Status.PrivateEndpointIP))
		g.Expect(addressOfRecord(w.azure.records["private.example.com/api-demo"])).To(BeEquivalentTo(w.router().Status.PrivateEndpointIP))
		w.drop("private-router")
		g.Expect(w.run(c)).To(Succeed())
		g.Expect(w.azure.services).To(HaveLen(1))
		g.Expect(w.azure.subnets).To(HaveLen(3), "the other one is in it")
		w.drop("oauth-openshift")
		g.Expect(w.run(c)).To(Succeed())
		w.gone(t)
	})
}

func TestDrift(t *testing.T) {
	c := start(t)
	settled := func(t *testing.T) (*world, *WithT) {
		w, g := newWorld(t, c), NewWithT(t)
		g.Expect(w.run(c)).To(Succeed())
		return w, g
	}
	t.Run("When somebody lets others connect that should be undone", func(t *testing.T) {
		w, g := settled(t)
		w.azure.services["pls-"+clusterID].Properties.AutoApproval.Subscriptions = to.SliceOfPtrs("*")
		g.Expect(w.run(c)).To(Succeed())
		w.connected(t)
	})
	t.Run("When the Private Link service is deleted from outside another endpoint should lead to another one", func(t *testing.T) {
		w, g := settled(t)
		before := w.router().Status
		delete(w.azure.services, "pls-"+clusterID)
		g.Expect(w.run(c)).To(Succeed())
		w.connected(t)
		g.Expect(w.router().Status.PrivateLinkServiceAlias).NotTo(Equal(before.PrivateLinkServiceAlias))
		g.Expect(w.router().Status.PrivateEndpointIP).NotTo(Equal(before.PrivateEndpointIP))
	})
	t.Run("When another hosted cluster has the clusterID it should neither take the Private Link service nor remove it", func(t *testing.T) {
		w, g := settled(t)
		other := newWorld(t, c)
		other.azure.services = w.azure.services
		g.Expect(other.run(c)).To(Succeed())
		g.Expect(conditions.Get(other.router().Status.Conditions, "AzurePLSCreated")).To(And(HaveField("Status", metav1.ConditionFalse),
			HaveField("Message", ContainSubstring("is that of another hosted cluster, whose spec.clusterID this one has"))))
		g.Expect(w.run(c)).To(Succeed())
		w.connected(t)
		other.drop("private-router")
		g.Expect(other.run(c)).To(Succeed())
		w.connected(t)
	})
	t.Run("When the load balancer moves the Private Link service should follow", func(t *testing.T) {
		w, g := settled(t)
		w.azure.addresses["b"] = "10.0.0.9"
		obj := w.router()
		obj.Spec.LoadBalancerIP = "10.0.0.9"
		g.Expect(c.Update(t.Context(), obj)).To(Succeed())
		g.Expect(w.run(c)).To(Succeed())
		w.connected(t)
		g.Expect(leadsTo(w.azure.services["pls-"+clusterID], frontendID+"b")).To(BeTrue())
	})
	t.Run("When endpoint, records and links are deleted from outside they should come back", func(t *testing.T) {
		w, g := settled(t)
		delete(w.azure.endpoints, "private-router-pe")
		w.azure.services["pls-"+clusterID].Properties.PrivateEndpointConnections = nil
		clear(w.azure.records)
		clear(w.azure.links)
		clear(w.azure.zones)
		g.Expect(w.run(c)).To(Succeed())
		w.connected(t)
	})
	t.Run("When the cluster gets public its Services for external-dns should go", func(t *testing.T) {
		w, g := settled(t)
		w.hcp.Spec.Platform.Azure.Topology = hyperv1.AzureTopologyPublicAndPrivate
		g.Expect(c.Update(t.Context(), w.hcp)).To(Succeed())
		g.Expect(w.run(c)).To(Succeed())
		list := &corev1.ServiceList{}
		g.Expect(c.List(t.Context(), list, client.InNamespace(w.ns))).To(Succeed())
		g.Expect(list.Items).To(BeEmpty())
	})
}

func TestRefused(t *testing.T) {
	c := start(t)
	for name, tc := range map[string]struct {
		prepare                    func(a *account)
		condition, reason, message string
		after                      int
	}{
		"no load balancer has the address": {func(a *account) { clear(a.addresses) }, "AzureInternalLoadBalancerAvailable", "ILBLookupFailed", "No load balancer in resource group mgmt has address 10.0.0.7", 0},
		"load balancers can't be listed": {func(a *account) { a.refuse["list balancers"] = "AuthorizationFailed" }, "AzureInternalLoadBalancerAvailable", "ILBLookupFailed",
			"failed to list the load balancers of resource group mgmt: Azure says AuthorizationFailed (HTTP 403): grant", 0},
		"no subnet can be made": {func(a *account) { a.refuse["put subnet"] = "LinkedAuthorizationFailed" }, "AzurePLSCreated", "NATSubnetCreationFailed", "Azure says LinkedAuthorizationFailed", 0},
		"there is no room for a subnet": {func(a *account) {
			a.subnets["all"] = &armnetwork.Subnet{Name: to.Ptr("all"), Properties: &armnetwork.SubnetPropertiesFormat{AddressPrefix: to.Ptr("10.0.0.0/16")}}
		},
			"AzurePLSCreated", "NATSubnetCreationFailed", "natSubnetID", 0},
		"no Private Link service can be made": {func(a *account) { a.refuse["put service"] = "RequestDisallowedByPolicy" }, "AzurePLSCreated", "PLSCreationFailed", "a policy of the subscription forbids it", 0},
		"the connection waits for approval":   {func(a *account) { a.state = "Pending" }, "AzurePrivateEndpointAvailable", "PrivateEndpointConnectionNotApproved", "is Pending: approve it", 1},
		"no private endpoint can be made":     {func(a *account) { a.refuse["put endpoint"] = "AuthorizationFailed" }, "AzurePrivateEndpointAvailable", "AzureError", "Azure says AuthorizationFailed", 1},
		"no record can be made":               {func(a *account) { a.refuse["put record"] = "AuthorizationFailed" }, "AzurePrivateDNSAvailable", "AzureError", "failed to set the record of api.demo.hypershift.local", 1},
		"an endpoint of another cluster has the name": {func(a *account) {
			a.endpoints["private-router-pe"] = &armnetwork.PrivateEndpoint{Tags: map[string]*string{"kubernetes.io_cluster_other": to.Ptr("owned")}}
		},
			"AzurePrivateEndpointAvailable", "AzureError", "resource group of its own", 1},
	} {
		t.Run("When "+name+" a condition should say so, and once the cause is gone it should go on", func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, c)
			tc.prepare(w.azure)
			g.Expect(w.run(c)).To(Succeed())
			found := conditions.Get(w.router().Status.Conditions, tc.condition)
			g.Expect(found).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", tc.reason), HaveField("Message", ContainSubstring(tc.message))))
			g.Expect(w.after[tc.after]).To(And(BeNumerically(">", 0), BeNumerically("<=", 2*refused)))
			testenv.ExpectQuiet(t, c, w.run)
			w.azure.refuse, w.azure.addresses, w.azure.state = map[string]string{}, map[string]string{"a": "10.0.0.7"}, "Approved"
			delete(w.azure.subnets, "all")
			if e := w.azure.endpoints["private-router-pe"]; e != nil && e.Tags[aliasTag] == nil {
				delete(w.azure.endpoints, "private-router-pe")
			} else if e != nil {
				e.Properties.ManualPrivateLinkServiceConnections[0].Properties.PrivateLinkServiceConnectionState.Status = to.Ptr("Approved")
			}
			g.Expect(w.run(c)).To(Succeed())
			w.connected(t)
		})
	}
	t.Run("When Azure refuses to delete a condition should say so, and once it may the rest should go", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t, c)
		g.Expect(w.run(c)).To(Succeed())
		w.azure.refuse["delete endpoint"] = "ScopeLocked"
		w.drop("private-router")
		g.Expect(w.run(c)).To(Succeed())
		g.Expect(conditions.Get(w.router().Status.Conditions, "AzurePrivateEndpointAvailable")).To(HaveField("Message", ContainSubstring("remove the lock")))
		g.Expect(w.azure.services).To(HaveLen(1), "it goes after the endpoint")
		w.azure.refuse = map[string]string{}
		g.Expect(w.run(c)).To(Succeed())
		w.gone(t)
	})
}

// TestAnswers has each call that changes something lose its answer.
func TestAnswers(t *testing.T) {
	c := start(t)
	for at := 1; ; at++ {
		fired := false
		t.Run("When an answer of Azure is lost nothing should be made twice, and nothing be left", func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, c)
			w.azure.lose = at
			g.Expect(w.run(c)).To(Succeed())
			w.connected(t)
			w.drop("private-router")
			g.Expect(w.run(c)).To(Succeed())
			w.gone(t)
			fired = len(w.azure.calls) >= at
		})
		if !fired || t.Failed() || at > 60 {
			break
		}
	}
}

func TestCrash(t *testing.T) {
	c := start(t)
	t.Run("making", func(t *testing.T) {
		testenv.CrashAtEveryWrite(t, 1, func(t testing.TB) testenv.CrashCase {
			w := newWorld(t, c)
			return testenv.CrashCase{Client: c, Run: w.run, Check: w.connected}
		})
	})
	t.Run("removing", func(t *testing.T) {
		testenv.CrashAtEveryWrite(t, 1, func(t testing.TB) testenv.CrashCase {
			w := newWorld(t, c)
			NewWithT(t).Expect(w.run(c)).To(Succeed())
			w.drop("private-router")
			return testenv.CrashCase{Client: c, Run: w.run, Check: w.gone}
		})
	})
}
