package teardown

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
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
		manager := remover{name: "Cluster API's manager", deployment: r.manager, stuck: managerStuck}
		t.stripCluster, hint = t.await(manager, r.cluster.DeletionTimestamp.Time, now, hint)
	}
	t.Waiting = append(t.Waiting, waitingFor("Cluster", r.cluster, hint))
}

// orphanedAfter is how long machines of a pool may take while one of the programs that remove them does not run. It is longer than a restart.
const orphanedAfter = time.Minute

// orphaned tells that machines wait for somebody who does not come. Where they lie outside, the platform knows by its credentials. Where a cluster lies in its namespace altogether, the namespace will take
// them with it.
func orphaned(r Observed, now time.Time) bool {
	runs := func(d *appsv1.Deployment) bool { return d != nil && d.Status.AvailableReplicas > 0 }
	if !r.contained && r.orphanable {
		return true
	}
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
