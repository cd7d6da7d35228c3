package component

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestTemplateData(t *testing.T) {
	files := map[string]string{"config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{.name}}-config\n"}
	names := func(t *testing.T, name string) (found []string) {
		t.Helper()
		out, err := NewDeploymentComponent(name, folder(files), Options{}).WithTemplateData(map[string]string{"name": name}).Build().Render(contextOf(t, nil))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, m := range out.Manifests {
			found = append(found, m.GetName())
		}
		return append(found, out.Workload.GetName())
	}
	t.Run("When two components share a folder each should have names of its own", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(names(t, "web-a")).To(ConsistOf("web-a-config", "web-a"))
		g.Expect(names(t, "web-b")).To(ConsistOf("web-b-config", "web-b"))
	})
	t.Run("When a template asks for what is not there it should not build", func(t *testing.T) {
		b := NewDeploymentComponent("web", folder(files), Options{}).WithTemplateData(map[string]string{"other": "x"})
		NewWithT(t).Expect(func() { b.Build() }).To(PanicWith(ContainSubstring("config.yaml")))
	})
	t.Run("When there is no data braces should be plain text", func(t *testing.T) {
		plain := map[string]string{"config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  k: '{{.x}}'\n"}
		out, err := NewDeploymentComponent("web", folder(plain), Options{}).Build().Render(contextOf(t, nil))
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out.Manifests[0].(*corev1.ConfigMap).Data).To(HaveKeyWithValue("k", "{{.x}}"))
	})
}

func TestDisruptionBudgetOf(t *testing.T) {
	t.Run("When a component stands the loss of a pod one may go, whatever the control plane stands", func(t *testing.T) {
		g := NewWithT(t)
		files := map[string]string{"pdb.yaml": "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata:\n  name: web\n"}
		always := func(WorkloadContext) bool { return true }
		c := NewDeploymentComponent("web", folder(files), Options{}).WithManifestAdapter("pdb.yaml", AdaptPodDisruptionBudgetOf(always)).Build()
		out, err := c.Render(contextOf(t, func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.ControllerAvailabilityPolicy = hyperv1.SingleReplica }))
		g.Expect(err).NotTo(HaveOccurred())
		pdb := out.Manifests[0].(*policyv1.PodDisruptionBudget)
		g.Expect(pdb.Spec.MaxUnavailable.IntValue()).To(Equal(1))
		g.Expect(pdb.Spec.MinAvailable).To(BeNil())
	})
}
