package pkioperator

import (
	"crypto/rand"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/pki"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func at(now time.Time) source { return source{now: now, keys: pki.NewKey, rand: rand.Reader} }

// store puts what was written where the next look finds it.
func (o *observedSigner) store(write client.Object) {
	switch obj := write.(type) {
	case *corev1.ConfigMap:
		o.bundle = obj
	case *corev1.Secret:
		if obj.Name == signers[0].secret {
			o.secret = obj
		} else {
			o.client = obj
		}
	}
}

// settle stores everything that is to be written, and returns the names, and when to look again.
func (o *observedSigner) settle(t TestingT, now time.Time) (names []string, due time.Time) {
	for range 10 {
		write, due, err := rotate(signers[0], *o, wholeDay, at(now))
		if err != nil {
			t.Fatalf("rotating: %v", err)
		}
		if write == nil {
			return names, due
		}
		names = append(names, write.GetName())
		o.store(write)
	}
	t.Fatalf("it does not come to rest: %v", names)
	return nil, due
}

// TestingT is what testing.T and rapid.T share.
type TestingT interface{ Fatalf(string, ...any) }

func TestRotate(t *testing.T) {
	g := NewWithT(t)
	obs := &observedSigner{namespace: "ns"}
	steps := []struct {
		name   string
		at     time.Duration
		change func()
		want   []string
		due    time.Duration
	}{
		{"When there is nothing it should make authority, bundle and client certificate, in this order", 0, nil,
			[]string{signers[0].secret, signers[0].bundle, signers[0].client}, 6 * time.Hour},
		{"When nothing is due it should write nothing", time.Hour, nil, nil, 6 * time.Hour},
		{"When the client certificate is old it should make another", 7 * time.Hour, nil, []string{signers[0].client}, 13 * time.Hour},
		{"When somebody asks for another client certificate it should make one", 8 * time.Hour, func() { obs.client.Annotations[notAfterAnnotation] = forceRegeneration },
			[]string{signers[0].client}, 14 * time.Hour},
		{"When the bundle is lost it should write it again", 9 * time.Hour, func() { obs.bundle = nil }, []string{signers[0].bundle}, 14 * time.Hour},
		{"When the authority is two days old it should make another, and trust both", 48 * time.Hour, nil,
			[]string{signers[0].secret, signers[0].bundle, signers[0].client}, 54 * time.Hour},
		{"When the first authority is a week old it should trust it no more", 7*24*time.Hour + time.Minute, nil,
			[]string{signers[0].secret, signers[0].bundle, signers[0].client}, 7*24*time.Hour + time.Minute + 6*time.Hour},
		{"When the key of the authority is another one it should make a new authority", 7*24*time.Hour + 2*time.Minute, func() { obs.secret.Data[corev1.TLSPrivateKeyKey] = obs.client.Data[corev1.TLSPrivateKeyKey] },
			[]string{signers[0].secret, signers[0].bundle}, 7*24*time.Hour + time.Minute + 6*time.Hour},
	}
	for _, s := range steps {
		if s.change != nil {
			s.change()
		}
		names, due := obs.settle(t, noon.Add(s.at))
		g.Expect(names).To(Equal(s.want), s.name)
		g.Expect(due).To(BeTemporally("~", noon.Add(s.due), time.Second), s.name)
	}
	g.Expect(parseBundle(obs.bundle, names.CABundleKey)).To(HaveLen(3), "those of the second day and of the seventh, and the last")
	leaf, err := parseAuthority(obs.client)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(leaf.cert.Subject.CommonName).To(MatchRegexp("^system:customer-break-glass:[0-9A-Za-z]{32}$"))
	g.Expect(leaf.cert.Subject.Organization).To(Equal([]string{"system:masters"}))
	g.Expect(leaf.cert.NotAfter.Sub(madeAt(leaf.cert))).To(Equal(36 * time.Hour))
	_, ours := issuedAt("ns", signers[0].secret, obs.client.Annotations[issuerAnnotation])
	g.Expect(ours).To(BeTrue())
}

// Whatever happens when, the client certificate is always one that the bundle trusts, and it comes to rest.
func TestRotateProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		obs, now := &observedSigner{namespace: "ns"}, noon
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "hours")) * time.Hour)
			if rapid.Bool().Draw(t, "dies after one write") {
				if write, _, err := rotate(signers[0], *obs, wholeDay, at(now)); err == nil && write != nil {
					obs.store(write)
				}
			}
			_, due := obs.settle(t, now)
			if !due.After(now) {
				t.Fatalf("due at %s, which is not after %s", due, now)
			}
			leaf, err := parseAuthority(obs.client)
			if err != nil || !issuedBy(leaf.cert, parseBundle(obs.bundle, names.CABundleKey)) || now.After(leaf.cert.NotAfter) {
				t.Fatalf("the client certificate is not trusted")
			}
		}
	})
}
