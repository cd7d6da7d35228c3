package teardown

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// The control-plane-operator has a finalizer on the HostedControlPlane, and Cluster API's manager one on the Cluster, so that they can remove what lies
// outside the namespace. On platforms whose clusters lie in their namespace altogether (platform.Contained) there is nothing of the kind, and a finalizer
// must not hold up the deletion when nobody is there to remove it: these are the times after which we do.
const (
	// removerGone: without a Deployment nothing will ever remove it. A moment, because our cache may be behind.
	removerGone = 2 * time.Second
	// removerDown: a pod that is just restarting needs some seconds.
	removerDown = 5 * time.Second
	// operatorStuck: it runs, and removing a finalizer takes it milliseconds.
	operatorStuck = 20 * time.Second
	// managerStuck is longer than the 137 s for which a manager that was killed still holds its lease.
	managerStuck = 3 * time.Minute
)

// remover is the program that should remove a finalizer.
type remover struct {
	name       string             // for people
	deployment *appsv1.Deployment // nil: there is none
	stuck      time.Duration      // how long it may take while it runs
}

// wait says how much longer the program is waited for, once the object has been deleted for so long: not at all from zero on. The hint says why it won't
// remove the finalizer; empty: it may.
func (r remover) wait(deleted time.Duration) (left time.Duration, hint string) {
	switch {
	case r.deployment == nil:
		return removerGone - deleted, r.name + " is gone, so its finalizer is removed soon"
	case r.deployment.Status.AvailableReplicas == 0:
		return removerDown - deleted, r.name + " does not run, so its finalizer is removed soon"
	}
	return r.stuck - deleted, ""
}

// await plans for an object that only its finalizer keeps, and says whether the finalizer is to be removed by us, and what to tell people.
func (t *Plan) await(r remover, since, now time.Time, usual string) (strip bool, hint string) {
	left, hint := r.wait(now.Sub(since))
	t.RecheckAfter = min(t.RecheckAfter, max(left, time.Second))
	if hint == "" {
		hint = usual
	}
	return left <= 0, hint
}
