package teardown

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// Times after which the finalizer of a Cluster is removed on platforms whose clusters lie in their namespace altogether, and once nothing
// else is left: see operatorGone for the first two.
const (
	managerGone = operatorGone
	managerDown = operatorDown
	// managerStuck is longer than the 137 s for which a manager that was killed still holds its lease.
	managerStuck = 3 * time.Minute
)

// planCluster decides about the CAPI Cluster. The manager deletes the HostedControlPlane first, then the infrastructure.
func planCluster(r Observed, now time.Time, t *Plan) {
	if r.cluster.DeletionTimestamp.IsZero() {
		t.delete = append(t.delete, r.cluster)
		t.Waiting = append(t.Waiting, waitingFor("Cluster", r.cluster, "Cluster API removes what belongs to it first"))
		return
	}
	hint := "Cluster API removes its finalizer when the HostedControlPlane is gone"
	if r.contained && r.hcp == nil {
		allowance := managerStuck
		switch {
		case r.manager == nil:
			allowance, hint = managerGone, "Cluster API's manager is gone, so its finalizer is removed soon"
		case r.manager.Status.AvailableReplicas == 0:
			allowance, hint = managerDown, "Cluster API's manager does not run, so its finalizer is removed soon"
		}
		left := r.cluster.DeletionTimestamp.Add(allowance).Sub(now)
		t.stripCluster = left <= 0
		t.RecheckAfter = min(t.RecheckAfter, max(left, time.Second))
	}
	t.Waiting = append(t.Waiting, waitingFor("Cluster", r.cluster, hint))
}

// orphanedAfter is how long machines of a pool may take while one of the programs that remove them does not run. It is longer than a restart.
const orphanedAfter = time.Minute

// orphaned tells that machines wait for somebody who does not come. Where a cluster lies in its namespace altogether, the namespace will take
// them with it.
func orphaned(r Observed, now time.Time) bool {
	runs := func(d *appsv1.Deployment) bool { return d != nil && d.Status.AvailableReplicas > 0 }
	if !r.contained || r.cluster == nil || (runs(r.manager) && runs(r.provider)) {
		return false
	}
	for i := range r.pools {
		if since := r.pools[i].DeletionTimestamp; since.IsZero() || now.Sub(since.Time) < orphanedAfter {
			return false
		}
	}
	return true
}
