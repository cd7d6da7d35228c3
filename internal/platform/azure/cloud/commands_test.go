package cloud

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m))
}

const (
	subscription = "6c1f5f2c-9a0d-4a1e-8d57-0d5b2b8f0b11"
	network      = "/subscriptions/" + subscription + "/resourceGroups/guest/providers/Microsoft.Network/virtualNetworks/net"
	patience     = "120s"
)

func azure() hyperv1.PlatformSpec {
	id := hyperv1.WorkloadIdentity{ClientID: "00000000-0000-0000-0000-000000000011"}
	return hyperv1.PlatformSpec{Type: hyperv1.AzurePlatform, Azure: &hyperv1.AzurePlatformSpec{
		Cloud: "AzurePublicCloud", Location: "westeurope", ResourceGroupName: "guest", SubscriptionID: subscription, TenantID: subscription, VnetID: network, SubnetID: network + "/subnets/s",
		SecurityGroupID: "/subscriptions/" + subscription + "/resourceGroups/guest/providers/Microsoft.Network/networkSecurityGroups/nsg",
		Topology:        hyperv1.AzureTopologyPublicAndPrivate, Private: &hyperv1.AzurePrivateSpec{Type: hyperv1.AzurePrivateTypePrivateLink, PrivateLink: &hyperv1.AzurePrivateLinkSpec{NATSubnetID: network + "/subnets/nat"}},
		AzureAuthenticationConfig: hyperv1.AzureAuthenticationConfiguration{AzureAuthenticationConfigType: hyperv1.AzureAuthenticationTypeWorkloadIdentities, WorkloadIdentities: &hyperv1.AzureWorkloadIdentities{
			ImageRegistry: id, Ingress: id, File: id, Disk: id, NodePoolManagement: id, CloudProvider: id, Network: id, ControlPlaneOperator: &id,
		}},
	}}
}

// run runs a program for the length of a test.
func run(t *testing.T, program func(ctx context.Context, cfg *rest.Config) error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	cfg := rest.CopyConfig(testenv.Start(t).Config)
	go func() { ended <- program(ctx, cfg) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the program ended with %v", err)
		}
	})
}

// start is a management cluster with a private hosted cluster whose router has a load balancer.
func start(t *testing.T) (client.Client, *hyperv1.AzurePrivateLinkService) {
	g := NewWithT(t)
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(hyperv1.AddToScheme(scheme)).To(Succeed())
	c := env.Client(t, scheme)
	hc := testenv.HostedCluster(env.Namespace(t), "demo")
	hc.Spec.InfraID, hc.Spec.ClusterID, hc.Spec.Platform = "demo-abcde", subscription, azure()
	for i := range hc.Spec.Services {
		hc.Spec.Services[i].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{}}
	}
	g.Expect(c.Create(t.Context(), hc)).To(Succeed())
	ns := names.NamespaceOf(hc)
	g.Expect(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})).To(Succeed())
	spec := hc.Spec
	g.Expect(c.Create(t.Context(), &hyperv1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "demo"},
		Spec: hyperv1.HostedControlPlaneSpec{ReleaseImage: "registry.invalid/release:1", PullSecret: spec.PullSecret, Platform: spec.Platform, Networking: spec.Networking, Services: spec.Services,
			IssuerURL: spec.IssuerURL, InfraID: spec.InfraID, ControllerAvailabilityPolicy: hyperv1.SingleReplica,
			Etcd: hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}}},
	})).To(Succeed())
	link := &hyperv1.AzurePrivateLinkService{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "private-router", Annotations: map[string]string{hyperv1.HostedClusterAnnotation: names.BackReference(hc)}},
		Spec: hyperv1.AzurePrivateLinkServiceSpec{LoadBalancerIP: "10.0.0.7", SubscriptionID: subscription, ResourceGroupName: "guest", Location: "westeurope",
			GuestSubnetID: network + "/subnets/s", GuestVNetID: network},
	}
	g.Expect(c.Create(t.Context(), link)).To(Succeed())
	return c, link
}

func TestPrograms(t *testing.T) {
	c, link := start(t)
	namespace := link.Namespace // link is read again and again while the programs run
	said := func(condition string) func() string {
		return func() string {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(link), link); err != nil {
				return err.Error()
			}
			if found := conditions.Get(link.Status.Conditions, condition); found != nil {
				return found.Message
			}
			return ""
		}
	}
	t.Run("When the operator's credentials are gone the program beside it should say so of each link", func(t *testing.T) {
		t.Setenv("AZURE_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
		run(t, func(ctx context.Context, cfg *rest.Config) error { return RunManagement(ctx, cfg, scope.Identity{}) })
		NewWithT(t).Eventually(said(hyperv1.AzureInternalLoadBalancerAvailable), patience, "250ms").Should(ContainSubstring("--azure-private-creds"))
	})
	t.Run("When the control-plane-operator has no identity the program beside it should say so once there is something to connect to", func(t *testing.T) {
		g := NewWithT(t)
		for _, name := range []string{"AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE"} {
			t.Setenv(name, "")
		}
		run(t, func(ctx context.Context, cfg *rest.Config) error { return RunControlPlane(ctx, cfg, namespace) })
		g.Expect(said(hyperv1.AzurePrivateEndpointAvailable)()).To(BeEmpty())
		link.Status.PrivateLinkServiceAlias = "pls.6c1f5f2c-9a0d-4a1e-8d57-0d5b2b8f0b11.westeurope.azure.privatelinkservice"
		g.Expect(c.Status().Update(t.Context(), link)).To(Succeed())
		g.Eventually(said(hyperv1.AzurePrivateEndpointAvailable), patience, "250ms").Should(ContainSubstring("workloadIdentities.controlPlaneOperator"))
	})
}
