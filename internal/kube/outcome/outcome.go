// Package outcome decides what follows a pass of a reconciler that met a newer state than it had read.
//
// The other two outcomes need no code of ours: a pass that waits for a time says so by Result.RequeueAfter, and one that waits for a change, because
// trying again leads nowhere, by reconcile.TerminalError.
package outcome

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// After a conflict a pass is repeated: at first as soon as a cache has caught up, and with growing gaps while somebody goes on to write the same.
const (
	// Soon is long enough for a cache to show a write.
	Soon    = 50 * time.Millisecond
	longest = 10 * time.Second
)

// ErrStale says that what was read is older than what is there, as a conflict that an API server answers with says it. Errors that mean the same wrap it.
var ErrStale = errors.New("what was read is older than what is there")

// IsConflict says whether an error is a lost race and nothing else: an answer of an API server that somebody else wrote first, or ErrStale. Of errors that
// are joined all must be: a failure beside a conflict is a failure.
func IsConflict(err error) bool {
	if err == nil {
		return false
	}
	if err == ErrStale { //nolint:errorlint // because what it wraps is looked at below, where it may be one of several
		return true
	}
	switch wrapping := err.(type) { //nolint:errorlint // because it takes the tree of errors apart
	case interface{ Unwrap() []error }:
		for _, one := range wrapping.Unwrap() {
			if !IsConflict(one) {
				return false
			}
		}
		return len(wrapping.Unwrap()) > 0
	case interface{ Unwrap() error }:
		return IsConflict(wrapping.Unwrap())
	}
	// Fields that another manager owns are no race: they are his in the next pass, too, and somebody has to be told.
	return apierrors.IsConflict(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

// Outcomes are those of a controller. The zero value is ready for use, and safe for concurrent use.
type Outcomes struct {
	once sync.Once
	rows workqueue.TypedRateLimiter[reconcile.Request]
}

// Pass makes a pass of a reconciler, as a trace where somebody wants traces, and turns what it came to into what its controller does next. A conflict is no
// failure, only a reason to look again: it is neither logged nor counted as an error. Everything else stays as it is.
func (o *Outcomes) Pass(ctx context.Context, by reconcile.Reconciler, req reconcile.Request, do reconcile.Func) (reconcile.Result, error) {
	ctx, end := begin(ctx, by, req)
	result, err := do(ctx, req)
	end(result, err)
	return o.of(req, result, err)
}

func (o *Outcomes) of(req reconcile.Request, result reconcile.Result, err error) (reconcile.Result, error) {
	o.once.Do(func() {
		o.rows = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](Soon, longest)
	})
	if IsConflict(err) {
		return reconcile.Result{RequeueAfter: o.rows.When(req)}, nil
	}
	o.rows.Forget(req)
	return result, err
}

// Wrap makes a reconciler whose passes end as those of Pass do.
func Wrap(next reconcile.Reconciler) reconcile.Reconciler {
	outcomes := &Outcomes{}
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		return outcomes.Pass(ctx, next, req, next.Reconcile)
	})
}
