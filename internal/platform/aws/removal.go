package aws

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/removal"
	"hcp.internal/platform/internal/kube/conditions"
)

// Removing says which condition a HostedControlPlane that is being deleted waits for, when it was asked to take along what it has in AWS: first its own
// controllers remove what they made there (CloudResourcesDestroyed), then the security group of machines goes (AWSDefaultSecurityGroupDeleted). Empty: it
// waits for nothing, since all is gone, or nothing can be done about the rest.
func Removing(hcp *hyperv1.HostedControlPlane, now time.Time) string {
	if hcp.Spec.Platform.AWS == nil || !removal.Asked(hcp) {
		return ""
	}
	list := hcp.Status.Conditions
	if c := conditions.Get(list, hyperv1.ValidAWSIdentityProvider); c != nil && c.Status != metav1.ConditionTrue {
		return "" // AWS would refuse whatever is tried
	}
	switch inside := removal.Of(hcp, now); {
	case !inside.Over && !inside.Stuck():
		return hyperv1.CloudResourcesDestroyed
	// The second has its own time: the first may have taken all of that.
	case conditions.Get(list, hyperv1.AWSDefaultSecurityGroupDeleted) == nil && inside.Waited < 2*removal.Limit:
		return hyperv1.AWSDefaultSecurityGroupDeleted
	}
	return ""
}
