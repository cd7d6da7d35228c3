// Package throttle leaves gaps between passes over the same object.
//
// While a control plane starts, what belongs to it changes status many times a second, and a pass for each change would do the same
// work again. With fifteen control planes that start at once, such passes are what takes the processors. An event that comes after a
// quiet moment is acted on at once.
package throttle

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Bounds of a gap.
const (
	leastGap = 200 * time.Millisecond
	// mostGap bounds how late an event may be acted on when passes take long, which they do when processors are short.
	mostGap = 2 * time.Second
	// gapShare is the gap in durations of the last pass: at most a fourth of the time is spent in passes.
	gapShare = 3
)

// Pass is Reconcile. It also says whether a gap shall follow: one does not follow a pass that could not act yet, when everything
// waits for the next.
type Pass func(context.Context, ctrl.Request) (_ ctrl.Result, gap bool, _ error)

// Throttled makes a reconciler of a Pass.
type Throttled struct {
	pass   Pass
	clock  clock.PassiveClock
	urgent func(context.Context, ctrl.Request) bool

	mu    sync.Mutex
	after map[reconcile.Request]time.Time // earliest begin of the next pass
}

// New puts gaps between the passes over one object. urgent, which may be nil, is asked in a gap whether somebody waits for the next
// pass; it has to be cheap.
func New(pass Pass, clk clock.PassiveClock, urgent func(context.Context, ctrl.Request) bool) *Throttled {
	return &Throttled{pass: pass, clock: clk, urgent: urgent, after: map[reconcile.Request]time.Time{}}
}

// Wrap is New for a reconciler that could act in each pass. A gap follows unless a pass failed, for then the queue decides when to try again.
func Wrap(next reconcile.Reconciler, clk clock.PassiveClock, urgent func(context.Context, ctrl.Request) bool) *Throttled {
	return New(func(ctx context.Context, req ctrl.Request) (ctrl.Result, bool, error) {
		result, err := next.Reconcile(ctx, req)
		return result, err == nil, err
	}, clk, urgent)
}

// Reconcile implements reconcile.Reconciler. A pass that comes too early is put off; those that come meanwhile join it.
func (p *Throttled) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	began := p.clock.Now()
	if wait := p.until(req).Sub(began); wait > 0 && (p.urgent == nil || !p.urgent(ctx, req)) {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	result, gap, err := p.pass(ctx, req)
	if gap {
		ended := p.clock.Now()
		p.mu.Lock()
		defer p.mu.Unlock()
		maps.DeleteFunc(p.after, func(_ reconcile.Request, at time.Time) bool { return !at.After(ended) })
		p.after[req] = ended.Add(gapAfter(ended.Sub(began)))
	}
	return result, err
}

func (p *Throttled) until(req reconcile.Request) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.after[req]
}

// gapAfter is the gap behind a pass that took so long.
func gapAfter(pass time.Duration) time.Duration { return min(max(gapShare*pass, leastGap), mostGap) }
