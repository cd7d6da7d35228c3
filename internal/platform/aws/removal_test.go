package aws

import (
	"cmp"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/removal"
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
		"When nothing moves inside for ten minutes it should go on":                                                       {deleted: removal.Limit, want: group},
		"When nothing moves at all for twenty minutes it should go on":                                                    {deleted: 2 * removal.Limit},
		"When the release is one of Kubernetes it should wait for the group at once, since nobody removes what is inside": {change: ofRelease("1.36.3"), want: group},
		"When a Kubernetes release's group is gone it should wait for nothing": {
			change: ofRelease("1.36.3"), conditions: []metav1.Condition{conditions.True(group, "x", "")}},
		"When a Kubernetes release's group does not go for ten minutes it should go on": {change: ofRelease("1.36.3"), deleted: removal.Limit},
		"When the release was never read it should wait for the group":                  {change: ofRelease(""), want: group},
	} {
		t.Run(name, func(t *testing.T) {
			hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{
				DeletionTimestamp: &metav1.Time{Time: now.Add(-tc.deleted)}, Annotations: map[string]string{hyperv1.CleanupCloudResourcesAnnotation: "true"}}}
			hcp.Spec.Platform.AWS = &hyperv1.AWSPlatformSpec{}
			ofRelease("4.22.0")(hcp)
			hcp.Status.Conditions = tc.conditions
			if tc.change != nil {
				tc.change(hcp)
			}
			NewWithT(t).Expect(Removing(hcp, now)).To(Equal(tc.want))
		})
	}
}

// ofRelease has a control plane run a release.
func ofRelease(version string) func(*hyperv1.HostedControlPlane) {
	return func(h *hyperv1.HostedControlPlane) { h.Status.ControlPlaneVersion.Desired.Version = version }
}

// What docs/aws.md promises of a deletion for which AWS takes no tokens, or for which nobody knows whether it does.
func TestBrokenCredentialsEndInTime(t *testing.T) {
	begin := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	const longest = 24 * time.Hour
	// ends is after how many minutes something no longer holds up the deletion.
	ends := func(holds func(now time.Time) bool) time.Duration {
		for after := time.Duration(0); after < longest; after += time.Minute {
			if !holds(begin.Add(after)) {
				return after
			}
		}
		return longest
	}
	for name, tc := range map[string]struct {
		release                     string // 4.22.0 unless told
		identity                    *metav1.Condition
		machine, endpoint, security time.Duration
	}{
		"When AWS refuses the tokens nothing should be waited for": {identity: ptr.To(conditions.False(hyperv1.ValidAWSIdentityProvider, "InvalidIdentityProvider", ""))},
		"When nobody could ask AWS machines and endpoints should be waited for ten minutes": {
			identity: ptr.To(conditions.Unknown(hyperv1.ValidAWSIdentityProvider, "StatusUnknown", "")), machine: 10 * time.Minute, endpoint: 10 * time.Minute},
		"When nobody has looked yet the security group should be waited for, too, for twenty": {machine: 10 * time.Minute, endpoint: 10 * time.Minute, security: 20 * time.Minute},
		"When nobody has looked yet and the release is one of Kubernetes the security group should be waited for ten": {
			release: "1.36.3", machine: 10 * time.Minute, endpoint: 10 * time.Minute, security: 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hc, hcp := sample().HostedCluster, &hyperv1.HostedControlPlane{}
			hcp.DeletionTimestamp = &metav1.Time{Time: begin}
			hcp.Annotations = map[string]string{hyperv1.CleanupCloudResourcesAnnotation: "true"}
			hcp.Spec.Platform.AWS = &hyperv1.AWSPlatformSpec{}
			ofRelease(cmp.Or(tc.release, "4.22.0"))(hcp)
			if tc.identity != nil {
				hc.Status.Conditions = []metav1.Condition{*tc.identity}
				hcp.Status.Conditions = hc.Status.Conditions
			}
			obj := &hyperv1.AWSEndpointService{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: begin}, Finalizers: []string{hyperv1.AWSEndpointServiceCPOFinalizer}}}
			g.Expect(ends(func(now time.Time) bool { return !orphaned(hc, obj, now) })).To(Equal(tc.machine))
			g.Expect(ends(func(now time.Time) bool { return len(Platform{}.Abandoned(hc, obj, now)) == 0 })).To(Equal(tc.endpoint))
			g.Expect(ends(func(now time.Time) bool { return Removing(hcp, now) != "" })).To(Equal(tc.security))
		})
	}
}
