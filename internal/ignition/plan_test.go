package ignition

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/ignition/payload"
	"hcp.internal/platform/internal/ignition/tokens"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// tokenSecret is one as the NodePool controller writes it, an hour old.
func tokenSecret(mutate ...func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "token-demo-1", Annotations: map[string]string{
			hyperv1.TokenSecretAnnotation: "true", hyperv1.NodePoolAnnotation: "clusters/demo",
			hyperv1.TokenSecretNodePoolUpgradeTypeAnnotation: string(hyperv1.UpgradeTypeReplace),
			hyperv1.TokenSecretTokenGenerationTimeAnnotation: noon.Add(-time.Hour).Format(time.RFC3339Nano),
		}},
		Data: map[string][]byte{token.TokenKey: []byte("first"), token.ReleaseKey: []byte("registry.example.com/release:1.36.3")},
	}
	for _, m := range mutate {
		m(s)
	}
	return s
}

func settled(s *corev1.Secret) {
	s.Data[token.ReasonKey], s.Data[token.MessageKey] = []byte(reasonAsExpected), []byte("Payload generated successfully")
}

func bornAt(at time.Time) func(*corev1.Secret) {
	return func(s *corev1.Secret) {
		s.Annotations[hyperv1.TokenSecretTokenGenerationTimeAnnotation] = at.Format(time.RFC3339Nano)
	}
}

func expiresAt(text string) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.Annotations[hyperv1.TokenSecretExpirationTimestampAnnotation] = text }
}

