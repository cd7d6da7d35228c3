package privatelinks

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

const (
	subscription = "6c1f5f2c-9a0d-4a1e-8d57-0d5b2b8f0b11"
	friend       = "6c1f5f2c-9a0d-4a1e-8d57-0d5b2b8f0b12"
	vnet         = "/subscriptions/" + subscription + "/resourceGroups/group/providers/Microsoft.Network/virtualNetworks/net"
)

// clouds are those of which links are made, as a test's world has them.
var clouds = map[string]cloud{"Azure": azure, "GCP": google}

func platformOf(c cloud) hyperv1.PlatformSpec {
	if c.kind == google.kind {
		const mail = "machines@some-project.iam.gserviceaccount.com"
		return hyperv1.PlatformSpec{Type: hyperv1.GCPPlatform, GCP: &hyperv1.GCPPlatformSpec{
			Project: "some-project", Region: "europe-west3", EndpointAccess: hyperv1.GCPEndpointAccessPrivate,
			NetworkConfig: hyperv1.GCPNetworkConfig{Network: hyperv1.GCPResourceReference{Name: "net"}, PrivateServiceConnectSubnet: hyperv1.GCPResourceReference{Name: "psc"}},
			WorkloadIdentity: hyperv1.GCPWorkloadIdentityConfig{ProjectNumber: "123456789012", PoolID: "demo-pool", ProviderID: "demo-provider", ServiceAccountsEmails: hyperv1.GCPServiceAccountsEmails{
				NodePool: mail, ControlPlane: mail, CloudController: mail, Storage: mail, ImageRegistry: mail, Network: mail}},
		}}
	}
	id := hyperv1.WorkloadIdentity{ClientID: "00000000-0000-0000-0000-000000000011"}
	return hyperv1.PlatformSpec{Type: hyperv1.AzurePlatform, Azure: &hyperv1.AzurePlatformSpec{
		Location: "West Europe", ResourceGroupName: "group", SubscriptionID: subscription, VnetID: vnet, SubnetID: vnet + "/subnets/s", Topology: hyperv1.AzureTopologyPrivate,
		Private: &hyperv1.AzurePrivateSpec{Type: hyperv1.AzurePrivateTypePrivateLink, PrivateLink: &hyperv1.AzurePrivateLinkSpec{
			NATSubnetID: vnet + "/subnets/nat", AdditionalAllowedSubscriptions: []hyperv1.AzureSubscriptionID{friend}}},
		TenantID: subscription, SecurityGroupID: "/subscriptions/" + subscription + "/resourceGroups/group/providers/Microsoft.Network/networkSecurityGroups/n",
		AzureAuthenticationConfig: hyperv1.AzureAuthenticationConfiguration{AzureAuthenticationConfigType: hyperv1.AzureAuthenticationTypeWorkloadIdentities, WorkloadIdentities: &hyperv1.AzureWorkloadIdentities{
			ImageRegistry: id, Ingress: id, File: id, Disk: id, NodePoolManagement: id, CloudProvider: id, Network: id, ControlPlaneOperator: &id,
		}},
	}}
}

func controlPlane(c cloud, ns string) *hyperv1.HostedControlPlane {
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "demo", UID: "1", Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo"}}}
	hcp.Spec.Platform, hcp.Spec.DNS.BaseDomain = platformOf(c), "example.com"
	for _, service := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		hcp.Spec.Services = append(hcp.Spec.Services, hyperv1.ServicePublishingStrategyMapping{Service: service, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{
			Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{}}})
	}
	hcp.Spec.Services[0].ServicePublishingStrategy.Route.Hostname = "api-demo.private.example.com"
	return hcp
}

func service(ns, name, address string) *corev1.Service {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Annotations: map[string]string{
		"service.beta.kubernetes.io/azure-load-balancer-internal": "true", "networking.gke.io/load-balancer-type": "Internal"}}}
	svc.Spec.Type, svc.Spec.Ports = corev1.ServiceTypeLoadBalancer, []corev1.ServicePort{{Port: 443}}
	if address != "" {
		svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
	}
	return svc
}

func TestAddress(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Service)
		want   string
	}{
		"has an address": {func(*corev1.Service) {}, "10.0.0.7"},
		"has none yet":   {func(s *corev1.Service) { s.Status.LoadBalancer.Ingress = nil }, ""},
		"has a name only": {func(s *corev1.Service) {
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "a.example.com"}}
		}, ""},
		"is reached from the internet":  {func(s *corev1.Service) { s.Annotations = nil }, ""},
		"has no load balancer any more": {func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP }, ""},
		"is being deleted":              {func(s *corev1.Service) { s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, ""},
		"has an address of each of two families": {func(s *corev1.Service) {
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: "fd00::7"})
		}, "10.0.0.7"},
	} {
		t.Run("When a Service "+name+" it should know where the load balancer is", func(t *testing.T) {
			svc := service("ns", "private-router", "10.0.0.7")
			c.change(svc)
			NewWithT(t).Expect(addressOf(svc)).To(Equal(c.want))
		})
	}
}

