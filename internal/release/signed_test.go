package release

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/image"
	"hcp.internal/platform/internal/oci/rewrite"
	"hcp.internal/platform/internal/oci/signature"
)

func TestSignatures(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	repository, err := name.NewRepository(host + "/hypershift/release")
	g.Expect(err).NotTo(HaveOccurred())
	img, err := image.Release("1.36.3", map[string]string{"etcd": "r/a@sha256:" + strings.Repeat("1", 64)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(remote.Write(repository.Tag("1.36.3"), img)).To(Succeed())
	digest, err := img.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	byDigest := repository.Digest(digest.String()).String()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	public, err := signature.PublicPEM(&key.PublicKey)
	g.Expect(err).NotTo(HaveOccurred())
	policy := func(scope string) *signature.Policy {
		p, err := signature.ParsePolicy([]byte("rules:\n- scope: " + scope + "\n  keys:\n  - |\n    " + strings.ReplaceAll(strings.TrimSpace(string(public)), "\n", "\n    ")))
		g.Expect(err).NotTo(HaveOccurred())
		return p
	}
	lookup := func(o Options, image string) error {
		_, err := NewRegistryProvider(o).Lookup(context.Background(), image, []byte(`{"auths":{}}`))
		return err
	}

	t.Run("When the policy says nothing of a registry a release should need no signature", func(t *testing.T) {
		NewWithT(t).Expect(lookup(Options{Signatures: policy("registry.example.com")}, host+"/hypershift/release:1.36.3")).To(Succeed())
	})
	t.Run("When it must be signed and is named by a tag it should say to name it by digest", func(t *testing.T) {
		err := lookup(Options{Signatures: policy(host)}, host+"/hypershift/release:1.36.3")
		NewWithT(t).Expect(err).To(And(MatchError(ErrUnsigned), MatchError(ContainSubstring("name it by digest"))))
	})
	t.Run("When it is not signed it should be refused, also by way of a mirror that nobody has a rule for", func(t *testing.T) {
		g := NewWithT(t)
		err := lookup(Options{Signatures: policy(host)}, byDigest)
		g.Expect(err).To(And(MatchError(ErrUnsigned), MatchError(ContainSubstring("there is no "+signature.Tag(repository, digest).String()))))
		g.Expect(Temporary(err)).To(BeFalse())
		mirrored := "registry.example.com/hypershift/release@" + digest.String()
		mirrors := []rewrite.Mirror{{Source: "registry.example.com", Mirrors: []string{host}}}
		g.Expect(lookup(Options{Signatures: policy("registry.example.com"), Mirrors: mirrors}, mirrored)).To(HaveOccurred())
	})
	t.Run("When it is signed it should be read, though it was refused just before", func(t *testing.T) {
		g := NewWithT(t)
		p := NewRegistryProvider(Options{Signatures: policy(host)})
		_, err := p.Lookup(t.Context(), byDigest, []byte(`{"auths":{}}`))
		g.Expect(err).To(MatchError(ErrUnsigned))
		attach(g, t.Context(), key, repository, digest)
		got, err := p.Lookup(t.Context(), byDigest, []byte(`{"auths":{}}`))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Version).To(Equal("1.36.3"))
	})
}

func attach(g Gomega, ctx context.Context, key *ecdsa.PrivateKey, repository name.Repository, digest v1.Hash) {
	added, err := signature.Attach(ctx, key, repository, digest)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(added).To(BeTrue())
}
