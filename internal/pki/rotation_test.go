package pki

import (
	"bytes"
	"crypto/x509"
	"maps"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"hcp.internal/platform/internal/contract/nodetrust"
)

// verifies says whether everything that trusts the bundles and kubeconfigs of one state accepts the leaves of another.
func verifies(spec Spec, trust, leaves Observed, now time.Time) string {
	list, err := spec.leaves()
	if err != nil {
		return err.Error()
	}
	bundleOf := map[string]string{RootCA: RootCABundle, AggregatorSigner: AggregatorCABundle, KonnectivitySigner: KonnectivityCABundle, EtcdSigner: EtcdCABundle,
		EtcdMetricsSigner: EtcdMetricsCABundle, KubeletSigner: KubeletCABundle, ClusterSigner: ClientCABundle, ControlPlaneSigner: ClientCABundle, SystemAdminSigner: ClientCABundle,
		HCCOSigner: ClientCABundle, KASBootstrapSigner: ClientCABundle}
	for _, l := range list {
		cm := trust.ConfigMaps[bundleOf[l.signer]]
		if cm == nil {
			continue // of the ignition server, whom machines trust by their user data
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(cm.Data[CACertKey]))
		cert, err := parseCertificate(leaves.Secrets[l.secret].Data[l.certEntry()])
		if err != nil {
			return err.Error()
		}
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
			return l.secret + ": " + err.Error()
		}
	}
	return ""
}

// follow is what the hosted-cluster-config-operator reports once every node has what obs says.
func follow(obs Observed) string {
	if cm := obs.ConfigMaps[nodetrust.ConfigMap]; cm != nil {
		return nodetrust.HashOf(cm.Data)
	}
	return ""
}

// nodeOf is what a node has that has followed.
func nodeOf(obs Observed) map[string]string {
	if cm := obs.ConfigMaps[nodetrust.ConfigMap]; cm != nil {
		return maps.Clone(cm.Data)
	}
	return map[string]string{nodetrust.RootKey: obs.ConfigMaps[RootCABundle].Data[CACertKey], nodetrust.KubeletKey: obs.ConfigMaps[KubeletCABundle].Data[CACertKey]}
}

// nodeVerifies says whether a node with the files of one state accepts the API server and its calls by the certificates of another.
func nodeVerifies(node map[string]string, leaves Observed, now time.Time) string {
	for leaf, bundle := range map[string]string{KASServer: nodetrust.RootKey, KASKubeletClient: nodetrust.KubeletKey} {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(node[bundle]))
		cert, err := parseCertificate(leaves.Secrets[leaf].Data[TLSCertKey])
		if err != nil {
			return err.Error()
		}
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
			return leaf + ": " + err.Error()
		}
	}
	return ""
}

