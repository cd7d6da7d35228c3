// Package removal is what the hosted-cluster-config-operator, which removes what a hosted cluster has in a cloud, agrees on with those who wait for that: when it is over,
// and for how long it has been waited for.
package removal

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Limit is how long the removal may go on without anything new. The config operator then gives up, and says so in the condition CloudResourcesDestroyed.
const Limit = 10 * time.Minute

// EarlyFor is how long the removal from a payload's cluster waits for the end of its cluster-version-operator. Then it begins all the same: a pod that doesn't
// end must not keep resources that cost money, and a control-plane-operator that is older says nothing of it.
const EarlyFor = 2 * time.Minute

// Early says that the removal from a payload's cluster is not to begin yet, since its cluster-version-operator may still run and would bring back what goes.
func Early(hcp *hyperv1.HostedControlPlane, now time.Time) bool {
	return !hcp.DeletionTimestamp.IsZero() && !meta.IsStatusConditionTrue(hcp.Status.Conditions, hyperv1.CVOScaledDown) && now.Sub(hcp.DeletionTimestamp.Time) < EarlyFor
}

// Progress is how far the removal has come.
type Progress struct {
	// Over: all is gone, or the config operator has given up. It does nothing more.
	Over bool
	// Waited is the time since the deletion, or since CloudResourcesDestroyed last changed its status if that was later. It goes on when the removal is over.
	Waited time.Duration
}

// Stuck says that there was nothing new for Limit.
func (p Progress) Stuck() bool { return p.Waited >= Limit }

// Asked says that a control plane is being deleted, and is to take along what the hosted cluster has in a cloud.
func Asked(hcp *hyperv1.HostedControlPlane) bool {
	return !hcp.DeletionTimestamp.IsZero() && hcp.Annotations[hyperv1.CleanupCloudResourcesAnnotation] == "true"
}

// Of reads the progress from a control plane that is being deleted. Without a deletion it is zero.
func Of(hcp *hyperv1.HostedControlPlane, now time.Time) Progress {
	if hcp.DeletionTimestamp.IsZero() {
		return Progress{}
	}
	since := hcp.DeletionTimestamp.Time
	c := meta.FindStatusCondition(hcp.Status.Conditions, hyperv1.CloudResourcesDestroyed)
	if c == nil {
		return Progress{Waited: now.Sub(since)}
	}
	if c.LastTransitionTime.After(since) {
		since = c.LastTransitionTime.Time
	}
	return Progress{Over: over(c), Waited: now.Sub(since)}
}

func over(c *metav1.Condition) bool {
	switch c.Reason {
	case hyperv1.CloudResourcesCleanupSkippedReason, hyperv1.CloudResourcesDeletionTimedOutReason:
		return true
	}
	return c.Status == metav1.ConditionTrue
}
