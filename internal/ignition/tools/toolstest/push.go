package toolstest

import (
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"hcp.internal/platform/internal/release/releasetest"
)

// digestOf publishes an image and returns its reference by digest, as payloads name images.
func digestOf(t testing.TB, r *releasetest.Registry, repositoryTag string, img v1.Image) string {
	t.Helper()
	r.Push(t, repositoryTag, img)
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	repository := repositoryTag[:len(repositoryTag)-len(tagOf(repositoryTag))-1]
	return r.Host + "/" + repository + "@" + digest.String()
}

func tagOf(repositoryTag string) string {
	for i := len(repositoryTag) - 1; i >= 0; i-- {
		if repositoryTag[i] == ':' {
			return repositoryTag[i+1:]
		}
	}
	return ""
}