// TestNodesFollow: a node that has what it was last told, and no more, accepts everybody at any time, unless it was given up.
func TestNodesFollow(t *testing.T) {
	t.Run("When nodes don't follow no successor that they know should sign, and when they do it should", func(t *testing.T) {
		g := NewWithT(t)
		spec := demo(func(s *Spec) { s.TrustRolledOut = true })
		obs, now := settled(t, spec, noon), noon.Add(24*time.Hour)
		g.Expect(obs.ConfigMaps).NotTo(HaveKey(nodetrust.ConfigMap), "nodes have what they booted with")
		booted := map[string]string{
			nodetrust.RootKey:    obs.ConfigMaps[RootCABundle].Data[CACertKey],
			nodetrust.KubeletKey: obs.ConfigMaps[KubeletCABundle].Data[CACertKey],
		}
		old := map[string][]byte{}
		for _, a := range spec.authorities() {
			old[a.secret] = bytes.Clone(obs.Secrets[a.secret].Data[CAKeyKey])
		}
		changed := func(secret string) bool { return !bytes.Equal(old[secret], obs.Secrets[secret].Data[CAKeyKey]) }
		pass := func() Plan {
			plan := PlanFor(spec, obs, source(now))
			obs = apply(obs, plan)
			return plan
		}
		spec.RotateBefore = now
		pass()
		former := nodetrust.HashOf(booted)
		for _, claimed := range []string{"", former, "0123456789abcdef"} { // nobody reports, or somebody speaks of something else
			spec.NodesTrust = claimed
			now = now.Add(2 * settle)
			pass()
			g.Expect(changed(EtcdSigner)).To(BeTrue(), "nodes don't know it")
			for _, secret := range []string{RootCA, KubeletSigner, ClusterSigner} {
				g.Expect(changed(secret)).To(BeFalse(), secret)
			}
			g.Expect(nodeVerifies(booted, obs, now)).To(BeEmpty())
		}
		g.Expect(obs.ConfigMaps[nodetrust.ConfigMap].Data).To(HaveKeyWithValue(nodetrust.AwaitedKey, "true"))
		told := maps.Clone(obs.ConfigMaps[nodetrust.ConfigMap].Data)
		spec.NodesTrust = follow(obs)
		pass()
		for _, secret := range []string{RootCA, KubeletSigner, ClusterSigner} {
			g.Expect(changed(secret)).To(BeTrue(), secret)
		}
		g.Expect(nodeVerifies(told, obs, now)).To(BeEmpty())
		g.Expect(nodeVerifies(booted, obs, now)).NotTo(BeEmpty(), "else there was nothing to wait for")
		data := obs.ConfigMaps[nodetrust.ConfigMap].Data
		g.Expect(data).To(HaveKeyWithValue(nodetrust.AwaitedKey, "false"))
		g.Expect(nodetrust.HashOf(data)).To(Equal(nodetrust.HashOf(told)), "who signs is nothing to nodes, so no kubelet starts anew")
		spec.RevokeBefore, now = now, now.Add(2*settle)
		pass()
		g.Expect(strings.Count(obs.ConfigMaps[nodetrust.ConfigMap].Data[nodetrust.RootKey], "BEGIN")).To(Equal(1), "nodes forget what is revoked")
	})
	t.Run("When nodes are given up the successors that were there should sign, and later ones wait again", func(t *testing.T) {
		g := NewWithT(t)
		spec := demo(func(s *Spec) { s.TrustRolledOut = true })
		obs, now := settled(t, spec, noon), noon.Add(24*time.Hour)
		spec.RotateBefore = now
		obs = apply(obs, PlanFor(spec, obs, source(now)))
		now = now.Add(2 * settle)
		spec.LeaveNodes = now
		first := bytes.Clone(obs.Secrets[RootCA].Data[CAKeyKey])
		obs = apply(obs, PlanFor(spec, obs, source(now)))
		second := bytes.Clone(obs.Secrets[RootCA].Data[CAKeyKey])
		g.Expect(second).NotTo(Equal(first))
		now = now.Add(24 * time.Hour)
		spec.RotateBefore = now
		for range 3 {
			obs = apply(obs, PlanFor(spec, obs, source(now)))
			now = now.Add(2 * settle)
		}
		g.Expect(obs.Secrets[RootCA].Data[CAKeyKey]).To(Equal(second))
	})
}

func TestSettle(t *testing.T) {
	for name, c := range map[string]struct{ validity, want time.Duration }{
		"When leaves live for a year it should be an hour":                   {0, time.Hour},
		"When leaves live for half an hour it should be a tenth of that":     {30 * time.Minute, 3 * time.Minute},
		"When leaves live for minutes it should leave time for files to get": {MinValidity, minSettle},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(demo(func(s *Spec) { s.Validity = c.validity }).settle()).To(Equal(c.want))
		})
	}
}

// TestAuthorityLife lets a control plane grow old. At each pass, what has not got the newest files yet must get on with what has, in both directions.
func TestAuthorityLife(t *testing.T) {
	g := NewWithT(t)
	spec := demo(func(s *Spec) { s.TrustRolledOut = true })
	obs, now := settled(t, spec, noon), noon.AddDate(7, 11, 0) // nothing but renewals happens before
	first := bytes.Clone(obs.Secrets[RootCA].Data[CAKeyKey])
	var told []string
	for now.Before(noon.AddDate(10, 3, 0)) {
		now = now.Add(20 * 24 * time.Hour)
		spec.NodesTrust = follow(obs)
		plan := PlanFor(spec, obs, source(now))
		g.Expect(plan.Problems).To(BeEmpty())
		after := apply(obs, plan)
		g.Expect(verifies(spec, obs, after, now)).To(BeEmpty(), "%s: who has the old bundles should accept the new certificates", now)
		if verifies(spec, obs, obs, now) == "" {
			g.Expect(verifies(spec, after, obs, now)).To(BeEmpty(), "%s: who has the new bundles should accept the old certificates", now)
		}
		for _, w := range plan.Authorities {
			if w.Secret.Name == RootCA {
				told = append(told, w.Reason)
			}
		}
		obs = after
	}
	g.Expect(told).To(HaveLen(3), "%q", told)
	g.Expect(told[0]).To(HavePrefix("it gets a successor"))
	g.Expect(told[1]).To(Equal("its successor is trusted everywhere"))
	g.Expect(told[2]).To(Equal("an authority before it is not needed any more"))
	g.Expect(obs.Secrets[RootCA].Data[CAKeyKey]).NotTo(Equal(first))
	g.Expect(obs.Secrets[RootCA].Data).NotTo(HaveKey(previousCertKey))
	g.Expect(strings.Count(obs.ConfigMaps[RootCABundle].Data[CACertKey], "BEGIN CERTIFICATE")).To(Equal(1))
}

