package hostedcontrolplane

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Time between the end of a pass and the next one. While a control plane starts, its Deployments change status many times a second, and a pass for
// each would do the same work again; with fifteen control planes that start at once, such passes are what takes the processors. An event that comes
// after a quiet moment is acted on at once.
const (
	leastGap = 200 * time.Millisecond
	// mostGap bounds how late an event may be acted on when passes take long, which they do when processors are short.
	mostGap = 2 * time.Second
	// gapShare is the gap in durations of the last pass: at most a fourth of the time is spent in passes.
	gapShare = 3
)

// paced puts gaps between passes, after the first that brought the world to the spec: until then everything waits for us.
type paced struct {
	// pass says, besides what Reconcile returns, whether it brought the world to the spec.
	pass  func(context.Context, ctrl.Request) (ctrl.Result, bool, error)
	clock clock.PassiveClock

	mu    sync.Mutex
	after time.Time // earliest begin of the next pass
}

// Reconcile implements reconcile.Reconciler. A pass that comes too early is put off; those that come meanwhile join it.
func (p *paced) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	began := p.clock.Now()
	p.mu.Lock()
	wait := p.after.Sub(began)
	p.mu.Unlock()
	if wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	result, acted, err := p.pass(ctx, req)
	if acted {
		ended := p.clock.Now()
		p.mu.Lock()
		p.after = ended.Add(gapAfter(ended.Sub(began)))
		p.mu.Unlock()
	}
	return result, err
}

// gapAfter is the gap behind a pass that took so long.
func gapAfter(pass time.Duration) time.Duration { return min(max(gapShare*pass, leastGap), mostGap) }
