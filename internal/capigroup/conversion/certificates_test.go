package conversion

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestPlan(t *testing.T) {
	names := []string{"s.ns.svc", "s.ns.svc.cluster.local"}
	plan := func(g *WithT, now time.Time, have Certificates) Certificates {
		out, err := Plan(now, names, have)
		g.Expect(err).NotTo(HaveOccurred())
		cert, _, err := parse(out.Cert, out.Key)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(trusted(cert, out.CABundle, now)).To(BeTrue())
		return out
	}
	t.Run("When nothing is due it should change nothing", func(t *testing.T) {
		g := NewWithT(t)
		first := plan(g, noon, Certificates{})
		g.Expect(plan(g, noon.Add(certValidity/5*4-time.Hour), first).equal(first)).To(BeTrue())
	})
	t.Run("When the certificate is late, of other names or unreadable it should be renewed by the same signer", func(t *testing.T) {
		g := NewWithT(t)
		first := plan(g, noon, Certificates{})
		later := plan(g, noon.Add(certValidity/5*4+time.Hour), first)
		g.Expect(later.CABundle).To(Equal(first.CABundle))
		g.Expect(later.Cert).NotTo(Equal(first.Cert))
		other, err := Plan(noon, []string{"t.ns.svc"}, first)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(other.Cert).NotTo(Equal(first.Cert))
		half := first
		half.Key = []byte("half a fi")
		g.Expect(plan(g, noon, half).CABundle).To(Equal(first.CABundle))
	})
	t.Run("When the signer is late it should serve with the old certificate while callers learn of the new signer", func(t *testing.T) {
		g := NewWithT(t)
		have := plan(g, noon, Certificates{})
		now := noon
		for now.Before(noon.Add(20 * 365 * 24 * time.Hour)) {
			now = now.Add(30 * 24 * time.Hour)
			next := plan(g, now, have)
			newSigner, newCert := string(next.CABundle) != string(have.CABundle), string(next.Cert) != string(have.Cert)
			g.Expect(newSigner && newCert).To(BeFalse(), "at %s", now)
			cert, _, err := parse(next.Cert, next.Key)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(trusted(cert, have.CABundle, now)).To(BeTrue(), "who has not heard of a change trusts what is served, at %s", now)
			have = next
		}
	})
	t.Run("When the signer is lost it should begin again", func(t *testing.T) {
		g := NewWithT(t)
		first := plan(g, noon, Certificates{})
		lost := first
		lost.CAKey = nil
		again := plan(g, noon, lost)
		g.Expect(again.CAKey).NotTo(BeEmpty())
		g.Expect(again.Cert).To(Equal(first.Cert), "what is trusted already goes on")
	})
}
