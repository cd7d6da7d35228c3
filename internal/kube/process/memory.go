package process

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Settled is the percentage by which the heap of an operator that exists once per hosted cluster may grow between two collections. Such a process is
// idle nearly always, so memory counts for more than the time that the collector takes.
const Settled = 40

// startPercent lets the heap grow to five times of what is live: about 25 MiB more at its peak for an operator of one control plane, and
// a fifth less processor time.
const startPercent = 400

// SpareTime lets the heap grow while a process starts. Near what is live, the collector would run every few megabytes, and with many hosted clusters that
// start at once, processors are what is short. The function that it returns ends that: it sets the percentage of $GOGC, else settled, gives memory back to the
// system, and, unless $GOMAXPROCS says otherwise, keeps to one processor: an idle process wakes for a timer now and then, and with several processors each
// time wakes a second thread that looks for work, too. It may be called several times and concurrently; only the first call does something.
func SpareTime(settled int) (end func()) {
	if fromEnv := debug.SetGCPercent(startPercent); os.Getenv("GOGC") != "" {
		settled = fromEnv
	}
	return sync.OnceFunc(func() {
		debug.SetGCPercent(settled)
		debug.FreeOSMemory()
		if os.Getenv("GOMAXPROCS") == "" {
			runtime.GOMAXPROCS(1)
		}
	})
}

// StartThenRest is SpareTime for an operator that exists once per hosted cluster. From the call of end on, it also gives back, every minute, the parts of its
// program that it hasn't needed (KeepForgetting), until ctx ends: starting touches nearly all of a program, resting little.
func StartThenRest(ctx context.Context, settled int) (end func()) {
	started := SpareTime(settled)
	return sync.OnceFunc(func() {
		started()
		go KeepForgetting(ctx)
	})
}

// SpareMemory makes the process collect garbage more often, unless GOGC says how often. Caches are most of the heap and live long; what a pass
// allocates is small beside them, so that collecting more than twice as often costs some 4 % of the processor time of a rollout.
func SpareMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(Settled)
	}
}

// forgetEvery is how often a process gives back the parts of its program that it has not needed lately. Those that it does need come back
// within a few milliseconds.
const forgetEvery = time.Minute

// ForgetUnused has a process give back what only starting needed, once caches are filled, and from then on what is needed rarely.
func ForgetUnused(mgr manager.Manager) error { return mgr.Add(unused{mgr.GetCache()}) }

type unused struct{ cache cache.Cache }

// NeedLeaderElection says that a process that waits for the lease has started, too.
func (unused) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (u unused) Start(ctx context.Context) error {
	if !u.cache.WaitForCacheSync(ctx) {
		return nil // the process ends
	}
	KeepForgetting(ctx)
	return nil
}

// KeepForgetting is ForgetUnused for a process without a manager: call it when what only starting needed is done with. It returns when ctx ends, or when
// the system doesn't let it.
func KeepForgetting(ctx context.Context) {
	debug.FreeOSMemory()
	ticker := clock.RealClock{}.NewTicker(forgetEvery)
	defer ticker.Stop()
	for {
		if _, err := ForgetProgram(); err != nil {
			ctrl.LoggerFrom(ctx).V(1).Info("memory stays larger than it could be", "reason", err.Error())
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}
