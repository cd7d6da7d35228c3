package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/kube/desk"
	"hcp.internal/platform/internal/oci/credentials"
	"hcp.internal/platform/internal/oci/pull"
	"hcp.internal/platform/internal/oci/signature"
)

// Sentinels that every Provider of this package wraps; test with errors.Is.
var (
	// ErrPending: the registry has not answered yet. The lookup goes on; who subscribed hears of its end.
	ErrPending = desk.ErrPending
	// ErrNotFound: the registry answered, and has no such image.
	ErrNotFound = errors.New("no such image")
	// ErrUnauthorized: the registry refused the pull secret, or anonymous access.
	ErrUnauthorized = errors.New("access denied")
	// ErrUnreachable: no usable answer: connection, DNS, TLS, time-out, or a server error. Worth trying again.
	ErrUnreachable = errors.New("registry unreachable")
	// ErrNotARelease: the image exists and is not a release image (also when it passes the limits of what is read).
	ErrNotARelease = errors.New("not a release image")
	// ErrUnsigned: the image has no signature by a key that the installation's policy requires.
	ErrUnsigned = signature.ErrUnsigned
	// ErrBadReference: the reference is not an image reference.
	ErrBadReference = errors.New("not an image reference")
	// ErrBadPullSecret: the pull secret is not a dockerconfigjson.
	ErrBadPullSecret = credentials.ErrMalformed
)

// LookupError says which image could not be used, why, and what a person can do. It never repeats what a registry sent.
type LookupError struct {
	Image  string
	Kind   error  // one of the sentinels above
	Detail string // our own words, may be empty
	cause  error  // for logs at high verbosity through errors.As only; may hold text of the remote side
}

// Error names the image, the problem, and the remedy.
func (e *LookupError) Error() string {
	detail := ""
	if e.Detail != "" {
		detail = " (" + e.Detail + ")"
	}
	return fmt.Sprintf("image %q: %v%s: %s", abbreviate(e.Image), e.Kind, detail, remedies[e.Kind])
}

// Unwrap gives the sentinel and the cause.
func (e *LookupError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.cause}
}

// Temporary tells that the same lookup may work later without anybody changing an object.
func Temporary(err error) bool {
	return errors.Is(err, ErrUnreachable) || errors.Is(err, ErrPending)
}

var remedies = map[error]string{
	ErrPending:       "the registry is slow to answer; the lookup goes on",
	ErrNotFound:      "check the repository and the tag or digest, or push the image",
	ErrUnauthorized:  "the pull secret needs credentials that may read this repository",
	ErrUnreachable:   "check the registry's name and port and the network path to it; the lookup is repeated",
	ErrNotARelease:   "name an image that holds release-manifests/image-references",
	ErrUnsigned:      "sign it with a key of the policy (hypershift images sign, or cosign sign --key), or name an image that is signed",
	ErrBadReference:  "write it as registry/repository:tag or registry/repository@sha256:digest",
	ErrBadPullSecret: credentials.Remedy,
}

func abbreviate(image string) string { return clip.Over(image, 256, "…") }

// classify turns an error of the registry client into a LookupError.
func classify(ctx context.Context, image string, err error) error {
	var known *LookupError
	if err == nil || errors.As(err, &known) {
		return err
	}
	e := &LookupError{Image: image, cause: err}
	var remote *transport.Error
	var network net.Error
	var request *url.Error
	switch {
	case errors.Is(err, ErrUnsigned):
		return &LookupError{Image: image, Kind: ErrUnsigned, Detail: trimPrefix(err, ErrUnsigned)}
	case errors.Is(err, ErrNotARelease):
		return &LookupError{Image: image, Kind: ErrNotARelease, Detail: trimPrefix(err, ErrNotARelease)}
	case errors.As(err, &remote):
		e.Detail, e.Kind = ofStatus(remote.StatusCode)
	case errors.Is(err, context.DeadlineExceeded), ctx.Err() != nil:
		e.Kind, e.Detail = ErrUnreachable, "no complete answer in time"
	case errors.Is(err, pull.ErrRedirect):
		e.Kind, e.Detail = ErrUnreachable, pull.ErrRedirect.Error()
	case errors.As(err, &network), errors.As(err, &request), errors.Is(err, io.ErrUnexpectedEOF):
		e.Kind, e.Detail = ErrUnreachable, networkDetail(err)
	default:
		// The registry answered, and what it sent is not an image: garbage JSON, a wrong digest, a truncated layer.
		e.Kind, e.Detail = ErrNotARelease, "what the registry sent is not a readable image"
	}
	return e
}

func ofStatus(code int) (detail string, kind error) {
	switch code {
	case http.StatusNotFound:
		return "", ErrNotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		return "", ErrUnauthorized
	default:
		return fmt.Sprintf("the registry answered with status %d", code), ErrUnreachable
	}
}

// networkDetail keeps the part of a network error that this machine knows by itself.
func networkDetail(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns):
		return "looking up the registry's name failed"
	case errors.As(err, &op):
		// Without the local port, which differs every time and would make every message a new one.
		detail := op.Op + " " + op.Net
		if op.Addr != nil {
			detail += " " + op.Addr.String()
		}
		return detail + ": " + op.Err.Error()
	default:
		return "the connection failed"
	}
}

// trimPrefix gives what err says beyond "sentinel: ".
func trimPrefix(err, sentinel error) string {
	text, prefix := err.Error(), sentinel.Error()+": "
	if len(text) > len(prefix) && text[:len(prefix)] == prefix {
		return text[len(prefix):]
	}
	return ""
}