func TestPlan(t *testing.T) {
	expiring := func(value string, at time.Time) tokens.Token { return tokens.Token{Value: value, Expires: at} }
	for name, tc := range map[string]struct {
		obs     Observed
		deleted bool
		tokens  []tokens.Token
		rotated bool
		reason  string
		message string
		changed bool
		recheck time.Duration
	}{
		"When nothing is to be done it should wait for the rotation": {
			obs: Observed{Secret: tokenSecret(settled)}, tokens: []tokens.Token{expiring("first", noon.Add(10*time.Hour))}, recheck: 4*time.Hour + 30*time.Minute,
		},
		"When the payload is new it should say so": {
			obs: Observed{Secret: tokenSecret()}, tokens: []tokens.Token{expiring("first", noon.Add(10*time.Hour))}, changed: true, reason: "AsExpected",
			message: "Payload generated successfully", recheck: 4*time.Hour + 30*time.Minute,
		},
		"When half of its life is over it should replace the token": {
			obs:    Observed{Secret: tokenSecret(settled, bornAt(noon.Add(-tokenRotation)))},
			tokens: []tokens.Token{expiring("new", noon.Add(tokenTTL)), expiring("first", noon.Add(tokenTTL-tokenRotation))}, rotated: true, changed: true, recheck: tokenRotation,
		},
		"When it was down for days it should replace the token, and let machines with the last one come": {
			obs:    Observed{Secret: tokenSecret(settled, bornAt(noon.Add(-100*time.Hour)))},
			tokens: []tokens.Token{expiring("new", noon.Add(tokenTTL)), expiring("first", noon.Add(tokenTTL-tokenRotation))}, rotated: true, changed: true, recheck: tokenRotation,
		},
		"When nobody knows how old it is it should replace the token": {
			obs:    Observed{Secret: tokenSecret(settled, func(s *corev1.Secret) { delete(s.Annotations, hyperv1.TokenSecretTokenGenerationTimeAnnotation) })},
			tokens: []tokens.Token{expiring("new", noon.Add(tokenTTL)), expiring("first", noon.Add(tokenTTL-tokenRotation))}, rotated: true, changed: true, recheck: tokenRotation,
		},
		"When it was made in the future it should replace the token": {
			obs:    Observed{Secret: tokenSecret(settled, bornAt(noon.Add(time.Hour)))},
			tokens: []tokens.Token{expiring("new", noon.Add(tokenTTL)), expiring("first", noon.Add(tokenTTL-tokenRotation))}, rotated: true, changed: true, recheck: tokenRotation,
		},
		"When the other clock is a little ahead it should not mind": {
			obs: Observed{Secret: tokenSecret(settled, bornAt(noon.Add(time.Minute)))}, tokens: []tokens.Token{expiring("first", noon.Add(tokenTTL))}, recheck: tokenRotation,
		},
		"When there is no token it should make one": {
			obs:    Observed{Secret: tokenSecret(settled, func(s *corev1.Secret) { delete(s.Data, token.TokenKey) })},
			tokens: []tokens.Token{expiring("new", noon.Add(tokenTTL))}, rotated: true, changed: true, recheck: tokenRotation,
		},
		"When there is an old token it should be good for the rest of its life": {
			obs:     Observed{Secret: tokenSecret(settled, func(s *corev1.Secret) { s.Data[token.OldTokenKey] = []byte("old") })},
			tokens:  []tokens.Token{expiring("first", noon.Add(10*time.Hour)), expiring("old", noon.Add(4*time.Hour+30*time.Minute))},
			recheck: 4*time.Hour + 30*time.Minute,
		},
		"When the Secret is to go it should serve until then and not replace the token": {
			obs:    Observed{Secret: tokenSecret(settled, bornAt(noon.Add(-6*time.Hour)), expiresAt(noon.Add(2*time.Hour).Format(time.RFC3339)))},
			tokens: []tokens.Token{expiring("first", noon.Add(2*time.Hour))}, recheck: 2 * time.Hour,
		},
		"When its time has come it should delete it":      {obs: Observed{Secret: tokenSecret(settled, expiresAt(noon.Format(time.RFC3339)))}, deleted: true},
		"When its end cannot be read it should delete it": {obs: Observed{Secret: tokenSecret(settled, expiresAt("tomorrow"))}, deleted: true},
		"When the configuration is bad it should say what is": {
			obs:    Observed{Secret: tokenSecret(settled), Err: &payload.InvalidError{Err: errors.New(`MachineConfig "x": bad`)}},
			tokens: []tokens.Token{expiring("first", noon.Add(10*time.Hour))}, changed: true, reason: "InvalidConfig", message: `MachineConfig "x": bad`, recheck: 4*time.Hour + 30*time.Minute,
		},
		"When something is missing it should say so and try again soon": {
			obs:    Observed{Secret: tokenSecret(settled), Err: fmt.Errorf("%w for Secret bootstrap-kubeconfig", errWaiting)},
			tokens: []tokens.Token{expiring("first", noon.Add(10*time.Hour))}, changed: true, reason: "FailedToGet", message: "waiting for Secret bootstrap-kubeconfig", recheck: retryInputs,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := tc.obs.Secret.DeepCopy()
			p := planFor(tc.obs, noon, func() string { return "new" })
			g.Expect(tc.obs.Secret).To(Equal(before), "what was observed is not touched")
			g.Expect(p.Delete).To(Equal(tc.deleted))
			g.Expect(p.Tokens).To(Equal(tc.tokens))
			g.Expect(p.Rotated).To(Equal(tc.rotated))
			g.Expect(p.Changed != nil).To(Equal(tc.changed))
			g.Expect(p.RecheckAfter).To(Equal(tc.recheck))
			if tc.reason != "" {
				g.Expect(string(p.Changed.Data[token.ReasonKey])).To(Equal(tc.reason))
				g.Expect(string(p.Changed.Data[token.MessageKey])).To(Equal(tc.message))
			}
		})
	}
}

// A pool that is upgraded in place has its payload in the Secret, whatever packed it; others don't.
func TestPlanInPlace(t *testing.T) {
	g := NewWithT(t)
	inPlace := func(s *corev1.Secret) {
		s.Annotations[hyperv1.TokenSecretNodePoolUpgradeTypeAnnotation] = string(hyperv1.UpgradeTypeInPlace)
	}
	data := []byte(`{"ignition":{"version":"3.2.0"}}`)
	p := planFor(Observed{Secret: tokenSecret(settled, inPlace), Data: data}, noon, nil)
	stored, err := decodeConfig(p.Changed.Data[token.PayloadKey])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stored).To(Equal(string(data)))
	g.Expect(planFor(Observed{Secret: p.Changed, Data: data}, noon, nil).Changed).To(BeNil(), "stored once")

	failing := planFor(Observed{Secret: p.Changed, Err: errors.New("registry is down")}, noon, nil)
	g.Expect(failing.Changed.Data[token.PayloadKey]).To(Equal(p.Changed.Data[token.PayloadKey]), "it stays until there is something better")
	replace := p.Changed.DeepCopy()
	replace.Annotations[hyperv1.TokenSecretNodePoolUpgradeTypeAnnotation] = string(hyperv1.UpgradeTypeReplace)
	replaced := planFor(Observed{Secret: replace, Data: data}, noon, nil).Changed
	g.Expect(replaced.Data).NotTo(HaveKey(token.PayloadKey))
	g.Expect(lastGood(replaced)).To(Equal(data), "it is kept for the next process")
	g.Expect(planFor(Observed{Secret: replaced, Data: data}, noon, nil).Changed).To(BeNil(), "kept once")
	g.Expect(lastGood(planFor(Observed{Secret: replaced, Err: errors.New("registry is down")}, noon, nil).Changed)).To(Equal(data))
	g.Expect(lastGood(planFor(Observed{Secret: replaced, Err: &payload.InvalidError{Err: errors.New("bad")}}, noon, nil).Changed)).To(BeNil())

	var noise bytes.Buffer // which does not compress well
	for n := uint64(0); noise.Len() < 3*maxStoredPayload; n++ {
		fmt.Fprintf(&noise, "%x", n*0x9E3779B97F4A7C15)
	}
	large := planFor(Observed{Secret: p.Changed, Data: noise.Bytes()}, noon, nil)
	g.Expect(string(large.Changed.Data[token.MessageKey])).To(ContainSubstring("does not fit into a Secret"))
	g.Expect(large.Changed.Data).NotTo(HaveKey(token.PayloadKey))
}

