package backup

import (
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/etcdbackup/bundle"
)

// sharded is the backup of a cluster with a shard that is saved, and one whose data goes with its pods.
func sharded() saved {
	s := demo()
	s.objects.HostedCluster.Spec.Etcd.Managed.Shards = []hyperv1.ManagedEtcdShard{
		{Name: "leases", Replicas: 1}, {Name: "events", Replicas: 1, Storage: &hyperv1.EtcdShardStorage{Type: hyperv1.EmptyDirEtcdShardStorage}}}
	s.manifest.Shards = []bundle.Shard{{Name: "leases", Etcd: bundle.Etcd{Revision: 4, Keys: 2, Bytes: 1 << 20}}}
	s.manifest.Etcd.Shards = []string{"events"}
	return s
}

func TestOfOneBackup(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*saved)
		want   string
	}{
		"When it has each shard that is kept it should be a backup":             {func(*saved) {}, ""},
		"When it has nothing of a shard it should be none":                      {func(s *saved) { s.manifest.Shards = nil }, "nothing of shard leases"},
		"When a version made it that saved no shards it should say so and pass": {func(s *saved) { s.manifest.Shards, s.manifest.Etcd.Shards = nil, []string{"events", "leases"} }, ""},
		"When it has a shard of another cluster it should be refused":           {func(s *saved) { s.manifest.Shards = append(s.manifest.Shards, bundle.Shard{Name: "nodes"}) }, "has a shard nodes"},
		"When it has a shard whose data goes with pods it should be refused":    {func(s *saved) { s.manifest.Shards = append(s.manifest.Shards, bundle.Shard{Name: "events"}) }, "has a shard events"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sharded()
			tc.change(&s)
			err := ofOneBackup(s.manifest, s.objects.HostedCluster)
			if tc.want == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestShards(t *testing.T) {
	t.Run("When a cluster has shards each should be told, and reach the storage as the main etcd does", func(t *testing.T) {
		g, s, to := NewWithT(t), sharded(), restored()
		to.access["credentials"] = []byte("[default]\nendpoint_url = http://10.244.0.1:9000\n")
		m, err := build(s.objects, to)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.way.Spec.PodSelector.MatchExpressions[0].Values).To(Equal([]string{"etcd", "etcd-leases"}))
		r := judge(s, world{}, m, to)
		g.Expect(r.refusals).To(BeEmpty())
		g.Expect(r.lines).To(ContainElement("Shard          leases: revision 4, 2 keys, 1048576 bytes; whole"))
		g.Expect(r.lines).To(ContainElement(ContainSubstring("start empty: events")))
	})
	t.Run("When the data of a shard doesn't fit it should be refused", func(t *testing.T) {
		g, s, to := NewWithT(t), sharded(), restored()
		s.manifest.Shards[0].Etcd.Bytes = 5 << 30
		m, err := build(s.objects, to)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(judge(s, world{}, m, to).refusals).To(ContainElement(ContainSubstring("the volume of etcd has")))
	})
}
