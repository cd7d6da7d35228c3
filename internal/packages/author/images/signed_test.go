package images_test

import (
	"archive/tar"
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
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/oci/signature"
	"hcp.internal/platform/internal/packages/author/images"
)

func TestSigned(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	repository, err := name.NewRepository(strings.TrimPrefix(server.URL, "http://") + "/team/web")
	g.Expect(err).NotTo(HaveOccurred())
	img := image(t, layer(t, func(w *tar.Writer) error {
		const text = "apiVersion: manifests.package-operator.run/v1alpha1\n"
		if err := w.WriteHeader(&tar.Header{Name: "package/manifest.yaml", Mode: 0o644, Size: int64(len(text))}); err != nil {
			return err
		}
		_, err := io.WriteString(w, text)
		return err
	}))
	g.Expect(remote.Write(repository.Tag("1"), img)).To(Succeed())
	digest, err := img.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	public, err := signature.PublicPEM(&key.PublicKey)
	g.Expect(err).NotTo(HaveOccurred())
	policy, err := signature.ParsePolicy([]byte("rules:\n- scope: '*'\n  keys:\n  - |\n    " + strings.ReplaceAll(strings.TrimSpace(string(public)), "\n", "\n    ")))
	g.Expect(err).NotTo(HaveOccurred())
	p := &images.Puller{Clock: clock.RealClock{}, Transport: remote.DefaultTransport, Signatures: policy}

	_, err = p.Pull(t.Context(), repository.Tag("1").String())
	g.Expect(err).To(And(MatchError(signature.ErrUnsigned), MatchError(ContainSubstring("there is no "+signature.Tag(repository, digest).String()))),
		"When a package has no signature it should say what is missing")
	_, err = signature.Attach(t.Context(), key, repository, digest)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Pull(t.Context(), repository.Tag("1").String())).To(HaveField("Files", HaveKey("manifest.yaml")), "When it is signed it should be unpacked")
}
