package controlplane

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/etcd"
	"hcp.internal/platform/internal/controlplane/etcd/shards"
)

// Users name shards, and names of objects are made of these. Whatever the name, no object of one shard may be that of another one or of the rest of
// the control plane: the two would be written in turn for ever.
func TestNamesOfShardsDoNotCollide(t *testing.T) {
	// What names of objects of etcd are made of, each alone and before and behind another name.
	words := []string{"client", "discovery", "peer", "server", "metrics", "defrag", "defrag-controller", "leader-elect", "recovery", "recovery-sa", "restore", "backup", "backup-sa", "init",
		"ca", "signer", "metrics-ca", "client-tls", "server-tls", "full", "founded", "storage-class", "events", "etcd"}
	names := append([]string{}, words...)
	for _, word := range words {
		names = append(names, word+"-events", "events-"+word, "client-"+word, "discovery-"+word)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	hcp := hostedControlPlane(highlyAvailable)
	for i, name := range names {
		hcp.Spec.Etcd.Managed.Shards = append(hcp.Spec.Etcd.Managed.Shards, hyperv1.ManagedEtcdShard{
			Name: hyperv1.EtcdShardName(name), Replicas: []int32{1, 3}[i%2],
			Resources: []hyperv1.EtcdShardResource{{Resource: "events"}}, // no matter
		})
	}
	ctx := workloadContext(t, hcp, mounted()...)
	ctx.CAPIProxyImage, ctx.StoredCAPIGroups = "registry.example.com/installed@sha256:1", true
	owners := map[string]string{}
	collect := func(g Gomega, owner string, list []client.Object) {
		for _, obj := range list {
			key := fmt.Sprintf("%T %s", obj, obj.GetName())
			g.Expect(owners[key]).To(BeEmpty(), "%s is made by %s, too", key, owner)
			owners[key] = owner
		}
	}
	render := func(g Gomega, c *component.WorkloadComponent) {
		wctx := ctx
		wctx.OmitOwnerReference = c.Name() == "control-plane-operator"
		out, err := c.Render(wctx)
		g.Expect(err).NotTo(HaveOccurred(), c.Name())
		collect(g, c.Name(), append(out.Manifests, out.Workload))
	}
	t.Run("When components are rendered each object should have one owner", func(t *testing.T) {
		g := NewWithT(t)
		for _, c := range allWorkloads() {
			wanted, err := c.Wanted(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			if wanted {
				render(g, c)
			}
		}
		g.Expect(len(owners)).To(BeNumerically(">", 30))
	})
	for _, name := range names {
		t.Run("When a shard is called "+name+" its objects should be its own", func(t *testing.T) {
			g := NewWithT(t)
			before := len(owners)
			render(g, etcd.ShardComponent(hyperv1.EtcdShardName(name)))
			g.Expect(len(owners)).To(BeNumerically(">", before+2))
			g.Expect(owners).To(HaveKey("*v1.StatefulSet " + shards.Component(hyperv1.EtcdShardName(name))))
		})
	}
}
