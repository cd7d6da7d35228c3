package hostedcluster

import (
	"fmt"
	"net"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/hostedclustertest"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/release"
)

// TestNoisyTenant: more hosted clusters of one tenant than there are workers, with many mirrors on a host that takes connections and never says anything.
func TestNoisyTenant(t *testing.T) {
	t.Parallel()
	g, w := NewWithT(t), newWorld(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer silent.Close()
	noisy := w.env.Namespace(t)
	secret := w.pullSecret()
	secret.Namespace = noisy
	g.Expect(w.client.Create(t.Context(), secret)).To(Succeed())
	for i := range 2 * operator.ConcurrentReconciles {
		hc := hostedclustertest.Example(noisy, fmt.Sprintf("registry.example.com/release:%d", i), func(hc *hyperv1.HostedCluster) {
			hc.Name = fmt.Sprintf("noisy-%d", i)
			hc.Annotations[hyperv1.HostedClusterScopeAnnotation] = w.ns
			for s := range 20 {
				source := hyperv1.ImageContentSource{Source: "registry.example.com"}
				for m := range 20 {
					source.Mirrors = append(source.Mirrors, fmt.Sprintf("%s/m%d-%d-%d", silent.Addr(), i, s, m))
				}
				hc.Spec.ImageContentSources = append(hc.Spec.ImageContentSources, source)
			}
		})
		g.Expect(w.client.Create(t.Context(), hc)).To(Succeed())
	}
	w.releases = release.NewRegistryProvider(release.Options{Patience: operator.LookupPatience})
	w.run(t, rest.CopyConfig(w.env.Config), func(*Reconciler) {})
	g.Eventually(func(g Gomega) {
		list := &hyperv1.HostedClusterList{}
		g.Expect(w.client.List(t.Context(), list)).To(Succeed())
		said := 0
		for i := range list.Items {
			if c := conditions.Get(list.Items[i].Status.Conditions, hyperv1.ValidReleaseImage); list.Items[i].Namespace == noisy && c != nil {
				said++
			}
		}
		g.Expect(said).To(BeNumerically(">", operator.ConcurrentReconciles), "workers don't wait")
	}, time.Minute).Should(Succeed())

	begin := time.Now()
	g.Expect(w.client.Create(t.Context(), w.hostedCluster())).To(Succeed())
	g.Eventually(func(g Gomega) {
		hc, err := w.get(t.Context(), "demo")
		g.Expect(err).NotTo(HaveOccurred())
		c := conditions.Get(hc.Status.Conditions, hyperv1.ValidReleaseImage)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Status).To(Equal(metav1.ConditionTrue), c.Message)
	}, 50*time.Second).Should(Succeed(), "a noisy tenant's wait a minute each")
	t.Logf("a quiet tenant's release was found in %s", time.Since(begin))
}
