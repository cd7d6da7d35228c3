package autoscaler

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Loop sizes the groups of one hosted cluster. It reads both clusters in each pass: between passes it holds nothing of theirs.
type Loop struct {
	Management client.Client // uncached
	Hosted     client.Client // uncached
	Namespace  string        // of the control plane
	Options    Options
	Clock      clock.Clock
	// Interval between passes. A pass without pods that wait, and without machines that could go, costs five small requests.
	Interval         time.Duration
	ManagementEvents recorder
	HostedEvents     recorder

	memory Memory
	told   map[string]string // reasons by the UID of pods
}

// Start makes passes until ctx ends.
func (l *Loop) Start(ctx context.Context) error {
	log := ctrl.LoggerFrom(ctx).WithName("autoscaler")
	ctx = ctrl.LoggerInto(ctx, log)
	failures := 0
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		switch err := l.Pass(ctx); {
		case err == nil || ctx.Err() != nil:
			failures = 0
		case apierrors.IsConflict(err):
			log.V(1).Info("somebody else was faster", "error", err.Error())
		default:
			// The hosted API may be down for a while, for example during an upgrade.
			if failures++; failures%6 == 1 {
				log.Error(err, "sizing NodePools has failed; trying again", "failures", failures)
			}
		}
	}, l.Interval, 0.1, true)
	return nil
}

// Pass makes one decision and carries it out.
func (l *Loop) Pass(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	obs, err := l.observe(ctx)
	if err != nil {
		return err
	}
	if len(obs.Groups) == 0 {
		l.memory = Memory{LastRemoval: l.memory.LastRemoval, LastFailure: l.memory.LastFailure}
		return nil
	}
	now := l.Clock.Now()
	plan := planFor(obs, l.Options, l.memory, now, rand.IntN)
	l.memory = plan.Memory
	done := l.apply(ctx, plan, now)
	if len(done.removed) > 0 {
		l.memory.LastRemoval = now
	}
	if done.refused {
		l.memory.LastFailure = now
	}
	return errors.Join(done.err, l.report(ctx, obs, plan, done.grown, done.removed))
}
