package etcd

import (
	"errors"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/etcd/shards"
)

// cluster is the main etcd of a control plane, or one of its shards: an etcd of its own for some resources, made of the same assets
// under names of its own.
type cluster struct {
	name, client, discovery string // of the component, and of its Services
	shard                   bool
}

var mainCluster = cluster{name: Name, client: "etcd-client", discovery: "etcd-discovery"}

func shardCluster(name hyperv1.EtcdShardName) cluster {
	return cluster{name: shards.Component(name), client: shards.ClientService(name), discovery: shards.DiscoveryService(name), shard: true}
}

func (c cluster) templateData() map[string]string {
	return map[string]string{"name": c.name, "client": c.client, "discovery": c.discovery}
}

func (c cluster) memberName(i int) string { return fmt.Sprintf("%s-%d", c.name, i) }

func (c cluster) host(member, namespace string) string {
	return member + "." + c.discovery + "." + namespace + ".svc"
}

func (c cluster) peerURL(member, namespace string) string {
	return "https://" + c.host(member, namespace) + ":2380"
}

// token keeps members of different clusters apart, should one be led to an address of the other.
func (c cluster) token(hcp *hyperv1.HostedControlPlane) string {
	if !c.shard {
		return hcp.Spec.InfraID
	}
	return hcp.Spec.InfraID + "/" + c.name
}

// spec is what the HostedControlPlane says of the shard; nothing for the main etcd.
func (c cluster) spec(hcp *hyperv1.HostedControlPlane) hyperv1.ManagedEtcdShard {
	s, _ := shards.ByName(hcp.Spec.Etcd, c.name)
	return s
}

// wanted says whether the control plane has this etcd. A shard is never taken away while its control plane is there: the list can't
// shrink, and were it to, the data would be worth more than the order.
func (c cluster) wanted(ctx component.WorkloadContext) (bool, error) {
	return ctx.HCP.Spec.Etcd.ManagementType == hyperv1.Managed, nil
}

// members is how many members the etcd has. Shards say so themselves.
func (c cluster) members(ctx component.WorkloadContext) int {
	switch {
	case c.shard:
		return max(int(c.spec(ctx.HCP).Replicas), 1)
	case ctx.HighlyAvailable():
		return 3
	}
	return 1
}

func (c cluster) hasSeveral(ctx component.WorkloadContext) bool { return c.members(ctx) > 1 }

// several is hasSeveral as a Predicate.
func (c cluster) several(ctx component.WorkloadContext) (bool, error) { return c.hasSeveral(ctx), nil }

// volatile says whether data goes with a member's pod.
func (c cluster) volatile(hcp *hyperv1.HostedControlPlane) bool {
	own := c.spec(hcp).Storage
	return own != nil && own.Type == hyperv1.EmptyDirEtcdShardStorage
}

// adaptStorage takes kind, size and class of the volumes from the HostedControlPlane. A shard has its own kind and class, and the size
// of the main etcd.
func (c cluster) adaptStorage(hcp *hyperv1.HostedControlPlane, s *appsv1.StatefulSet) error {
	if c.volatile(hcp) {
		s.Spec.VolumeClaimTemplates, s.Spec.PersistentVolumeClaimRetentionPolicy = nil, nil
		pod := &s.Spec.Template.Spec
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: dataVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		return nil
	}
	claim := &s.Spec.VolumeClaimTemplates[0].Spec
	if hcp.Spec.Etcd.Managed != nil && hcp.Spec.Etcd.Managed.Storage.PersistentVolume != nil {
		volume := hcp.Spec.Etcd.Managed.Storage.PersistentVolume
		claim.StorageClassName = volume.StorageClassName
		if volume.Size != nil {
			if volume.Size.Sign() <= 0 {
				return fmt.Errorf("spec.etcd.managed.storage.persistentVolume.size is %s; it must be more than zero", volume.Size)
			}
			claim.Resources.Requests[corev1.ResourceStorage] = *volume.Size
		}
	}
	if own := c.spec(hcp).Storage; own != nil && own.PersistentVolume != nil && own.PersistentVolume.StorageClassName != "" {
		claim.StorageClassName = ptr.To(own.PersistentVolume.StorageClassName)
	}
	return nil
}

// ErrNoShard says that a component was asked for a shard that its control plane doesn't have.
var ErrNoShard = errors.New("the HostedControlPlane has no such shard")

// shardComponents are those made so far, by name: they depend on nothing else, and parsing the assets costs more than a pass.
var shardComponents sync.Map

// Shards are the components of the shards that a control plane has.
func Shards(hcp *hyperv1.HostedControlPlane) []component.Component {
	var list []component.Component
	for _, s := range shards.Managed(hcp.Spec.Etcd) {
		list = append(list, ShardComponent(s.Name))
	}
	return list
}

// ShardComponent is the component of one shard.
func ShardComponent(name hyperv1.EtcdShardName) *component.WorkloadComponent {
	if known, ok := shardComponents.Load(name); ok {
		return known.(*component.WorkloadComponent)
	}
	made, _ := shardComponents.LoadOrStore(name, newComponent(shardCluster(name)))
	return made.(*component.WorkloadComponent)
}
