package pki

import (
	"bytes"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// TestOrders: a step that is asked for on the Secret of an authority stands in nobody's way.
func TestOrders(t *testing.T) {
	order := func(a *aging, authority string) string {
		return a.obs.Secrets[authority].Annotations[RotationAnnotation]
	}
	signing := func(a *aging, authority string) []byte { return bytes.Clone(a.obs.Secrets[authority].Data[CACertKey]) }
	t.Run("When former ones are to be forgotten and there are none it should count as done, and replacements go on", func(t *testing.T) {
		g := NewWithT(t)
		a := newAging(t)
		first := signing(a, EtcdSigner)
		a.ask(EtcdSigner, RotationForget)
		g.Expect(reasons(a.pass())).To(HaveKeyWithValue("secret clusters-demo/etcd-signer", "there is nothing to do for step forget, which somebody asked for"))
		g.Expect(order(a, EtcdSigner)).To(BeEmpty())
		g.Expect(a.pass().Empty()).To(BeTrue())
		a.ask(EtcdSigner, RotationForget) // in the same pass
		a.replace()
		g.Expect(signing(a, EtcdSigner)).NotTo(Equal(first))
		g.Expect(a.trusted(EtcdSigner)).To(Equal(2))
	})
	t.Run("When it is asked to be prepared again it should count as done, and be replaced when that is asked for", func(t *testing.T) {
		g := NewWithT(t)
		a := newAging(t)
		first := signing(a, EtcdSigner)
		for range 2 {
			a.ask(EtcdSigner, RotationPrepare)
			a.pass()
			g.Expect(a.trusted(EtcdSigner)).To(Equal(2))
			g.Expect(order(a, EtcdSigner)).To(BeEmpty())
		}
		a.replace()
		g.Expect(signing(a, EtcdSigner)).NotTo(Equal(first))
	})
	t.Run("When former ones were to be forgotten years before the switch nodes should keep their certificates after it", func(t *testing.T) {
		g := NewWithT(t)
		a := newAging(t)
		a.ask(ClusterSigner, RotationForget)
		a.pass()
		a.now = noon.Add(caValidity - switchLeft - 24*time.Hour)
		a.pass()
		kubelet, first := a.obs.sign(t, ClusterSigner, a.now, clusterSigning), signing(a, ClusterSigner)
		for range 3 {
			a.now = a.now.Add(48 * time.Hour)
			a.pass()
		}
		g.Expect(signing(a, ClusterSigner)).NotTo(Equal(first))
		g.Expect(a.obs.refused(kubelet, a.now)).To(BeEmpty())
	})
	t.Run("When former ones are to be forgotten as a successor takes over the one that it replaces should stay", func(t *testing.T) {
		g := NewWithT(t)
		a := newAging(t)
		a.replace()
		a.ask(ClusterSigner, RotationPrepare)
		a.pass()
		a.now = a.now.Add(caValidity - switchLeft)
		kubelet := a.obs.sign(t, ClusterSigner, a.now, clusterSigning)
		a.obs.Secrets[ClusterSigner].Annotations[switchedAnnotation] = a.now.Add(-time.Hour).Format(time.RFC3339) // else the first has come to its end
		a.ask(ClusterSigner, RotationForget)
		for range 2 {
			a.pass()
			g.Expect(order(a, ClusterSigner)).To(BeEmpty())
			g.Expect(formers(a.obs.Secrets[ClusterSigner].Data[previousCertKey], time.Time{})).To(HaveLen(1))
			g.Expect(a.obs.refused(kubelet, a.now)).To(BeEmpty())
		}
	})
	t.Run("When a step is unknown it should say so for as long as it is there, and replacements go on", func(t *testing.T) {
		g := NewWithT(t)
		a := newAging(t)
		first := signing(a, EtcdSigner)
		a.ask(EtcdSigner, "swich")
		for range 2 {
			plan := a.pass()
			g.Expect(plan.Empty()).To(BeTrue())
			g.Expect(plan.Problems).To(ConsistOf(MatchError(`annotation hypershift.openshift.io/rotate-authority of Secret clusters-demo/etcd-signer is ignored: it is "swich", and must be prepare, switch or forget`)))
		}
		a.replace()
		g.Expect(signing(a, EtcdSigner)).NotTo(Equal(first))
	})
	t.Run("When a switch waits for the end of former ones it should not keep them from being revoked", func(t *testing.T) {
		g := NewWithT(t)
		a := newAging(t)
		for range maxFormer {
			a.replace()
		}
		first := signing(a, EtcdSigner)
		a.ask(EtcdSigner, RotationSwitch)
		plan := a.pass()
		g.Expect(plan.Empty()).To(BeTrue())
		g.Expect(plan.Problems).To(ContainElement(MatchError(ContainSubstring("etcd-signer is not replaced before"))))
		g.Expect(order(a, EtcdSigner)).To(Equal(RotationSwitch))
		a.spec.RevokeBefore = a.spec.RotateBefore
		for range 4 {
			a.now = a.now.Add(2 * settle)
			a.pass()
		}
		g.Expect(a.trusted(EtcdSigner)).To(Equal(2))
		g.Expect(signing(a, EtcdSigner)).NotTo(Equal(first))
		g.Expect(order(a, EtcdSigner)).To(BeEmpty())
	})
}