func TestLinked(t *testing.T) {
	hcp := controlPlane(azure, "ns")
	hcp.Spec.Platform.Azure.Private = &hyperv1.AzurePrivateSpec{Type: hyperv1.AzurePrivateTypeSwift}
	t.Run("When pods have an interface in the virtual network nothing should be asked for", func(t *testing.T) { NewWithT(t).Expect(AzureLinked(hcp)).To(BeFalse()) })
	public := controlPlane(azure, "ns")
	public.Spec.Platform.Azure.Topology = hyperv1.AzureTopologyPublic
	t.Run("When a cluster is public nothing should be asked for", func(t *testing.T) { NewWithT(t).Expect(AzureLinked(public)).To(BeFalse()) })
	t.Run("When a cluster is of the other cloud nothing should be asked for", func(t *testing.T) {
		NewWithT(t).Expect(googleLinked(controlPlane(azure, "ns"))).To(BeFalse())
		NewWithT(t).Expect(AzureLinked(controlPlane(google, "ns"))).To(BeFalse())
	})
}

func TestBaseDomain(t *testing.T) {
	for name, c := range map[string]struct {
		host string
		want string
	}{
		"has a name in a zone":  {"api-demo.private.example.com", "private.example.com"},
		"has no name":           {"", "example.com"},
		"has a name at the top": {"demo.com", "example.com"},
	} {
		t.Run("When the Route of the API "+name+" the zone of private names should be known", func(t *testing.T) {
			hcp := controlPlane(azure, "ns")
			hcp.Spec.Services[0].ServicePublishingStrategy.Route.Hostname = hyperv1.PublishedHostname(c.host)
			NewWithT(t).Expect(BaseDomain(hcp)).To(Equal(c.want))
		})
	}
	t.Run("When an older link has another base domain it should be kept, since it can't change", func(t *testing.T) {
		live := &hyperv1.AzurePrivateLinkService{}
		live.Spec.BaseDomain = "before.example.com"
		obj := azureLink(controlPlane(azure, "ns"), "private-router", "10.0.0.7", live)
		NewWithT(t).Expect(obj.(*hyperv1.AzurePrivateLinkService).Spec.BaseDomain).To(BeEquivalentTo("before.example.com"))
	})
}

// start is an API server with the published definitions of both kinds.
func start(t testing.TB) client.WithWatch {
	t.Helper()
	g := NewWithT(t)
	env := testenv.Start(t)
	crds, err := config.CRDs(config.TechPreviewSet)
	g.Expect(err).NotTo(HaveOccurred())
	env.Install(t, crds...)
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(hyperv1.AddToScheme(scheme)).To(Succeed())
	return env.Client(t, scheme)
}

// world is a namespace of a control plane with load balancers, and what is asked for of them.
type world struct {
	c     client.WithWatch
	cloud cloud
	hcp   *hyperv1.HostedControlPlane
}

func newWorld(t testing.TB, c client.WithWatch, of cloud) *world {
	t.Helper()
	g := NewWithT(t)
	w := &world{c: c, cloud: of, hcp: controlPlane(of, testenv.Start(t).Namespace(t))}
	full := w.hcp.DeepCopy()
	w.hcp = &hyperv1.HostedControlPlane{ObjectMeta: full.ObjectMeta, Spec: complete(full.Spec)}
	w.hcp.UID = ""
	g.Expect(c.Create(t.Context(), w.hcp)).To(Succeed())
	for name, address := range map[string]string{"private-router": "10.0.0.7", "oauth-openshift": "10.0.0.8"} {
		svc := service(w.hcp.Namespace, name, "")
		g.Expect(c.Create(t.Context(), svc)).To(Succeed())
		svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address, IPMode: ptr.To(corev1.LoadBalancerIPModeVIP)}}
		g.Expect(c.Status().Update(t.Context(), svc)).To(Succeed())
	}
	return w
}

func (w *world) run(t testing.TB) func(c client.WithWatch) error {
	return func(c client.WithWatch) error {
		r := &Balancers{Client: c, Applier: apply.New(c, "control-plane-operator"), Clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)), cloud: w.cloud}
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
		return err
	}
}

