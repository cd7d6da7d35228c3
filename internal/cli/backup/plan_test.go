package backup

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/pause"
)

func TestBuildAwake(t *testing.T) {
	for name, to := range map[string]target{
		"When a cluster that sleeps by night is restored it should come up":      restored(),
		"When a cluster that sleeps by night is cloned the clone should come up": copied(),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := demo()
			s.objects.HostedCluster.Annotations = map[string]string{
				hyperv1.HibernateAnnotation: "2026-11-04T07:00:00Z", pause.ScheduleAnnotation: "sleep 0 20 * * *; wake 0 7 * * *", "owner": "blue",
			}
			m, err := build(s.objects, to)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(m.cluster.Annotations).NotTo(Or(HaveKey(hyperv1.HibernateAnnotation), HaveKey(pause.ScheduleAnnotation)))
			g.Expect(m.cluster.Annotations).To(HaveKeyWithValue("owner", "blue"))
			g.Expect(s.objects.HostedCluster.Annotations).To(HaveLen(3), "the backup should stay as it is")
		})
	}
}

// TestBuildUnclaimed: where the lost cluster's objects of Cluster API were says nothing of the new one's.
func TestBuildUnclaimed(t *testing.T) {
	private, standard, legacy := scope.Identity{PrivateCAPI: true}, scope.Identity{}, scope.Identity{Scope: ptr.To(hyperv1.LegacyScope)}
	moved := map[string]string{
		hyperv1.PrivateCAPITypesAnnotation: "true", hyperv1.PrivateCAPIMigrationInProgressAnnotation: "true", hyperv1.PrivateCAPIMigrationLockAnnotation: "lock",
		hyperv1.PrivateCAPIMigrationAckAnnotation: "lock", hyperv1.PrivateCAPIMigrateAnnotation: "true", hyperv1.PrivateCAPIRollbackAnnotation: "true",
		hyperv1.PrivateCAPIMovedAnnotation: "2026-11-04T07:00:00Z", hyperv1.PrivateCAPIMigrationFailedAnnotation: "health-check-timeout",
	}
	for name, tc := range map[string]struct {
		annotations, left map[string]string
		here              scope.Identity
		want              scope.Ownership
	}{
		"When types were private and are standard here the operator should work on it": {moved, map[string]string{}, standard, scope.Ours},
		"When types were private and are so here the operator should find out":         {moved, map[string]string{}, private, scope.Unclaimed},
		"When it was a legacy operator's the operator here should find out":            {map[string]string{hyperv1.HostedClusterScopeAnnotation: hyperv1.LegacyScope}, map[string]string{}, private, scope.Unclaimed},
		"When it was a legacy operator's that of here should leave it to the other":    {map[string]string{hyperv1.HostedClusterScopeAnnotation: hyperv1.LegacyScope}, map[string]string{}, legacy, scope.NotOurs},
		"When the user gave it a scope it should stay":                                 {map[string]string{hyperv1.HostedClusterScopeAnnotation: "blue"}, map[string]string{hyperv1.HostedClusterScopeAnnotation: "blue"}, scope.Identity{Scope: ptr.To("blue")}, scope.Ours},
		"When the user doesn't want it moved that should stay":                         {map[string]string{hyperv1.PrivateCAPIHoldAnnotation: "true"}, map[string]string{hyperv1.PrivateCAPIHoldAnnotation: "true"}, standard, scope.Ours},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := demo()
			s.objects.HostedCluster.Annotations, s.objects.NodePools[0].Annotations = tc.annotations, tc.annotations
			m, err := build(s.objects, restored())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(m.cluster.Annotations).To(Equal(tc.left))
			g.Expect(m.pools[0].Annotations).To(Equal(tc.left))
			g.Expect(tc.here.Owns(m.cluster.Annotations)).To(Equal(tc.want))
		})
	}
}
