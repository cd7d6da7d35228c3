package aws

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
)

func TestRemoving(t *testing.T) {
	const inside, group = hyperv1.CloudResourcesDestroyed, hyperv1.AWSDefaultSecurityGroupDeleted
	now := time.Now()
	for name, tc := range map[string]struct {
		change     func(*hyperv1.HostedControlPlane)
		deleted    time.Duration // how long ago
		conditions []metav1.Condition
		want       string
	}{
		"When it begins it should wait for what is inside":      {want: inside},
		"When nobody asked for it it should wait for nothing":   {change: func(h *hyperv1.HostedControlPlane) { h.Annotations = nil }},
		"When it isn't deleted it should wait for nothing":      {change: func(h *hyperv1.HostedControlPlane) { h.DeletionTimestamp = nil }},
		"When it has nothing in AWS it should wait for nothing": {change: func(h *hyperv1.HostedControlPlane) { h.Spec.Platform.AWS = nil }},
		"When what is inside is gone it should wait for the group": {
			conditions: []metav1.Condition{conditions.True(inside, "x", "")}, want: group},
		"When what is inside was given up it should wait for the group": {
			conditions: []metav1.Condition{conditions.False(inside, hyperv1.CloudResourcesCleanupSkippedReason, "")}, want: group},
		"When all is gone it should wait for nothing": {
			conditions: []metav1.Condition{conditions.True(inside, "x", ""), conditions.True(group, "x", "")}},
		"When the group can't be deleted it should wait for nothing": {
			conditions: []metav1.Condition{conditions.True(inside, "x", ""), conditions.False(group, "x", "")}},
		"When AWS does not take the tokens it should wait for nothing": {
			conditions: []metav1.Condition{conditions.False(hyperv1.ValidAWSIdentityProvider, "x", "")}},
		"When nothing is known of the tokens it should wait for nothing": {
			conditions: []metav1.Condition{conditions.Unknown(hyperv1.ValidAWSIdentityProvider, "x", "")}},
		"When nothing moves inside for ten minutes it should go on":    {deleted: removalPatience, want: group},
		"When nothing moves at all for twenty minutes it should go on": {deleted: 2 * removalPatience},
	} {
		t.Run(name, func(t *testing.T) {
			hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{
				DeletionTimestamp: &metav1.Time{Time: now.Add(-tc.deleted)}, Annotations: map[string]string{hyperv1.CleanupCloudResourcesAnnotation: "true"}}}
			hcp.Spec.Platform.AWS = &hyperv1.AWSPlatformSpec{}
			hcp.Status.Conditions = tc.conditions
			if tc.change != nil {
				tc.change(hcp)
			}
			NewWithT(t).Expect(Removing(hcp, now)).To(Equal(tc.want))
		})
	}
}
