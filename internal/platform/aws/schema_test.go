package aws

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/config"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// TestProviderTakesObjects has an API server with the provider's definitions judge everything that we write for it.
func TestProviderTakesObjects(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	crds, err := config.ProviderCRDs("AWS", false)
	g.Expect(err).NotTo(HaveOccurred())
	env.Install(t, crds...)
	c, ns := env.Client(t, runtime.NewScheme()), env.Namespace(t)
	strict := []client.CreateOption{client.DryRunAll, client.FieldValidation("Strict")}

	for name, change := range changes {
		t.Run("When the pool has "+name+" the provider should take the template", func(t *testing.T) {
			g := NewWithT(t)
			in := sample()
			change(&in, in.NodePool.Spec.Platform.AWS)
			template, err := Platform{}.MachineTemplate(in)
			g.Expect(err).NotTo(HaveOccurred())
			template.Object.SetNamespace(ns)
			template.Object.SetName("workers-1")
			g.Expect(c.Create(t.Context(), template.Object, strict...)).To(Succeed())
		})
	}
	t.Run("When there is a cluster the provider should take it, and that it is ready", func(t *testing.T) {
		g := NewWithT(t)
		in := sample()
		in.HostedCluster.Annotations = map[string]string{hyperv1.AWSMachinePublicIPs: "true"}
		Platform{}.Default(in.HostedCluster)
		infra, err := Platform{}.InfraCR(in.HostedCluster, ns, hyperv1.APIEndpoint{Host: "api.example.com", Port: 6443})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(Platform{}.CompleteInfra(infra, in.HostedCluster, []hyperv1.NodePool{*in.NodePool})).To(Succeed())
		g.Expect(c.Create(t.Context(), infra, client.FieldValidation("Strict"))).To(Succeed())
		g.Expect(c.Status().Patch(t.Context(), infra, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"ready":true}}`)))).To(Succeed())
	})
}
