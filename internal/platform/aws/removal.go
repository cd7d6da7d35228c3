package aws

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/removal"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/release"
)

// Removing says which condition a HostedControlPlane that is being deleted waits for, when it was asked to take along what it has in AWS: first its own
// controllers remove what they made there (CloudResourcesDestroyed), then the security group of machines goes (AWSDefaultSecurityGroupDeleted). Empty: it
// waits for nothing, since all is gone, or nothing can be done about the rest. Nobody removes what is inside a cluster of a Kubernetes release, so there the
// security group is all.
func Removing(hcp *hyperv1.HostedControlPlane, now time.Time) string {
	if hcp.Spec.Platform.AWS == nil || !removal.Asked(hcp) {
		return ""
	}
	list := hcp.Status.Conditions
	if c := conditions.Get(list, hyperv1.ValidAWSIdentityProvider); c != nil && c.Status != metav1.ConditionTrue {
		return "" // AWS would refuse whatever is tried
	}
	inside, limit := removal.Of(hcp, now), removal.Limit
	// The config operator of a payload writes CloudResourcesDestroyed. A control plane whose release was never read has none.
	if release.IsPayload(hcp.Status.ControlPlaneVersion.Desired.Version) {
		if !inside.Over && !inside.Stuck() {
			return hyperv1.CloudResourcesDestroyed
		}
		limit *= 2 // the group has its own time: what is inside may have taken all of the first
	}
	if conditions.Get(list, hyperv1.AWSDefaultSecurityGroupDeleted) == nil && inside.Waited < limit {
		return hyperv1.AWSDefaultSecurityGroupDeleted
	}
	return ""
}
