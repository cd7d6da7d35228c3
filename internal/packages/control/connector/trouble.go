package connector

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"

	"hcp.internal/api/packages/v1alpha1"
)

// Trouble is why the target can't be worked with. Its text is ours: nothing that the target said is part of it.
type Trouble struct {
	// Reason is that of the condition.
	Reason string
	// Message says what is wrong, for people.
	Message string
}

// Error implements error.
func (t *Trouble) Error() string { return t.Message }

func unreachable(format string, args ...any) *Trouble {
	return &Trouble{Reason: v1alpha1.ReasonTargetUnreachable, Message: "the target cluster's API server can't be reached: " + fmt.Sprintf(format, args...)}
}

func misbehaves(format string, args ...any) *Trouble {
	return &Trouble{Reason: v1alpha1.ReasonTargetMisbehaves, Message: "the target cluster's API server misbehaves: " + fmt.Sprintf(format, args...)}
}

func unauthorized(why string) *Trouble {
	return &Trouble{Reason: v1alpha1.ReasonTargetUnauthorized, Message: "the target cluster's API server refuses the credentials in the kubeconfig: " + why}
}

// troubleOf says what a failed request tells of the target. It is nil for a request that was given up by us.
func troubleOf(err error) *Trouble {
	var (
		known     *Trouble
		notFound  *net.DNSError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		verify    *tls.CertificateVerificationError
		alert     tls.AlertError
		notTLS    tls.RecordHeaderError
		timeout   interface{ Timeout() bool }
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.Canceled):
		return nil
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return unreachable("it does not answer in time")
	case errors.Is(err, syscall.ECONNREFUSED):
		return unreachable("connection refused")
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return unreachable("the connection broke")
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return unreachable("no route to it")
	case errors.As(err, &notFound):
		return unreachable("its name %q can't be resolved", notFound.Name)
	case errors.As(err, &authority):
		return unreachable("its certificate is not signed by the authority in the kubeconfig")
	case errors.As(err, &host):
		return unreachable("its certificate is for another name than the one in the kubeconfig")
	case errors.As(err, &invalid), errors.As(err, &verify):
		return unreachable("its certificate is not valid")
	case errors.As(err, &alert):
		return unauthorized("it ended the TLS handshake")
	case errors.As(err, &notTLS):
		return unreachable("it does not speak TLS")
	case errors.As(err, &timeout) && timeout.Timeout():
		return unreachable("it does not answer in time")
	default:
		return unreachable("the connection failed")
	}
}

// troubleOfStatus says what a status code tells of the target, nil for those that are part of normal work.
func troubleOfStatus(code int) *Trouble {
	switch {
	case code == http.StatusUnauthorized:
		return unauthorized("it answers 401")
	case code == http.StatusTooManyRequests:
		return unreachable("it is overloaded and answers 429")
	case code >= http.StatusInternalServerError:
		return unreachable("it answers %d", code)
	case code >= http.StatusMultipleChoices && code < http.StatusBadRequest:
		return misbehaves("it redirects to somewhere else")
	}
	return nil
}
