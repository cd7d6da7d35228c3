package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/hostedcluster/statetest"
	"hcp.internal/platform/internal/hostedcluster/status"
	"hcp.internal/platform/internal/hostedcluster/validate"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/release"
)

// decoded is a HostedCluster with a spec as JSON has it.
func TestRefusedFields(t *testing.T) {
	t.Run("When a field is refused nothing should be written, and the condition name field and remedy", func(t *testing.T) {
		g := NewWithT(t)
		obs := statetest.Seen(func(obs *state.Observed) { obs.HC.Spec.FIPS = true })
		status.Set(obs, statetest.Noon)
		c := conditions.Get(obs.HC.Status.Conditions, hyperv1.ValidHostedClusterConfiguration)
		g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(c.Message).To(HavePrefix("spec.fips: "))
		for _, s := range planFor(obs, status.Set(obs, statetest.Noon), statetest.Noon, options{}).steps {
			g.Expect(s.Apply).To(BeEmpty())
			g.Expect(s.Create).To(BeNil())
		}
	})
}

func TestFlavour(t *testing.T) {
	openShift := func(obs *state.Observed) {
		r := *statetest.ReleaseOf(statetest.Image135)
		r.Version, r.Kubernetes = "4.20.1", false
		obs.UserRelease, obs.Target = &r, &r
	}
	t.Run("When the release is an OpenShift payload it should be hosted", func(t *testing.T) {
		g := NewWithT(t)
		obs := statetest.Seen(openShift)
		obs.HC.Spec.Configuration = &hyperv1.ClusterConfiguration{Ingress: &configv1.IngressSpec{Domain: "apps.example.com"}}
		steps := planFor(obs, status.Set(obs, statetest.Noon), statetest.Noon, options{}).steps
		g.Expect(conditions.IsTrue(obs.HC.Status.Conditions, hyperv1.SupportedHostedCluster)).To(BeTrue())
		g.Expect(conditions.IsTrue(obs.HC.Status.Conditions, hyperv1.ValidReleaseImage)).To(BeTrue())
		g.Expect(steps).NotTo(BeEmpty())
		heeded := conditions.Get(obs.HC.Status.Conditions, status.AllFieldsHeeded(obs).Type)
		g.Expect(heeded.Status).To(Equal(metav1.ConditionTrue), heeded.Message)
		g.Expect(validate.AllFieldsHeeded(obs.HC, false).Status).To(Equal(metav1.ConditionFalse), "a release of Kubernetes has no ingress of its own")
	})
	for name, version := range map[string]string{"too old": "4.13.9", "too new": "5.2.0", "of an unknown major version": "6.0.0"} {
		t.Run("When a payload is "+name+" it should be refused with the reason, before anything is written", func(t *testing.T) {
			g := NewWithT(t)
			obs := statetest.Seen(openShift)
			obs.UserRelease.Version = version
			p := planFor(obs, status.Set(obs, statetest.Noon), statetest.Noon, options{})
			c := conditions.Get(obs.HC.Status.Conditions, hyperv1.ValidReleaseImage)
			g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(c.Message).To(ContainSubstring("release version " + version))
			for _, s := range p.steps {
				g.Expect(append(s.Apply, s.Delete...)).To(BeEmpty())
				g.Expect(s.Create).To(BeNil())
			}
		})
	}
	t.Run("When the control plane is of another flavour than the cluster it should be refused", func(t *testing.T) {
		g := NewWithT(t)
		obs := statetest.Seen(openShift)
		obs.Target = statetest.ReleaseOf(statetest.Image135)
		g.Expect(planFor(obs, status.Set(obs, statetest.Noon), statetest.Noon, options{}).steps).To(BeEmpty())
		c := conditions.Get(obs.HC.Status.Conditions, hyperv1.SupportedHostedCluster)
		g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(c.Message).To(HavePrefix("spec.controlPlaneRelease.image: " + statetest.Image135))
	})
	t.Run("When a payload brings a control-plane-operator of its own it should run ours all the same, unless an annotation names another", func(t *testing.T) {
		g := NewWithT(t)
		payload := &release.Release{Version: "4.22.0", Images: map[string]string{releaseTag: "theirs"}}
		g.Expect(operatorImage(nil, payload, "ours")).To(Equal("ours"))
		g.Expect(operatorImage(map[string]string{hyperv1.ControlPlaneOperatorImageAnnotation: "named"}, payload, "ours")).To(Equal("named"))
	})
}