func TestRotationByHand(t *testing.T) {
	g := NewWithT(t)
	spec := demo()
	obs, now := settled(t, spec, noon), noon.Add(24*time.Hour)
	old := bytes.Clone(obs.Secrets[RootCA].Data[CAKeyKey])
	pass := func() Plan {
		spec.NodesTrust = follow(obs)
		plan := PlanFor(spec, obs, source(now))
		obs = apply(obs, plan)
		return plan
	}
	ask := func(step string) {
		setAll(&obs.Secrets[RootCA].Annotations, map[string]string{RotationAnnotation: step})
	}
	ask(RotationSwitch)
	pass()
	g.Expect(obs.Secrets[RootCA].Data).To(HaveKey(nextKeyKey), "When a switch is asked for it should be prepared first")
	g.Expect(strings.Count(obs.ConfigMaps[RootCABundle].Data[CACertKey], "BEGIN CERTIFICATE")).To(Equal(2))
	now = now.Add(2 * settle)
	g.Expect(pass().Empty()).To(BeTrue(), "When components have not got the bundle it should wait")
	spec.TrustRolledOut, now = true, now.Add(-2*settle)
	plan := pass()
	g.Expect(plan.Empty()).To(BeTrue(), "When it was only just made it should wait")
	g.Expect(plan.RecheckAfter).To(BeNumerically("<=", settle))
	now = now.Add(plan.RecheckAfter)
	bundle := obs.ConfigMaps[RootCABundle].Data[CACertKey]
	g.Expect(len(pass().Leaves)).To(BeNumerically(">", 3), "When all have the bundle it should switch")
	g.Expect(obs.ConfigMaps[RootCABundle].Data[CACertKey]).To(Equal(bundle), "When it switches bundles should stay as they are, byte by byte: what can't read them again would be started anew")
	g.Expect(obs.Secrets[RootCA].Data[CAKeyKey]).NotTo(Equal(old))
	g.Expect(obs.Secrets[RootCA].Annotations).NotTo(HaveKey(RotationAnnotation))
	g.Expect(pass().Empty()).To(BeTrue(), "When it is done it should rest")
	g.Expect(strings.Count(obs.ConfigMaps[RootCABundle].Data[CACertKey], "BEGIN CERTIFICATE")).To(Equal(2))
	ask(RotationForget)
	pass()
	g.Expect(strings.Count(obs.ConfigMaps[RootCABundle].Data[CACertKey], "BEGIN CERTIFICATE")).To(Equal(1), "When the old one is to be forgotten nobody should trust it")
	g.Expect(verifies(spec, obs, obs, now)).To(BeEmpty())
}

// TestRotationProperties: whatever is asked for in whatever order, certificates and trust always fit together, also with what was there a pass before.
func TestRotationProperties(t *testing.T) {
	fresh := settled(t, demo(), noon)
	rapid.Check(t, func(t *rapid.T) {
		spec, now := demo(), noon
		obs := apply(fresh, Plan{}) // a copy
		node := nodeOf(obs)
		for range rapid.IntRange(1, 3).Draw(t, "passes") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(300*24*time.Hour)).Draw(t, "later")))
			spec.TrustRolledOut = rapid.Bool().Draw(t, "rolled out")
			if rapid.Bool().Draw(t, "nodes follow") {
				node, spec.NodesTrust = nodeOf(obs), follow(obs)
			}
			signer := rapid.SampledFrom([]string{RootCA, EtcdSigner, ClusterSigner}).Draw(t, "signer")
			if step := rapid.SampledFrom([]string{"", RotationPrepare, RotationSwitch, RotationForget, "nonsense"}).Draw(t, "asked"); step != "" {
				setAll(&obs.Secrets[signer].Annotations, map[string]string{RotationAnnotation: step})
			}
			plan := PlanFor(spec, obs, source(now))
			after := apply(obs, plan)
			if again := PlanFor(spec, after, source(now)); !again.Empty() {
				t.Fatalf("a second plan would still write %v", reasons(again))
			}
			if wrong := verifies(spec, obs, after, now); wrong != "" {
				t.Fatalf("old trust, new certificates: %s", wrong)
			}
			if wrong := verifies(spec, after, after, now); wrong != "" {
				t.Fatal(wrong)
			}
			if wrong := nodeVerifies(node, after, now); wrong != "" {
				t.Fatalf("a node with what it has last reported: %s", wrong)
			}
			for _, name := range []string{RootCA, EtcdSigner, ClusterSigner} {
				if order := after.Secrets[name].Annotations[RotationAnnotation]; order == RotationPrepare || order == RotationForget {
					t.Fatalf("%s is still asked for step %s, which needs no waiting", name, order)
				}
			}
			obs = after
		}
	})
}
