package aws

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
)

// removalPatience is how long the removal of what a hosted cluster has in AWS may go on without anything new.
const removalPatience = 10 * time.Minute

// Removing says which condition a HostedControlPlane that is being deleted waits for, when it was asked to take along what it has in AWS: first its own
// controllers remove what they made there (CloudResourcesDestroyed), then the security group of machines goes (AWSDefaultSecurityGroupDeleted). Empty: it
// waits for nothing, since all is gone, or nothing can be done about the rest.
func Removing(hcp *hyperv1.HostedControlPlane, now time.Time) string {
	if hcp.DeletionTimestamp == nil || hcp.Spec.Platform.AWS == nil || hcp.Annotations[hyperv1.CleanupCloudResourcesAnnotation] != "true" {
		return ""
	}
	list := hcp.Status.Conditions
	if c := conditions.Get(list, hyperv1.ValidAWSIdentityProvider); c != nil && c.Status != metav1.ConditionTrue {
		return "" // AWS would refuse whatever is tried
	}
	inside := conditions.Get(list, hyperv1.CloudResourcesDestroyed)
	since := hcp.DeletionTimestamp.Time
	if inside != nil && inside.LastTransitionTime.After(since) {
		since = inside.LastTransitionTime.Time
	}
	switch waited := now.Sub(since); {
	case !ended(inside) && waited < removalPatience:
		return hyperv1.CloudResourcesDestroyed
	// The second has its own time: the first may have taken all of that.
	case conditions.Get(list, hyperv1.AWSDefaultSecurityGroupDeleted) == nil && waited < 2*removalPatience:
		return hyperv1.AWSDefaultSecurityGroupDeleted
	}
	return ""
}

// ended tells whether the hosted cluster's own controllers are through, or have given up.
func ended(c *metav1.Condition) bool {
	return c != nil && (c.Status == metav1.ConditionTrue || c.Reason == hyperv1.CloudResourcesCleanupSkippedReason || c.Reason == hyperv1.CloudResourcesDeletionTimedOutReason)
}
