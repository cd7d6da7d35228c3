package api_test

import (
	"context"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/testenv"
)

// warnings collects what an API server warns of.
type warnings struct {
	mu   sync.Mutex
	list []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, text)
}

func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.list
	w.list = nil
	return list
}

const unserved = `
apiVersion: hypershift.openshift.io/v1beta1
kind: CertificateSigningRequestApproval
metadata: {name: demo}
`

func TestUnservedKinds(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	g.Expect(admissionv1.AddToScheme(scheme)).To(Succeed())
	c := env.Client(t, scheme)
	policy, binding := config.UnservedPolicy()
	g.Expect(c.Create(t.Context(), policy)).To(Succeed())
	g.Expect(c.Create(t.Context(), binding)).To(Succeed())
	t.Cleanup(func() { _ = c.Delete(context.Background(), binding); _ = c.Delete(context.Background(), policy) })
	heard := &warnings{}
	cfg := rest.CopyConfig(env.Config)
	cfg.WarningHandler = heard
	loud, err := client.New(cfg, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	ns := env.Namespace(t)
	t.Run("When nobody acts on a kind its API should take the object and warn", func(t *testing.T) {
		g := NewWithT(t)
		g.Eventually(func() []string {
			obj := parse(t, unserved)
			obj.SetNamespace(ns)
			g.Expect(loud.Create(t.Context(), obj, client.DryRunAll)).To(Succeed())
			return heard.take()
		}).WithTimeout(30 * time.Second).WithPolling(100 * time.Millisecond).
			Should(ContainElement(ContainSubstring("nothing acts on CertificateSigningRequestApproval: only that of group certificates.hypershift.openshift.io approves a request")))
	})
	t.Run("When a controller acts on a kind it should not warn", func(t *testing.T) {
		g := NewWithT(t)
		obj := parse(t, baseHostedCluster)
		obj.SetNamespace(ns)
		obj.SetName("demo")
		g.Expect(loud.Create(t.Context(), obj, client.DryRunAll)).To(Succeed())
		g.Expect(heard.take()).To(BeEmpty())
	})
}