func (w *world) check(t testing.TB) {
	g := NewWithT(t)
	for i, name := range []string{"private-router", "oauth-openshift"} {
		obj := w.cloud.empty()
		err := w.c.Get(t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: name}, obj)
		if i == 1 && w.cloud.kind == google.kind {
			g.Expect(client.IgnoreNotFound(err)).To(Succeed())
			g.Expect(err).To(HaveOccurred(), "Google's way leads to the router alone")
			continue
		}
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(obj.GetAnnotations()).To(HaveKeyWithValue(hyperv1.HostedClusterAnnotation, "clusters/demo"))
		g.Expect(obj.GetOwnerReferences()).To(ConsistOf(And(HaveField("Kind", "HostedControlPlane"), HaveField("UID", w.hcp.UID))))
		address := hyperv1.IPAddress([]string{"10.0.0.7", "10.0.0.8"}[i])
		switch l := obj.(type) {
		case *hyperv1.AzurePrivateLinkService:
			g.Expect(l.Spec).To(Equal(hyperv1.AzurePrivateLinkServiceSpec{
				LoadBalancerIP: address, SubscriptionID: subscription, ResourceGroupName: "group", Location: "westeurope", NATSubnetID: vnet + "/subnets/nat",
				AdditionalAllowedSubscriptions: []hyperv1.AzureSubscriptionID{friend}, GuestSubnetID: vnet + "/subnets/s", GuestVNetID: vnet, BaseDomain: "private.example.com",
			}))
		case *hyperv1.GCPPrivateServiceConnect:
			g.Expect(l.Spec).To(Equal(hyperv1.GCPPrivateServiceConnectSpec{LoadBalancerIP: address, ConsumerAcceptList: []hyperv1.GCPProject{"some-project"}}))
		}
	}
}

func TestBalancers(t *testing.T) {
	c := start(t)
	for name, of := range clouds {
		t.Run("When load balancers of "+name+" have addresses it should ask for links, once", func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, c, of)
			g.Expect(w.run(t)(c)).To(Succeed())
			w.check(t)
			testenv.ExpectQuiet(t, c, w.run(t))
		})
		t.Run("When a load balancer of "+name+" moves the link should follow, and what others wrote stay", func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, c, of)
			g.Expect(w.run(t)(c)).To(Succeed())
			key := client.ObjectKey{Namespace: w.hcp.Namespace, Name: "private-router"}
			link := of.empty()
			g.Expect(c.Get(t.Context(), key, link)).To(Succeed())
			metav1.SetMetaDataAnnotation(link.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta), "another", "one")
			if psc, ok := link.(*hyperv1.GCPPrivateServiceConnect); ok {
				psc.Spec.NATSubnet, psc.Spec.ForwardingRuleName = "nat", "rule"
			}
			g.Expect(c.Update(t.Context(), link)).To(Succeed())
			svc := &corev1.Service{}
			g.Expect(c.Get(t.Context(), key, svc)).To(Succeed())
			svc.Status.LoadBalancer.Ingress[0].IP = "10.0.0.9"
			g.Expect(c.Status().Update(t.Context(), svc)).To(Succeed())
			g.Expect(w.run(t)(c)).To(Succeed())
			g.Expect(c.Get(t.Context(), key, link)).To(Succeed())
			g.Expect(link).To(HaveField("Spec.LoadBalancerIP", BeEquivalentTo("10.0.0.9")))
			g.Expect(link.GetAnnotations()).To(HaveKeyWithValue("another", "one"))
			if of.kind == google.kind {
				g.Expect(link).To(HaveField("Spec.NATSubnet", BeEquivalentTo("nat")))
			}
		})
		t.Run("When a control plane of "+name+" is paused nothing should be asked for", func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, c, of)
			w.hcp.Spec.PausedUntil = ptr.To("true")
			g.Expect(c.Update(t.Context(), w.hcp)).To(Succeed())
			testenv.ExpectQuiet(t, c, w.run(t))
		})
	}
}

func TestCrash(t *testing.T) {
	c := start(t)
	for name, of := range clouds {
		t.Run(name, func(t *testing.T) {
			testenv.CrashAtEveryWrite(t, 1, func(t testing.TB) testenv.CrashCase {
				w := newWorld(t, c, of)
				return testenv.CrashCase{Client: c, Run: w.run(t), Check: w.check}
			})
		})
	}
}

// complete adds what the definition of HostedControlPlanes asks for.
func complete(spec hyperv1.HostedControlPlaneSpec) hyperv1.HostedControlPlaneSpec {
	like := testenv.HostedCluster("clusters", "demo").Spec
	spec.ReleaseImage, spec.PullSecret, spec.Networking, spec.IssuerURL = "registry.invalid/release:1", like.PullSecret, like.Networking, like.IssuerURL
	spec.InfraID, spec.ControllerAvailabilityPolicy = "demo-abcde", hyperv1.SingleReplica
	spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}}
	return spec
}