// Whatever happens when: a token is good for at least half of its life after a machine may have got it, never longer than its whole
// life after it was replaced, there are never more than two, and a plan that is carried out is followed by one that changes nothing.
func TestRotationProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, now, count := tokenSecret(bornAt(noon)), noon, 0
		current := map[string]time.Time{"first": noon} // when it became the token
		replaced := map[string]time.Time{}
		for range rapid.IntRange(1, 8).Draw(t, "passes") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(15*time.Hour)).Draw(t, "later")))
			p := planFor(Observed{Secret: s}, now, func() string { count++; return fmt.Sprint("token-", count) })
			if p.Delete || len(p.Tokens) > 2 {
				t.Fatalf("plan %+v", p)
			}
			if p.Changed != nil {
				if p.Rotated {
					replaced[string(s.Data[token.TokenKey])] = now
					current[string(p.Changed.Data[token.TokenKey])] = now
				}
				s = p.Changed
			}
			for _, tok := range p.Tokens {
				if at, ok := replaced[tok.Value]; ok && tok.Expires.Sub(at) > tokenTTL-tokenRotation {
					t.Fatalf("%s was replaced at %s and is good until %s", tok.Value, at, tok.Expires)
				}
				if tok.Expires.Sub(now) > tokenTTL {
					t.Fatalf("%s is good for %s", tok.Value, tok.Expires.Sub(now))
				}
			}
			for value, at := range replaced {
				good := false
				for _, tok := range p.Tokens {
					good = good || tok.Value == value
				}
				if want := now.Sub(at) < tokenTTL-tokenRotation && value == string(s.Data[token.OldTokenKey]); good != want {
					t.Fatalf("%s was replaced %s ago and is good: %t", value, now.Sub(at), good)
				}
			}
			if again := planFor(Observed{Secret: s}, now, func() string { return "never" }); again.Changed != nil {
				t.Fatalf("a second pass changes %v", again.Changed.Data)
			}
		}
	})
}

func TestClusterDNS(t *testing.T) {
	for cidr, want := range map[string]string{"172.31.0.0/16": "172.31.0.10", "172.31.4.4/16": "172.31.0.10", "fd00::/112": "fd00::a", "10.0.0.0/29": "", "x": ""} {
		got, err := clusterDNS(&hyperv1.ClusterNetworking{ServiceNetwork: []hyperv1.ServiceNetworkEntry{{CIDR: hyperv1.CIDRBlock(cidr)}}})
		NewWithT(t).Expect(got).To(Equal(want), cidr)
		NewWithT(t).Expect(err == nil).To(Equal(want != ""), cidr)
	}
}

func TestDecodeConfig(t *testing.T) {
	g := NewWithT(t)
	packed, err := encodePayload([]byte("text"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(decodeConfig(packed)).To(Equal("text"))
	g.Expect(decodeConfig(nil)).To(BeEmpty())
	_, err = decodeConfig([]byte("plain"))
	g.Expect(err).To(MatchError(ContainSubstring("not compressed")))
	bomb, err := encodePayload(make([]byte, 64<<20))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = decodeConfig(bomb)
	g.Expect(err).To(MatchError(ContainSubstring("more than 4 MiB")))
}
