package signature

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	. "github.com/onsi/gomega"
)

func newKey(t *testing.T) (*ecdsa.PrivateKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := PublicPEM(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return key, string(public)
}

func policy(t *testing.T, scope string, keys ...string) *Policy {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "rules:\n- scope: %q\n  keys:\n", scope)
	for _, k := range keys {
		fmt.Fprintf(&b, "  - |\n    %s\n", strings.ReplaceAll(strings.TrimSpace(k), "\n", "\n    "))
	}
	p, err := ParsePolicy([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// pushed is an image in a registry of its own.
func pushed(t *testing.T) (name.Repository, v1.Hash) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	g := NewWithT(t)
	repository, err := name.NewRepository(strings.TrimPrefix(server.URL, "http://") + "/team/app")
	g.Expect(err).NotTo(HaveOccurred())
	img, err := random.Image(100, 1)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(remote.Write(repository.Tag("1"), img)).To(Succeed())
	digest, err := img.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	return repository, digest
}

func TestCheck(t *testing.T) {
	ours, oursPEM := newKey(t)
	theirs, theirsPEM := newKey(t)

	t.Run("When no rule is for the image it should need no signature", func(t *testing.T) {
		g := NewWithT(t)
		repository, digest := pushed(t)
		g.Expect((*Policy)(nil).Check(t.Context(), repository.Name(), repository, digest)).To(Succeed())
		g.Expect(policy(t, "registry.example.com", oursPEM).Check(t.Context(), repository.Name(), repository, digest)).To(Succeed())
	})
	t.Run("When it has no signature it should be refused, and say where one was looked for", func(t *testing.T) {
		g := NewWithT(t)
		repository, digest := pushed(t)
		err := policy(t, "*", oursPEM).Check(t.Context(), repository.Name(), repository, digest)
		g.Expect(err).To(MatchError(ErrUnsigned))
		g.Expect(err).To(MatchError(ContainSubstring("there is no " + repository.Name() + ":sha256-" + digest.Hex + ".sig")))
	})
	t.Run("When somebody else signed it should be refused until we have, too", func(t *testing.T) {
		g := NewWithT(t)
		repository, digest := pushed(t)
		g.Expect(Attach(t.Context(), theirs, repository, digest)).To(BeTrue())
		p := policy(t, repository.RegistryStr(), oursPEM)
		g.Expect(p.Check(t.Context(), repository.Name(), repository, digest)).To(MatchError(ErrUnsigned))
		g.Expect(Attach(t.Context(), ours, repository, digest)).To(BeTrue())
		g.Expect(p.Check(t.Context(), repository.Name(), repository, digest)).To(Succeed())
		g.Expect(policy(t, "*", theirsPEM).Check(t.Context(), repository.Name(), repository, digest)).To(Succeed(), "theirs is still there")
		g.Expect(Attach(t.Context(), ours, repository, digest)).To(BeFalse(), "once is enough")
	})
	t.Run("When the signature is of another image it should be refused", func(t *testing.T) {
		g := NewWithT(t)
		repository, digest := pushed(t)
		other := v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("a", 64)}
		statement, sig, err := Sign(ours, repository.Name(), other)
		g.Expect(err).NotTo(HaveOccurred())
		attach(t, repository, digest, statement, sig)
		g.Expect(policy(t, "*", oursPEM).Check(t.Context(), repository.Name(), repository, digest)).
			To(MatchError(And(ContainSubstring(ErrUnsigned.Error()), ContainSubstring("is about sha256:aaa"))))
	})
	t.Run("When a statement was changed after it was signed it should be refused", func(t *testing.T) {
		g := NewWithT(t)
		repository, digest := pushed(t)
		other := v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("a", 64)}
		statement, sig, err := Sign(ours, repository.Name(), other)
		g.Expect(err).NotTo(HaveOccurred())
		attach(t, repository, digest, []byte(strings.ReplaceAll(string(statement), other.Hex, digest.Hex)), sig)
		g.Expect(policy(t, "*", oursPEM).Check(t.Context(), repository.Name(), repository, digest)).To(MatchError(ErrUnsigned))
	})
	t.Run("When a registry has rubbish for a signature it should be refused", func(t *testing.T) {
		g := NewWithT(t)
		for _, sig := range []string{"%%%", "", strings.Repeat("A", 5000), "MAA="} {
			repository, digest := pushed(t)
			attach(t, repository, digest, []byte("{"), sig)
			g.Expect(policy(t, "*", oursPEM).Check(t.Context(), repository.Name(), repository, digest)).To(MatchError(ErrUnsigned), sig)
		}
	})
	t.Run("When the registry is away it should not say that the image is unsigned", func(t *testing.T) {
		g := NewWithT(t)
		repository, err := name.NewRepository("127.0.0.1:1/team/app")
		g.Expect(err).NotTo(HaveOccurred())
		err = policy(t, "*", oursPEM).Check(t.Context(), repository.Name(), repository, v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("a", 64)})
		g.Expect(err).To(HaveOccurred())
		g.Expect(err).NotTo(MatchError(ErrUnsigned))
	})
}

