package etcd

import (
	"maps"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestClaims(t *testing.T) {
	t.Parallel()
	large := func(hcp *hyperv1.HostedControlPlane) {
		hcp.Spec.Etcd.Managed.Storage.PersistentVolume = &hyperv1.PersistentVolumeEtcdStorageSpec{StorageClassName: ptr.To("fast"), Size: ptr.To(resource.MustParse("20Gi"))}
	}
	for name, mutate := range map[string]func(*hyperv1.HostedControlPlane){
		"When replicas are single it should be the claim that the StatefulSet makes":    singleReplica,
		"When there are several members it should be a claim for each":                  nil,
		"When class and size are given it should be a claim that the StatefulSet makes": large,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			ctx := contextOf(t, mutate)
			set, _ := render(t, ctx)
			claims, err := Claims(ctx.HCP)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(claims).To(HaveLen(int(*set.Spec.Replicas)))
			template := set.Spec.VolumeClaimTemplates[0]
			labels := maps.Clone(template.Labels)
			maps.Copy(labels, set.Spec.Selector.MatchLabels) // as the controller of StatefulSets does
			for i, claim := range claims {
				g.Expect(claim.Name).To(Equal(template.Name + "-" + mainCluster.memberName(i)))
				g.Expect(claim.Namespace).To(Equal(set.Namespace))
				g.Expect(claim.Labels).To(Equal(labels))
				g.Expect(claim.Spec).To(Equal(template.Spec))
			}
		})
	}
	t.Run("When a shard keeps its data in its pods it should have no claim", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		claims, err := Claims(contextOf(t, func(hcp *hyperv1.HostedControlPlane) {
			singleReplica(hcp)
			hcp.Spec.Etcd.Managed.Shards = []hyperv1.ManagedEtcdShard{
				{Name: "events", Replicas: 1, Storage: &hyperv1.EtcdShardStorage{Type: hyperv1.EmptyDirEtcdShardStorage}},
				{Name: "leases", Replicas: 1},
			}
		}).HCP)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(claims).To(HaveLen(2))
		g.Expect(claims[1].Name).To(Equal("data-etcd-leases-0"))
	})
	t.Run("When somebody else manages etcd it should make none", func(t *testing.T) {
		t.Parallel()
		claims, err := Claims(contextOf(t, func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.Etcd.ManagementType = hyperv1.Unmanaged }).HCP)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(claims).To(BeEmpty())
	})
	t.Run("When the size is no size it should fail", func(t *testing.T) {
		t.Parallel()
		_, err := Claims(contextOf(t, func(hcp *hyperv1.HostedControlPlane) {
			large(hcp)
			hcp.Spec.Etcd.Managed.Storage.PersistentVolume.Size = ptr.To(resource.MustParse("0"))
		}).HCP)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("must be more than zero")))
	})
}
