package gcp

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/machine"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// pools change the example that has every field.
var pools = map[string]func(*hyperv1.GCPNodePoolPlatform){
	"every field": func(*hyperv1.GCPNodePoolPlatform) {},
	"only what is required": func(p *hyperv1.GCPNodePoolPlatform) {
		*p = hyperv1.GCPNodePoolPlatform{MachineType: p.MachineType, Zone: p.Zone, Image: "projects/p/global/images/i"}
	},
	"machines that may be ended":  func(p *hyperv1.GCPNodePoolPlatform) { p.ProvisioningModel, p.OnHostMaintenance = "Preemptible", "" },
	"machines that may not":       func(p *hyperv1.GCPNodePoolPlatform) { p.ProvisioningModel, p.OnHostMaintenance = "Standard", "MIGRATE" },
	"a disk with no key":          func(p *hyperv1.GCPNodePoolPlatform) { p.BootDisk.EncryptionKey = nil },
	"an account without scopes":   func(p *hyperv1.GCPNodePoolPlatform) { p.ServiceAccount.Scopes = nil },
	"an image that is named":      func(p *hyperv1.GCPNodePoolPlatform) { p.Image = "projects/p/global/images/i" },
	"neither labels nor tags":     func(p *hyperv1.GCPNodePoolPlatform) { p.ResourceLabels, p.NetworkTags = nil, nil },
	"the subnet of the cluster's": func(p *hyperv1.GCPNodePoolPlatform) { p.Subnet = "" },
}

// TestProviderTakesObjects has an API server with the definitions of the stock provider judge everything that we write for it.
func TestProviderTakesObjects(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	_, err := envtest.InstallCRDs(env.Config, envtest.CRDInstallOptions{Paths: []string{"testdata/provider"}, ErrorIfPathMissing: true, MaxTime: 3 * time.Minute})
	g.Expect(err).NotTo(HaveOccurred())
	c, ns := env.Client(t, runtime.NewScheme()), env.Namespace(t)
	raw, err := os.ReadFile("../testdata/gcp/input.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	example := struct {
		Cluster hyperv1.HostedClusterSpec `json:"cluster"`
		Pool    hyperv1.NodePoolSpec      `json:"pool"`
	}{}
	g.Expect(yaml.Unmarshal(raw, &example)).To(Succeed())
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}, Spec: example.Cluster}
	hc.Spec.InfraID = "demo-abcde"

	for name, change := range pools {
		t.Run("When the pool has "+name+" the provider should take the template", func(t *testing.T) {
			g := NewWithT(t)
			pool := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "workers"}, Spec: *example.Pool.DeepCopy()}
			pool.Spec.Platform.GCP.Image = "projects/p/global/images/j"
			change(pool.Spec.Platform.GCP)
			template, err := Platform{}.MachineTemplate(machine.Input{HostedCluster: hc, NodePool: pool})
			g.Expect(err).NotTo(HaveOccurred())
			template.Object.SetNamespace(ns)
			template.Object.SetName("workers-1")
			g.Expect(c.Create(t.Context(), template.Object, client.DryRunAll, client.FieldValidation("Strict"))).To(Succeed())
		})
	}
	t.Run("When there is a cluster the provider should take it, and that it is ready", func(t *testing.T) {
		g := NewWithT(t)
		infra, err := Platform{}.InfraCR(hc, ns, hyperv1.APIEndpoint{Host: "api.example.com", Port: 6443})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Create(t.Context(), infra, client.FieldValidation("Strict"))).To(Succeed())
		g.Expect(c.Status().Patch(t.Context(), infra, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"ready":true}}`)))).To(Succeed())
	})
}
