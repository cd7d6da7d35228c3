package hostedcluster

import (
	"encoding/pem"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

func TestTrustBundleOfRegistries(t *testing.T) {
	t.Run("When only the additional trust bundle knows who signed the registry's certificate the release should be read", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		target, err := url.Parse(w.registry.URL)
		g.Expect(err).NotTo(HaveOccurred())
		server := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(target))
		t.Cleanup(server.Close)
		w.image = strings.Replace(w.image, w.registry.Host, strings.TrimPrefix(server.URL, "https://"), 1)
		ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
		g.Expect(w.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "authorities"}, Data: map[string]string{names.CABundleKey: ca}})).To(Succeed())

		g.Expect(w.client.Create(t.Context(), w.hostedCluster())).To(Succeed())
		pass := func() {
			t.Helper()
			for range 3 {
				_, _ = w.reconciler(w.client).Reconcile(t.Context(), w.request("demo")) // the condition is what counts
			}
		}
		pass()
		g.Expect(w.condition(t.Context(), "demo", hyperv1.ValidReleaseImage)()).NotTo(HavePrefix("True/"))
		g.Expect(w.client.Patch(t.Context(), w.hostedCluster(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"additionalTrustBundle":{"name":"authorities"}}}`)))).To(Succeed())
		pass()
		g.Expect(w.condition(t.Context(), "demo", hyperv1.ValidReleaseImage)()).To(HavePrefix("True/"))
	})
}
