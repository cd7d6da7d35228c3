package etcd

import (
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/etcd/shards"
)

// quorumOfTwo is how many members survive the loss of one.
const quorumOfTwo = 3

// cluster is the main etcd of a control plane, or one of its shards, made of the same assets under names of its own.
type cluster struct {
	name, client, discovery string // of the component, and of its Services
	shard                   bool
	shardName               string
}

var mainCluster = cluster{name: Name, client: "etcd-client", discovery: "etcd-discovery"}

func shardCluster(name hyperv1.EtcdShardName) cluster {
	return cluster{name: shards.Component(name), client: shards.ClientService(name), discovery: shards.DiscoveryService(name), shard: true, shardName: string(name)}
}

func (c cluster) templateData() map[string]string {
	selfRegister := "--self-register "
	if c.shard {
		selfRegister = ""
	}
	return map[string]string{"name": c.name, "client": c.client, "discovery": c.discovery, "selfRegister": selfRegister}
}

// spec is what the HostedControlPlane says of the shard.
func (c cluster) spec(hcp *hyperv1.HostedControlPlane) (hyperv1.ManagedEtcdShard, bool) {
	return shards.ByName(hcp.Spec.Etcd, c.name)
}

// members is how many members the etcd has. Shards say so themselves.
func (c cluster) members(ctx component.WorkloadContext) int {
	switch {
	case c.shard:
		s, _ := c.spec(ctx.HCP)
		return max(int(s.Replicas), 1)
	case ctx.HCP.Spec.ControllerAvailabilityPolicy == hyperv1.SingleReplica:
		return 1
	}
	return quorumOfTwo
}

// defragmented says whether members are defragmented: while one is, the others serve.
func (c cluster) defragmented(ctx component.WorkloadContext) (bool, error) {
	if c.shard {
		return c.members(ctx) >= quorumOfTwo, nil
	}
	return ctx.HighlyAvailable(), nil
}

// anyDefragmented says whether the main etcd or one of its shards is defragmented: all do that as the same ServiceAccount.
func anyDefragmented(ctx component.WorkloadContext) (bool, error) {
	for _, s := range shards.Managed(ctx.HCP.Spec.Etcd) {
		if ok, _ := shardCluster(s.Name).defragmented(ctx); ok {
			return true, nil
		}
	}
	return mainCluster.defragmented(ctx)
}

// memoryBesidesData is what etcd needs beside a data volume in memory.
var memoryBesidesData = resource.MustParse("512Mi")

// adaptStorage takes size and class of the volumes from the HostedControlPlane. A shard has its own kind and class, and the size of the main etcd.
func (c cluster) adaptStorage(hcp *hyperv1.HostedControlPlane, s *appsv1.StatefulSet) error {
	claim := &s.Spec.VolumeClaimTemplates[0].Spec
	if m := hcp.Spec.Etcd.Managed; m != nil && m.Storage.PersistentVolume != nil {
		volume := m.Storage.PersistentVolume
		claim.StorageClassName = volume.StorageClassName
		if volume.Size != nil {
			if volume.Size.Sign() <= 0 {
				return fmt.Errorf("spec.etcd.managed.storage.persistentVolume.size is %s; it must be more than zero", volume.Size)
			}
			claim.Resources.Requests[corev1.ResourceStorage] = *volume.Size
		}
	}
	shard, _ := c.spec(hcp)
	if shard.Storage == nil {
		return nil
	}
	if own := shard.Storage.PersistentVolume; own != nil && own.StorageClassName != "" {
		claim.StorageClassName = ptr.To(own.StorageClassName)
	}
	if shard.Storage.Type != hyperv1.EmptyDirEtcdShardStorage {
		return nil
	}
	size := claim.Resources.Requests[corev1.ResourceStorage].DeepCopy()
	s.Spec.VolumeClaimTemplates, s.Spec.PersistentVolumeClaimRetentionPolicy = nil, nil
	pod := &s.Spec.Template.Spec
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: dataVolume, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: ptr.To(size.DeepCopy())},
	}})
	limit := size.DeepCopy()
	limit.Add(memoryBesidesData)
	component.Container(pod, container).Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: limit}
	return nil
}

// shardComponents are those made so far, by name: they depend on nothing else, and parsing the assets costs more than a pass.
var shardComponents sync.Map

// Shards are the components of the shards that a control plane has.
func Shards(hcp *hyperv1.HostedControlPlane) []component.Component {
	var list []component.Component
	for _, s := range shards.Managed(hcp.Spec.Etcd) {
		known, ok := shardComponents.Load(s.Name)
		if !ok {
			known, _ = shardComponents.LoadOrStore(s.Name, newComponent(shardCluster(s.Name)))
		}
		list = append(list, known.(*component.WorkloadComponent))
	}
	return list
}
