package etcd

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/release"
)

func TestShard(t *testing.T) {
	hcp := &hyperv1.HostedControlPlane{}
	hcp.Namespace, hcp.Spec.ControllerAvailabilityPolicy = "ns", hyperv1.SingleReplica
	hcp.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Shards: []hyperv1.ManagedEtcdShard{
		{Name: "events", Replicas: 3}, {Name: "leases", Replicas: 1, Storage: &hyperv1.EtcdShardStorage{Type: hyperv1.EmptyDirEtcdShardStorage}},
	}}}
	r := &release.Release{Version: "4.22.0"}
	ctx := component.WorkloadContext{Context: t.Context(), HCP: hcp, Release: r, UserRelease: r}
	adapted := func(t *testing.T, name hyperv1.EtcdShardName) *appsv1.StatefulSet {
		t.Helper()
		c, s := shardCluster(name), &appsv1.StatefulSet{}
		s.Spec.Template.Spec.Containers = []corev1.Container{{Name: container}, {Name: metricsContainer}, {Name: healthContainer}}
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("8Gi")},
		}}}}
		NewWithT(t).Expect(c.adaptStatefulSet(ctx, s)).To(Succeed())
		return s
	}
	t.Run("When a shard has three members they should be defragmented, as an account that is there", func(t *testing.T) {
		g := NewWithT(t)
		s := adapted(t, "events")
		c := component.Container(&s.Spec.Template.Spec, defrag)
		g.Expect(c.Command).To(ContainElement("etcd-defrag-events-leader-elect"))
		g.Expect(s.Spec.Template.Spec.ServiceAccountName).To(Equal(defragAccount))
		g.Expect(anyDefragmented(ctx)).To(BeTrue())
	})
	t.Run("When a shard is in memory its limit should hold the data and etcd", func(t *testing.T) {
		g := NewWithT(t)
		s := adapted(t, "leases")
		g.Expect(s.Spec.VolumeClaimTemplates).To(BeEmpty())
		limit := s.Spec.Template.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory]
		g.Expect(limit.String()).To(Equal("8704Mi"))
		g.Expect(component.Container(&s.Spec.Template.Spec, defrag)).To(BeNil())
	})
	t.Run("When the control plane has no such shard it should be said", func(t *testing.T) {
		NewWithT(t).Expect(shardCluster("none").adaptStatefulSet(ctx, &appsv1.StatefulSet{})).To(MatchError(ContainSubstring("no such shard")))
	})
	t.Run("When shards are listed each should be a component once", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(Shards(hcp)).To(HaveLen(2))
		g.Expect(Shards(hcp)[0]).To(BeIdenticalTo(Shards(hcp)[0]))
	})
}
