package images

import (
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote"

	"hcp.internal/platform/internal/image/reach"
)

// dialTime bounds a connection's beginning. The library's own 30 s would be half of a pull.
const dialTime = 10 * time.Second

// Transport is how registries are asked.
func Transport(refused reach.Refused) http.RoundTripper {
	t, ok := remote.DefaultTransport.(*http.Transport)
	if !ok {
		return remote.DefaultTransport
	}
	t = t.Clone()
	t.DialContext = refused.DialContext(dialTime)
	return t
}
