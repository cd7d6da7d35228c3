// Package pull bounds what asking a registry may cost, and whom a registry may make us ask.
package pull

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"hcp.internal/platform/internal/oci/reach"
)

// ErrRedirect: a registry wanted to be asked without encryption after it was asked with it.
var ErrRedirect = errors.New("the registry redirects from https to http")

// Timeouts bound the phases of a request; the caller's context bounds the whole.
type Timeouts struct {
	Dial   time.Duration
	Answer time.Duration // from the request to the head of the answer; 0: what the caller's context allows
}

// Transport is how registries are asked. Networks that are refused never are.
func Transport(refused reach.Refused, t Timeouts) *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            refused.DialContext(t.Dial),
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  t.Answer,
		IdleConnTimeout:        30 * time.Second,
		MaxIdleConns:           20,
		MaxIdleConnsPerHost:    4,
		MaxResponseHeaderBytes: 64 << 10,
		ForceAttemptHTTP2:      true,
	}
}

// Guard refuses redirects that give up encryption, and bounds each answer, which the client library reads whole: one that is announced to be larger than
// limit bytes is an error, and any other is cut there.
func Guard(next http.RoundTripper, limit int64) http.RoundTripper {
	return guard{next: next, limit: limit}
}

type guard struct {
	next  http.RoundTripper
	limit int64
}

// RoundTrip implements http.RoundTripper. req.Response is the redirect that led here, if any.
func (g guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if from := req.Response; from != nil && from.Request != nil && from.Request.URL.Scheme == "https" && req.URL.Scheme == "http" {
		return nil, ErrRedirect
	}
	resp, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.ContentLength > g.limit && req.Method != http.MethodHead { // which has a length and no content
		_ = resp.Body.Close() // nothing of it is wanted
		return nil, fmt.Errorf("the registry answers with %d bytes, at most %d are read", resp.ContentLength, g.limit)
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, g.limit), resp.Body}
	return resp, nil
}

// Image is the image of an answer, and whether that is an index: of one, the image for the platform that was asked for, or else the first that is one
// and that fits takes.
func Image(d *remote.Descriptor, fits func(v1.Descriptor) bool) (img v1.Image, isIndex bool, err error) {
	img, err = d.Image()
	if err == nil || !d.MediaType.IsIndex() {
		return img, d.MediaType.IsIndex(), err
	}
	index, err := d.ImageIndex()
	if err != nil {
		return nil, true, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, true, err
	}
	for _, m := range manifest.Manifests {
		if m.MediaType.IsImage() && fits(m) {
			img, err = index.Image(m.Digest)
			return img, true, err
		}
	}
	return nil, true, ErrNoImage
}

// ErrNoImage: an index has no image that could be taken.
var ErrNoImage = errors.New("the manifest list has no image")

// Denied tells whether a registry refused who asks, so that other credentials may be tried.
func Denied(err error) bool {
	var answer *transport.Error
	return errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden)
}
