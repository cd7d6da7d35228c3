package pki

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

// clusterSigning is for how long kube-controller-manager signs certificates of kubelets, by the flag in its manifests.
const clusterSigning = 17520 * time.Hour

// holder is somebody who has a certificate of an authority, such as a kubelet, or a person with a kubeconfig.
type holder struct {
	authority string
	signer    *x509.Certificate
	cert      *x509.Certificate
}

// sign gives somebody a certificate of the authority that signs in a state.
func (o Observed) sign(t interface{ Fatalf(string, ...any) }, authority string, now time.Time, life time.Duration) holder {
	ca, err := parsePair(o.Secrets[authority].Data[CACertKey], o.Secrets[authority].Data[CAKeyKey])
	if err != nil {
		t.Fatalf("reading authority %s: %v", authority, err)
	}
	key, err := testKeys(ECDSA)
	if err != nil {
		t.Fatalf("making a key: %v", err)
	}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "system:node:worker", Organization: []string{"system:nodes"}}, NotBefore: now.Add(-maxBackdate), NotAfter: now.Add(life),
		KeyUsage: keyUsage(key), ExtKeyUsage: bothAuth, BasicConstraintsValid: true}
	if template.NotAfter.After(ca.cert.NotAfter) {
		template.NotAfter = ca.cert.NotAfter
	}
	made, err := sign(template, ca.cert, key, ca.key, source(now))
	if err != nil {
		t.Fatalf("signing: %v", err)
	}
	return holder{authority, ca.cert, made.cert}
}

// refused says which bundle of a state does not accept the certificate of a holder; empty: all do.
func (o Observed) refused(h holder, now time.Time) string {
	for _, bundle := range map[string][]string{
		ClusterSigner: {ClientCABundle, KubeletCABundle}, SystemAdminSigner: {ClientCABundle}, EtcdSigner: {EtcdCABundle}, RootCA: {RootCABundle},
	}[h.authority] {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(o.ConfigMaps[bundle].Data[CACertKey]))
		if _, err := h.cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			return bundle + ": " + err.Error()
		}
	}
	return ""
}

// aging is a control plane whose components and nodes follow at once.
type aging struct {
	t interface {
		Helper()
		Fatalf(string, ...any)
	}
	spec Spec
	obs  Observed
	now  time.Time
}

// pass stores what is planned now.
func (a *aging) pass() Plan {
	a.t.Helper()
	a.spec.NodesTrust = follow(a.obs)
	plan := PlanFor(a.spec, a.obs, source(a.now))
	a.obs = apply(a.obs, plan)
	return plan
}

// replace has every authority replaced.
func (a *aging) replace() {
	a.t.Helper()
	a.now = a.now.Add(time.Hour)
	a.spec.RotateBefore = a.now
	before := bytes.Clone(a.obs.Secrets[ClusterSigner].Data[CACertKey])
	a.pass()
	a.now = a.now.Add(2 * settle)
	a.pass()
	if bytes.Equal(before, a.obs.Secrets[ClusterSigner].Data[CACertKey]) {
		a.t.Fatalf("%s was not replaced", ClusterSigner)
	}
}

func (a *aging) trusted(authority string) int {
	data := a.obs.Secrets[authority].Data
	return strings.Count(string(data[previousCertKey])+string(data[CACertKey])+string(data[nextCertKey]), "BEGIN CERTIFICATE")
}

func newAging(t *testing.T) *aging {
	spec := demo(func(s *Spec) { s.TrustRolledOut = true })
	return &aging{t, spec, settled(t, spec, noon), noon.Add(24 * time.Hour)}
}