// attach puts a statement beside an image.
func attach(t *testing.T, repository name.Repository, digest v1.Hash, statement []byte, sig string) {
	t.Helper()
	g := NewWithT(t)
	base, err := random.Image(0, 0)
	g.Expect(err).NotTo(HaveOccurred())
	img, err := mutate.Append(base, mutate.Addendum{
		Layer: static.NewLayer(statement, payloadMedia), Annotations: map[string]string{signatureAnnotation: sig}, MediaType: payloadMedia,
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(remote.Write(Tag(repository, digest), img)).To(Succeed())
}

func TestFor(t *testing.T) {
	_, a := newKey(t)
	indent := func(k string) string { return strings.ReplaceAll(strings.TrimSpace(k), "\n", "\n    ") }
	p, err := ParsePolicy([]byte("rules:\n- scope: '*'\n  keys:\n  - |\n    " + indent(a) + "\n- scope: registry.example.com/team/free\n  unsigned: true\n"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for repository, want := range map[string]bool{
		"quay.io/a": true, "registry.example.com/team/app": true, "registry.example.com/team/free": false, "registry.example.com/team/free/x": false,
		"registry.example.com/team/freeware": true,
	} {
		_, required := p.For(repository)
		NewWithT(t).Expect(required).To(Equal(want), repository)
	}
}

func TestForSpellings(t *testing.T) {
	_, a := newKey(t)
	indent := strings.ReplaceAll(strings.TrimSpace(a), "\n", "\n    ")
	for scope, images := range map[string][]string{
		"registry.example.com/team": {"registry.example.com/team/app", "Registry.EXAMPLE.com/team/app", "registry.example.com:443/team/app", "registry.example.com./team/app"},
		"docker.io/team":            {"docker.io/team/app", "team/app", "index.docker.io/team/app", "registry-1.docker.io/team/app", "DOCKER.IO/team/app"},
		"docker.io":                 {"nginx"},
		"Registry.Example.com:443":  {"registry.example.com/x"},
		"registry.example.com:5000": {"registry.example.com:5000/x"},
	} {
		p, err := ParsePolicy([]byte("rules:\n- scope: " + scope + "\n  keys:\n  - |\n    " + indent + "\n"))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, image := range images {
			t.Run("When scope is "+scope+" and the image is written "+image+" it should need a signature", func(t *testing.T) {
				repository, err := name.NewRepository(image)
				if err != nil {
					return // nothing is pulled by a name that the client library refuses
				}
				_, required := p.For(repository.Name())
				NewWithT(t).Expect(required).To(BeTrue(), repository.Name())
			})
		}
	}
}

func TestParsePolicy(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.ReplaceAll(strings.TrimSpace(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))), "\n", "\n    ")
	for name, tc := range map[string]struct{ text, want string }{
		"When it is empty it should say so":                    {"", "0 rules"},
		"When a field is misspelt it should be refused":        {"rules:\n- scopes: a.b\n", "scopes"},
		"When a rule requires nothing it should say what to":   {"rules:\n- scope: a.b\n", "either keys or unsigned"},
		"When a scope is a pattern it should say what is":      {"rules:\n- scope: a.b/*\n  unsigned: true\n", "registry.example.com/team"},
		"When a scope is there twice it should say so":         {"rules:\n- {scope: a.b, unsigned: true}\n- {scope: a.b/, unsigned: true}\n", "another rule"},
		"When a key is none it should name the rule":           {"rules:\n- scope: a.b\n  keys: [x]\n", "rules[0] (scope \"a.b\"): keys[0]"},
		"When a key is of another kind it should say which is": {"rules:\n- scope: a.b\n  keys:\n  - |\n    " + other + "\n", "ECDSA on P-256"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParsePolicy([]byte(tc.text))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func FuzzParsePolicy(f *testing.F) {
	f.Add([]byte("rules:\n- scope: '*'\n  unsigned: true\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if p, err := ParsePolicy(raw); err == nil {
			p.For("registry.example.com/a")
		}
	})
}

func TestParsePrivateKey(t *testing.T) {
	key, _ := newKey(t)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	t.Run("When it is a key of ECDSA it should be read", func(t *testing.T) {
		g := NewWithT(t)
		got, err := ParsePrivateKey(encode("PRIVATE KEY", der))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Equal(key)).To(BeTrue())
	})
	t.Run("When it is encrypted it should say what to do", func(t *testing.T) {
		_, err := ParsePrivateKey(encode("ENCRYPTED SIGSTORE PRIVATE KEY", der))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("sign with cosign")))
	})
	t.Run("When it is none it should say which is", func(t *testing.T) {
		_, err := ParsePrivateKey(encode("PRIVATE KEY", []byte("hunter2")))
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("P-256"), Not(ContainSubstring("hunter2")))))
	})
}
