// Package responses bounds what is read from API servers that are not trusted, such as those of hosted clusters.
package responses

import (
	"errors"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
)

// ErrTooLarge is what reading an answer past its limit gives.
var ErrTooLarge = errors.New("an answer of the hosted API is too large")

// Limit makes every connection of cfg refuse to read more than so many bytes of an answer. Watches are not counted: they go on for
// ever, and their decoder bounds each event.
func Limit(cfg *rest.Config, bytes int64) {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return limit{next, bytes} })
}

type limit struct {
	next  http.RoundTripper
	bytes int64
}

func (l limit) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(req)
	if err == nil && req.URL.Query().Get("watch") == "" {
		resp.Body = &body{ReadCloser: resp.Body, left: l.bytes}
	}
	return resp, err
}

type body struct {
	io.ReadCloser
	left int64
}

func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, ErrTooLarge
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}
