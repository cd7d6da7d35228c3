package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"hcp.internal/platform/internal/oci/pull"
	"hcp.internal/platform/internal/oci/reach"
	"hcp.internal/platform/internal/oci/signature"
	"hcp.internal/platform/internal/packages/author/violation"
)

// PullError says why an image could not be pulled, and never repeats what a registry sent: who writes a Package chooses the host that is asked, and reads
// the answer in a condition. The cause is for errors.As alone.
type PullError struct {
	Image, Text string
	cause       error
}

func (e *PullError) Error() string { return fmt.Sprintf("image %.256q: %s", e.Image, e.Text) }

func (e *PullError) Unwrap() error { return e.cause }

// codes are those that the specification of registries knows. A registry could send any.
var codes = []transport.ErrorCode{
	transport.BlobUnknownErrorCode, transport.ManifestBlobUnknownErrorCode, transport.ManifestInvalidErrorCode, transport.ManifestUnknownErrorCode,
	transport.NameInvalidErrorCode, transport.NameUnknownErrorCode, transport.UnauthorizedErrorCode, transport.DeniedErrorCode, transport.UnsupportedErrorCode,
	transport.TooManyRequestsErrorCode, transport.UnavailableErrorCode,
}

// explain turns an error of the registry's client into a PullError. What is wrong with the content stays a violation.
func explain(image string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*violation.Error](err); ok {
		return err
	}
	if _, ok := errors.AsType[*PullError](err); ok {
		return err
	}
	out := &PullError{Image: image, cause: err}
	var remote *transport.Error
	var dns *net.DNSError
	var op *net.OpError
	var request *url.Error
	switch {
	case errors.Is(err, signature.ErrUnsigned):
		out.Text = err.Error() // in our own words
	case errors.As(err, &remote):
		out.Text = ofStatus(remote)
	case errors.Is(err, reach.ErrRefused):
		out.Text = reach.ErrRefused.Error()
	case errors.Is(err, pull.ErrRedirect):
		out.Text = pull.ErrRedirect.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		out.Text = fmt.Sprintf("the registry gave no complete answer within %s", pullTime)
	case errors.As(err, &dns):
		out.Text = "looking up the registry's name failed: check the host"
	case errors.As(err, &op):
		out.Text = "the registry can't be reached: check host and port, and the network path to it"
		if op.Timeout() {
			out.Text = "the registry does not answer: check host and port, and the network path to it"
		}
	case errors.As(err, &request), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		out.Text = "the connection to the registry failed"
	default:
		out.Text = "what the registry sent is not a readable image"
	}
	return out
}

func ofStatus(remote *transport.Error) string {
	var known []string
	for _, e := range remote.Errors {
		if slices.Contains(codes, e.Code) && !slices.Contains(known, string(e.Code)) {
			known = append(known, string(e.Code))
		}
	}
	text := fmt.Sprintf("the registry answered with status %d", remote.StatusCode)
	if len(known) > 0 {
		text += " (" + strings.Join(known, ", ") + ")"
	}
	switch remote.StatusCode {
	case http.StatusNotFound:
		text += ": check the repository and the tag or digest, or push the image"
	case http.StatusUnauthorized, http.StatusForbidden:
		text += ": no pull secret of the operator may read this repository"
	case http.StatusTooManyRequests:
		text += ": it is asked too often"
	}
	return text
}
