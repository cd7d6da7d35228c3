package hostedcontrolplane

import (
	"bytes"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/pki"
)

// signing is the certificate of the authority of etcd that signs.
func (w *world) signing() []byte { return w.secrets()[pki.EtcdSigner].Data[pki.CACertKey] }

// trusted is how many authorities of etcd are trusted.
func (w *world) trusted() int {
	data := w.secrets()[pki.EtcdSigner].Data
	return strings.Count(string(data["previous.crt"])+string(data[pki.CACertKey])+string(data["next.crt"]), "BEGIN CERTIFICATE")
}

// annotate asks for something at the present time.
func (w *world) annotate(key string) {
	w.update(func(h *hyperv1.HostedControlPlane) {
		if h.Annotations == nil {
			h.Annotations = map[string]string{}
		}
		h.Annotations[key] = w.clock.Now().UTC().Format(time.RFC3339)
	})
}

// TestTrustRolledOut: an authority takes no step before all components are seen to run with what the step before it has changed.
func TestTrustRolledOut(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	g.Expect(w.settle(w.c)).To(Succeed())
	r := w.reconciler(w.c)
	pass := func() error { _, err := r.Reconcile(t.Context(), requestFor(w.hcp)); return err }
	later := func(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }
	// rest lets components take up what was written, and the process see it, until it wants no pass soon.
	rest := func() {
		for range maxPasses {
			result, err := r.Reconcile(t.Context(), requestFor(w.hcp))
			g.Expect(err).NotTo(HaveOccurred())
			if !w.play() && result.RequeueAfter > time.Second {
				return
			}
		}
		t.Fatal("it does not come to rest")
	}
	g.Expect(pass()).To(Succeed())
	first := w.signing()

	later(time.Hour)
	w.annotate(pki.RotateBeforeAnnotation)
	w.lookup = errBroken
	for range 3 {
		g.Expect(pass()).To(MatchError(errBroken))
		later(2 * time.Hour)
	}
	g.Expect(w.trusted()).To(Equal(2), "certificates are made all the same")
	reports := &hyperv1.ControlPlaneComponentList{}
	g.Expect(w.c.List(t.Context(), reports, client.InNamespace(w.hcp.Namespace))).To(Succeed())
	for i := range reports.Items {
		for _, c := range reports.Items[i].Status.Conditions {
			g.Expect(c.Type == hyperv1.ControlPlaneComponentRolloutComplete && c.Status != "True").To(BeFalse(), "%s: it is that of before that is to deceive nobody", reports.Items[i].Name)
		}
	}
	g.Expect(w.signing()).To(Equal(first), "When passes end before components have the new bundles, no successor should sign, whatever components said before")

	w.lookup = nil
	g.Expect(pass()).To(Succeed())
	g.Expect(w.signing()).To(Equal(first), "When components have just got them it should wait until they run with them")
	rest()
	g.Expect(w.signing()).NotTo(Equal(first), "When all run with them it should sign")

	later(time.Hour)
	w.annotate(pki.RotateBeforeAnnotation)
	rest()
	later(2 * time.Hour)
	w.annotate(pki.RevokeBeforeAnnotation)
	first = w.signing()
	w.lookup = errBroken
	for range 3 {
		g.Expect(pass()).To(MatchError(errBroken))
		later(2 * time.Hour)
	}
	g.Expect(w.signing()).NotTo(Equal(first), "components had the bundles")
	g.Expect(w.trusted()).To(BeNumerically(">", 1), "When components have not got the new certificates the old authority should stay trusted")
	w.lookup = nil
	rest()
	g.Expect(w.trusted()).To(Equal(1), "When they run with the new ones it should be revoked")

	// A process that has just started knows nothing.
	later(time.Hour)
	w.annotate(pki.RotateBeforeAnnotation)
	g.Expect(pass()).To(Succeed())
	rest()
	later(2 * time.Hour)
	r = w.reconciler(w.c)
	second := bytes.Clone(w.signing())
	result, err := r.Reconcile(t.Context(), requestFor(w.hcp))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.signing()).To(Equal(second), "When the process is new it should see all components with its own eyes first")
	g.Expect(result.RequeueAfter).To(BeNumerically("<=", time.Second), "and not lose time over it")
	g.Expect(pass()).To(Succeed())
	g.Expect(w.signing()).NotTo(Equal(second))
}