func TestClusterSigningDuration(t *testing.T) {
	t.Run("When kube-controller-manager signs certificates of nodes it should be for as long as their authority is trusted", func(t *testing.T) {
		g := NewWithT(t)
		for _, dir := range []string{"kubecontrollermanager", "openshift/kubecontrollermanager"} {
			manifest, err := os.ReadFile(filepath.Join("..", "controlplane", dir, "assets", "deployment.yaml"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(manifest)).To(ContainSubstring(fmt.Sprintf("--cluster-signing-duration=%dh\n", int(clusterSigning.Hours()))))
		}
	})
}

func TestEarlierGenerations(t *testing.T) {
	t.Run("When authorities are replaced twice certificates of nodes from before should be accepted", func(t *testing.T) {
		g := NewWithT(t)
		a := newAging(t)
		kubelet, person := a.obs.sign(t, ClusterSigner, a.now, clusterSigning), a.obs.sign(t, SystemAdminSigner, a.now, DefaultValidity)
		a.replace()
		g.Expect(a.obs.refused(kubelet, a.now)).To(BeEmpty())
		a.replace()
		g.Expect(a.obs.refused(kubelet, a.now)).To(BeEmpty())
		g.Expect(a.obs.refused(person, a.now)).To(BeEmpty())
	})
	t.Run("When an authority of nodes was replaced it should be trusted for as long as what it signed is valid", func(t *testing.T) {
		g := NewWithT(t)
		a := newAging(t)
		a.replace()
		switched := a.now
		for _, after := range []time.Duration{401 * 24 * time.Hour, clusterSigning, clusterSigning + settle} {
			a.now = switched.Add(after)
			a.pass()
			g.Expect(a.trusted(ClusterSigner)).To(Equal(2), "%s later", after)
		}
		g.Expect(a.trusted(EtcdSigner)).To(Equal(1), "leaves of others live a year")
		a.now = a.now.Add(time.Minute)
		a.pass()
		g.Expect(a.trusted(ClusterSigner)).To(Equal(1))
	})
}

// ask has one authority take a step.
func (a *aging) ask(authority, step string) {
	setAll(&a.obs.Secrets[authority].Annotations, map[string]string{RotationAnnotation: step})
}

func TestForgetting(t *testing.T) {
	t.Run("When old authorities are revoked all of them should go, but for those of nodes, which go when that is asked for", func(t *testing.T) {
		g := NewWithT(t)
		a := newAging(t)
		a.replace()
		a.replace()
		kubelet := a.obs.sign(t, ClusterSigner, a.now, clusterSigning)
		a.replace()
		g.Expect(a.trusted(RootCA)).To(Equal(4))
		a.spec.RevokeBefore, a.now = a.now, a.now.Add(2*settle)
		a.pass()
		g.Expect(a.trusted(RootCA)).To(Equal(1))
		g.Expect(a.trusted(EtcdSigner)).To(Equal(1))
		g.Expect(a.trusted(ClusterSigner)).To(Equal(4))
		a.ask(ClusterSigner, RotationForget)
		a.pass()
		g.Expect(a.trusted(ClusterSigner)).To(Equal(1))
		g.Expect(a.obs.refused(kubelet, a.now)).NotTo(BeEmpty())
		g.Expect(a.pass().Empty()).To(BeTrue())
	})
	t.Run("When authorities are replaced again after old ones were revoked trust should last until its own end", func(t *testing.T) {
		for _, late := range []time.Duration{0, 2 * settle} { // the time of the replacement, or one after successors were made
			g := NewWithT(t)
			a := newAging(t)
			a.replace()
			a.spec.RevokeBefore, a.now = a.spec.RotateBefore.Add(late), a.now.Add(2*settle)
			a.pass()
			g.Expect(a.trusted(SystemAdminSigner)).To(Equal(1))
			person := a.obs.sign(t, SystemAdminSigner, a.now, DefaultValidity)
			a.ask(SystemAdminSigner, RotationSwitch)
			for range 4 { // prepared, switched, and time to end trust
				a.pass()
				a.now = a.now.Add(2 * settle)
			}
			g.Expect(a.trusted(SystemAdminSigner)).To(Equal(2), "%s later", late)
			g.Expect(a.obs.refused(person, a.now)).To(BeEmpty(), "%s later", late)
		}
	})
	t.Run("When authorities were replaced at different times each should be forgotten at its own end", func(t *testing.T) {
		g := NewWithT(t)
		a := newAging(t)
		a.replace()
		first := a.now
		a.now = a.now.Add(100 * 24 * time.Hour)
		a.replace()
		second := a.now
		for _, at := range []struct {
			now  time.Time
			want int
		}{{first.Add(clusterSigning + settle), 3}, {first.Add(clusterSigning + settle + time.Minute), 2}, {second.Add(clusterSigning + settle), 2}, {second.Add(clusterSigning + settle + time.Minute), 1}} {
			a.now = at.now
			plan := a.pass()
			g.Expect(a.trusted(ClusterSigner)).To(Equal(at.want), "%s", at.now)
			g.Expect(PlanFor(a.spec, a.obs, source(a.now)).Empty()).To(BeTrue())
			g.Expect(plan.Problems).To(BeEmpty())
		}
	})
	t.Run("When an older operator has noted one time, or none, nothing should be forgotten too early", func(t *testing.T) {
		for _, since := range []string{"", "yesterday", "2026-06-02T15:00:00Z"} {
			g := NewWithT(t)
			a := newAging(t)
			a.replace()
			delete(a.obs.Secrets[ClusterSigner].Annotations, switchedAnnotation)
			if since != "" {
				a.obs.Secrets[ClusterSigner].Annotations[switchedAnnotation] = since
			}
			a.now = a.now.Add(clusterSigning / 2)
			a.replace()
			second := a.now
			g.Expect(a.trusted(ClusterSigner)).To(Equal(3), since)
			a.now = second.Add(clusterSigning / 2)
			a.pass()
			if since == "2026-06-02T15:00:00Z" {
				g.Expect(a.trusted(ClusterSigner)).To(Equal(2), "its end is known")
			} else {
				g.Expect(a.trusted(ClusterSigner)).To(Equal(3), "it ended at the second switch at the latest")
			}
			a.now = second.Add(clusterSigning + 2*settle)
			a.pass()
			g.Expect(a.trusted(ClusterSigner)).To(Equal(1), since)
		}
	})
	t.Run("When too many are trusted still it should replace none, say until when and what to do, and go on after that", func(t *testing.T) {
		g := NewWithT(t)
		a := newAging(t)
		for range maxFormer {
			a.replace()
		}
		signing := bytes.Clone(a.obs.Secrets[ClusterSigner].Data[CACertKey])
		a.now = a.now.Add(time.Hour)
		a.spec.RotateBefore = a.now
		plan := a.pass()
		g.Expect(plan.Empty()).To(BeTrue())
		g.Expect(plan.Problems).To(ContainElement(MatchError(And(ContainSubstring("clusters-demo/cluster-signer-ca is not replaced before 2028-06-01T"), ContainSubstring("10 former ones"), ContainSubstring("--authority cluster-signer-ca --step forget")))))
		a.ask(ClusterSigner, RotationSwitch)
		g.Expect(a.pass().Empty()).To(BeTrue(), "also when it alone is asked for")
		a.spec.RevokeBefore = a.now
		a.pass()      // the others are free to be replaced
		for range 3 { // prepared, switched, revoked
			a.now = a.now.Add(2 * settle)
			a.pass()
		}
		g.Expect(a.trusted(EtcdSigner)).To(Equal(1), "the old is revoked, too")
		g.Expect(a.obs.Secrets[ClusterSigner].Data[CACertKey]).To(Equal(signing))
		a.now = noon.Add(clusterSigning + 48*time.Hour) // all came to their end within a day
		a.pass()
		a.now = a.now.Add(2 * settle)
		plan = a.pass()
		g.Expect(plan.Problems).To(BeEmpty())
		g.Expect(a.obs.Secrets[ClusterSigner].Data[CACertKey]).NotTo(Equal(signing))
		g.Expect(a.trusted(ClusterSigner)).To(BeNumerically("<=", maxFormer+1))
	})
}

// again has every authority replaced as the command does, which also corrects a time of revocation that is too late.
func (a *aging) again() {
	if before := a.spec.RotateBefore; !before.IsZero() && a.spec.RevokeBefore.After(before) {
		a.spec.RevokeBefore = before
	}
	a.spec.RotateBefore = a.now.Truncate(time.Second) // as certificates have it
}

// checkDone looks whether what was asked for was done, after passes with time between them.
func (a *aging) checkDone(t *rapid.T, authorities []string) {
	for _, name := range authorities {
		s := a.obs.Secrets[name]
		if order := s.Annotations[RotationAnnotation]; order != "" && order != "nonsense" {
			t.Fatalf("%s is still asked for step %s", name, order)
		}
		current, err := parsePair(s.Data[CACertKey], s.Data[CAKeyKey])
		if err != nil {
			t.Fatal(err)
		}
		if madeAt(current.cert).Before(a.spec.RotateBefore) {
			t.Fatalf("%s, which was made at %s, was not replaced, though that was asked for at %s", name, madeAt(current.cert), a.spec.RotateBefore)
		}
	}
}

func (a *aging) checkRevoked(t *rapid.T, before time.Time, authorities ...string) {
	for _, name := range authorities {
		for _, f := range formers(a.obs.Secrets[name].Data[previousCertKey], time.Time{}) {
			if f.madeBefore(before) {
				t.Fatalf("%s of %s is still trusted, though it was revoked", name, madeAt(f.cert))
			}
		}
	}
}

// TestEarlierGenerationsProperties: whatever is replaced when, a certificate is accepted until it ends or trust in its authority is ended by hand.
func TestEarlierGenerationsProperties(t *testing.T) {
	fresh := settled(t, demo(), noon)
	lives := map[string]time.Duration{ClusterSigner: clusterSigning, SystemAdminSigner: DefaultValidity, EtcdSigner: DefaultValidity}
	rapid.Check(t, func(t *rapid.T) {
		a := &aging{t, demo(func(s *Spec) { s.TrustRolledOut = true }), apply(fresh, Plan{}), noon}
		// Of those with a certificate of the same signer the one whose certificate ends last stands for all; nil: trust in the signer was ended by hand.
		holders := map[string]*holder{}
		var revoked time.Time // when the replacement was asked for of what was revoked
		give := func(h holder) {
			key := h.authority + string(h.signer.Raw)
			if old, known := holders[key]; !known || old != nil && old.cert.NotAfter.Before(h.cert.NotAfter) {
				holders[key] = &h
			}
		}
		for range rapid.IntRange(2, 7).Draw(t, "rounds") {
			a.now = a.now.Add(time.Duration(rapid.Int64Range(int64(time.Hour), int64(200*24*time.Hour)).Draw(t, "later")))
			target := rapid.SampledFrom([]string{ClusterSigner, SystemAdminSigner, EtcdSigner}).Draw(t, "authority")
			action := rapid.SampledFrom([]string{"nothing", "all", "all", "one", "one", RotationPrepare, RotationForget, "nonsense", "revoke", "revoke late"}).Draw(t, "action")
			switch action {
			case "all":
				a.again()
			case "one":
				a.ask(target, RotationSwitch)
			case "revoke":
				if !a.spec.RotateBefore.IsZero() {
					a.spec.RevokeBefore, revoked = a.spec.RotateBefore, a.spec.RotateBefore
				}
			case "revoke late":
				a.spec.RevokeBefore, revoked = a.now.Truncate(time.Second), a.spec.RotateBefore
				if revoked.IsZero() {
					revoked = a.spec.RevokeBefore
				}
			case RotationPrepare, RotationForget, "nonsense":
				a.ask(target, action) // also when nothing is to be done for it
			}
			for range 3 {
				for authority, life := range lives {
					give(a.obs.sign(t, authority, a.now, life))
				}
				before := a.obs
				a.pass()
				for authority, life := range lives { // who has not got the new files yet signs with the old ones
					give(before.sign(t, authority, a.now.Add(settle), life))
				}
				a.now = a.now.Add(2 * settle)
				for key, h := range holders {
					if h == nil || a.now.After(h.cert.NotAfter) {
						continue
					}
					why := a.obs.refused(*h, a.now)
					if why == "" {
						continue
					}
					signs := bytes.Equal(a.obs.Secrets[h.authority].Data[CACertKey], encodeCertificate(h.signer.Raw))
					if signs || !(action == RotationForget && h.authority == target || h.authority != ClusterSigner && madeAt(h.signer).Before(revoked)) {
						t.Fatalf("a certificate of %s, which was made at %s, is valid until %s and was not revoked: %s", h.authority, madeAt(h.signer), h.cert.NotAfter, why)
					}
					holders[key] = nil
				}
			}
			a.checkDone(t, slices.Collect(maps.Keys(lives)))
			if strings.HasPrefix(action, "revoke") {
				a.checkRevoked(t, revoked, SystemAdminSigner, EtcdSigner)
			}
		}
	})
}
