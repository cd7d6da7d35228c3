package work

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
)

func TestOtherName(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	repository := strings.TrimPrefix(server.URL, "http://") + "/hypershift/release"
	var digests []string
	for _, tag := range []string{":1.35.0", ":1.36.3"} {
		img, err := random.Image(64, 1)
		g.Expect(err).NotTo(HaveOccurred())
		ref, err := name.ParseReference(repository + tag)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(remote.Write(ref, img)).To(Succeed())
		digest, err := img.Digest()
		g.Expect(err).NotTo(HaveOccurred())
		digests = append(digests, repository+"@"+digest.String())
	}
	g.Expect(otherName(t.Context(), repository+":1.36.3")).To(Equal(digests[1]), "When the release has a tag it should be its digest")
	g.Expect(otherName(t.Context(), digests[1])).To(Equal(repository+":1.36.3"), "When the release has a digest it should be the tag with it")
	_, err := otherName(t.Context(), repository+":1.34.0")
	g.Expect(err).To(MatchError(ContainSubstring("asking the registry for release image "+repository+":1.34.0")), "When there is no such release it should say so")
}
