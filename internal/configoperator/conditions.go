package configoperator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/configoperator/openshift"
	"hcp.internal/platform/internal/kube/responses"
)

const (
	// maxFailures bounds how many objects the condition lists for one cause.
	maxFailures = 10
	// maxErrorText bounds what one failure writes to the log: the text may be that of a tenant's webhook.
	maxErrorText = 500
)

// Failure is one object that could not be applied.
type Failure struct {
	Object string // kind and name, from our own list
	Err    error
}

func (f Failure) Error() string {
	return f.Object + ": " + clip.Over(f.Err.Error(), maxErrorText, "...")
}

// Unwrap returns what the API server or the network said.
func (f Failure) Unwrap() error { return f.Err }

// succeeded is the condition about a pass. Its message holds words of ours only: what the hosted API answers is written by
// its tenant's webhooks.
func succeeded(generation int64, missing error, failures []Failure) metav1.Condition {
	c := metav1.Condition{
		Type: hyperv1.ConfigOperatorReconciliationSucceeded, ObservedGeneration: generation,
		Status: metav1.ConditionTrue, Reason: hyperv1.AsExpectedReason, Message: hyperv1.AllIsWellMessage,
	}
	var lines []string
	if missing != nil {
		lines = strings.Split(missing.Error(), "\n")
	}
	lines = append(lines, grouped(failures)...)
	if len(lines) == 0 {
		return c
	}
	c.Status, c.Reason, c.Message = metav1.ConditionFalse, hyperv1.ReconcileErrorReason, strings.Join(lines, "; ")
	return c
}

// grouped lists failures by what went wrong: when the hosted API refuses everything, it says so once.
func grouped(failures []Failure) []string {
	objects := map[string][]string{}
	var causes []string // in the order of the first failure
	for _, f := range failures {
		cause := inOurWords(f.Err)
		if objects[cause] == nil {
			causes = append(causes, cause)
		}
		objects[cause] = append(objects[cause], f.Object)
	}
	var lines []string
	for _, cause := range causes {
		names := objects[cause]
		if more := len(names) - maxFailures; more > 0 {
			names = append(names[:maxFailures:maxFailures], fmt.Sprintf("%d more", more))
		}
		lines = append(lines, strings.Join(names, ", ")+": "+cause)
	}
	return lines
}

func inOurWords(err error) string {
	var dns *net.DNSError
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return "the hosted API refuses our user: the binding hcco-cluster-admin is missing, or a webhook in the hosted cluster forbids the change"
	case errors.Is(err, openshift.ErrNoKind):
		return openshift.ErrNoKind.Error()
	case errors.Is(err, openshift.ErrNoRoutes):
		return openshift.ErrNoRoutes.Error()
	case apierrors.IsNotFound(err):
		return "the hosted API answers NotFound: the namespace is not there yet"
	case errors.As(err, new(apierrors.APIStatus)):
		return fmt.Sprintf("the hosted API answers %s", apierrors.ReasonForError(err))
	case errors.Is(err, context.DeadlineExceeded) || isTimeout(err):
		return "the hosted API doesn't answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the hosted API doesn't accept connections"
	case errors.As(err, &dns):
		return "the host name of the hosted API doesn't resolve"
	case errors.Is(err, responses.ErrTooLarge):
		return responses.ErrTooLarge.Error()
	default:
		return "the hosted API can't be reached; the log has the details"
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}
