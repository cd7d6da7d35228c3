// Package platformtest is the suite that every implementation of platform.Platform passes.
package platformtest

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform"
)

// Run checks the contract of platform.Platform on what newPlatform makes.
func Run(t *testing.T, newPlatform func() platform.Platform) {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}}
	hc.Spec.InfraID = "demo-abcde"

	t.Run("When the infrastructure object is computed twice it should be the same", func(t *testing.T) {
		g := NewWithT(t)
		endpoint := hyperv1.APIEndpoint{Host: "10.0.0.1", Port: 6443}
		first, err := newPlatform().InfraCR(hc.DeepCopy(), "clusters-demo", endpoint)
		g.Expect(err).NotTo(HaveOccurred())
		second, err := newPlatform().InfraCR(hc.DeepCopy(), "clusters-demo", endpoint)
		g.Expect(err).NotTo(HaveOccurred())
		if first == nil {
			g.Expect(second).To(BeNil())
			return
		}
		g.Expect(second).To(BeComparableTo(first))
		g.Expect(first.GetNamespace()).To(Equal("clusters-demo"))
	})
	t.Run("When there is no HostedControlPlane yet it should still say which provider runs", func(t *testing.T) {
		_, err := newPlatform().CAPIProvider(hc.DeepCopy(), nil)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
	t.Run("When nothing was made it should delete nothing and succeed, twice", func(t *testing.T) {
		g := NewWithT(t)
		c := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
		for range 2 {
			g.Expect(newPlatform().DeleteCredentials(t.Context(), c, hc.DeepCopy(), "clusters-demo")).To(Succeed())
		}
	})
}
