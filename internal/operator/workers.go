package operator

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller"

	"hcp.internal/platform/internal/kube/process"
)

// ConcurrentReconciles is how many HostedClusters, or NodePools, are worked on at once; a pass mostly waits for the API server.
const ConcurrentReconciles = 10

const (
	// Failed passes are repeated after 1 s, 2 s, … up to 10 s.
	retryShortest, retryLongest = time.Second, 10 * time.Second
	// passTimeout bounds a pass: everything that it calls has limits of its own, which are tighter.
	passTimeout = 2 * time.Minute
)

// Workers are the options of the controllers of HostedClusters and of NodePools.
func Workers() controller.Options {
	o := process.Workers(ConcurrentReconciles, retryShortest, retryLongest)
	o.ReconciliationTimeout = passTimeout
	return o
}
