package pki

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/contract/names"
)

func TestClientCA(t *testing.T) {
	user := func(content string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "users"}, Data: map[string]string{names.CABundleKey: content}}
	}
	spec := demo(func(s *Spec) { s.ClientCA = "users" })
	authority := string(apply(Observed{}, PlanFor(demo(), Observed{}, source(noon))).Secrets[RootCA].Data[CACertKey])
	g := NewWithT(t)
	g.Expect(spec.configMapNames()).To(ContainElement("users"))

	t.Run("When the user has authorities of client certificates the API server should trust them beside ours", func(t *testing.T) {
		g := NewWithT(t)
		obs := Observed{ConfigMaps: map[string]*corev1.ConfigMap{"users": user(authority)}}
		plan := PlanFor(spec, obs, source(noon))
		g.Expect(plan.Problems).To(BeEmpty())
		bundle := apply(obs, plan).ConfigMaps[ClientCABundle].Data[CACertKey]
		g.Expect(bundle).To(HaveSuffix(authority))
		g.Expect(len(bundle)).To(BeNumerically(">", len(authority)))
	})
	t.Run("When they are not there yet the API server should start without them, and somebody be told", func(t *testing.T) {
		g := NewWithT(t)
		plan := PlanFor(spec, Observed{}, source(noon))
		g.Expect(plan.Problems).To(ConsistOf(MatchError(ContainSubstring("spec.configuration.apiServer.clientCA"))))
		g.Expect(apply(Observed{}, plan).ConfigMaps).To(HaveKey(ClientCABundle))
	})
	t.Run("When they go away what was trusted should stay so", func(t *testing.T) {
		g := NewWithT(t)
		obs := Observed{ConfigMaps: map[string]*corev1.ConfigMap{"users": user(authority)}}
		obs = apply(obs, PlanFor(spec, obs, source(noon)))
		delete(obs.ConfigMaps, "users")
		plan := PlanFor(spec, obs, source(noon))
		g.Expect(plan.Problems).NotTo(BeEmpty())
		g.Expect(apply(obs, plan).ConfigMaps[ClientCABundle]).To(Equal(obs.ConfigMaps[ClientCABundle]))
	})
}
