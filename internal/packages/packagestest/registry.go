package packagestest

import (
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Registry is a registry of images on loopback, for a test.
type Registry struct {
	// Host is its name in references.
	Host string
	*httptest.Server
}

// NewRegistry starts one.
func NewRegistry(t testing.TB) *Registry {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return &Registry{Host: strings.TrimPrefix(server.URL, "http://"), Server: server}
}

// Push stores an image as repository:tag, and returns its reference by tag and by digest.
func (r *Registry) Push(t testing.TB, repository string, img v1.Image) (byTag, byDigest string) {
	t.Helper()
	ref, err := name.NewTag(r.Host + "/" + repository)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return ref.String(), ref.Context().Digest(digest.String()).String()
}
