package hostedcluster

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
)

// decoded is a HostedCluster with a spec as JSON has it.
func TestRefusedFields(t *testing.T) {
	t.Run("When a field is refused nothing should be written, and the condition name field and remedy", func(t *testing.T) {
		g := NewWithT(t)
		obs := seen(func(obs *observed) { obs.hc.Spec.FIPS = true })
		setStatus(obs, noon)
		c := conditions.Get(obs.hc.Status.Conditions, hyperv1.ValidHostedClusterConfiguration)
		g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(c.Message).To(HavePrefix("spec.fips: "))
		for _, s := range planFor(obs, setStatus(obs, noon), noon, options{}).steps {
			g.Expect(s.apply).To(BeEmpty())
			g.Expect(s.create).To(BeNil())
		}
	})
}

func TestFlavour(t *testing.T) {
	openShift := func(obs *observed) {
		r := *releaseOf(image135)
		r.Version, r.Kubernetes = "4.20.1", false
		obs.userRelease, obs.target = &r, &r
	}
	t.Run("When the release is one of OpenShift it should be refused before anything is written", func(t *testing.T) {
		g := NewWithT(t)
		obs := seen(openShift)
		setStatus(obs, noon)
		c := conditions.Get(obs.hc.Status.Conditions, hyperv1.SupportedHostedCluster)
		g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(c.Reason).To(Equal(hyperv1.UnsupportedHostedClusterReason))
		g.Expect(c.Message).To(Equal("spec.release.image: " + image135 + " is release 4.20.1 of OpenShift, which this operator does not host: name a release of Kubernetes 1.34 to 1.36"))
		g.Expect(planFor(obs, setStatus(obs, noon), noon, options{}).steps).To(BeEmpty())
	})
	t.Run("When the registry goes away afterwards it should not forget", func(t *testing.T) {
		g := NewWithT(t)
		obs := seen(openShift)
		setStatus(obs, noon)
		obs.userRelease, obs.target, obs.releaseErr = nil, nil, errors.New("no answer")
		setStatus(obs, noon)
		g.Expect(conditions.IsFalse(obs.hc.Status.Conditions, hyperv1.SupportedHostedCluster)).To(BeTrue())
	})
	t.Run("When another release is named it should be hosted", func(t *testing.T) {
		g := NewWithT(t)
		obs := seen(openShift)
		setStatus(obs, noon)
		obs.hc.Generation++
		obs.userRelease, obs.target = releaseOf(image135), releaseOf(image135)
		setStatus(obs, noon)
		g.Expect(conditions.IsTrue(obs.hc.Status.Conditions, hyperv1.SupportedHostedCluster)).To(BeTrue())
	})
	t.Run("When a developer skips the check it should be tried", func(t *testing.T) {
		g := NewWithT(t)
		obs := seen(openShift, func(obs *observed) {
			obs.hc.Annotations = map[string]string{hyperv1.SkipReleaseImageValidation: "true"}
		})
		setStatus(obs, noon)
		g.Expect(conditions.IsTrue(obs.hc.Status.Conditions, hyperv1.SupportedHostedCluster)).To(BeTrue())
	})
}

func TestIgnitionEndpoint(t *testing.T) {
	running := func(obs *observed) {
		obs.ignition = &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)},
			Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: "True"}}}}
		obs.ignitionEndpoint = "192.0.2.10:30443"
	}
	for name, tc := range map[string]struct {
		world func(*observed)
		want  string
	}{
		"When it serves where machines reach it it should be available": {world: func(*observed) {}, want: "True"},
		"When it has no replicas it should not be":                      {world: func(obs *observed) { obs.ignition.Spec.Replicas = ptr.To[int32](0) }, want: "False"},
		"When nobody can reach it it should not be":                     {world: func(obs *observed) { obs.ignitionEndpoint = "" }, want: "False"},
		"When there is none it should not be":                           {world: func(obs *observed) { obs.ignition = nil }, want: "False"},
		"When it has not said how it is it should be unknown":           {world: func(obs *observed) { obs.ignition.Status.Conditions = nil }, want: "Unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(string(ignitionEndpoint(seen(running, tc.world)).Status)).To(Equal(tc.want))
		})
	}
}
