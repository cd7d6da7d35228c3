package component

import (
	"slices"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
)

// withoutKubeAPIServer are the components that do not wait for kube-apiserver: what it needs itself, and what must work
// while it does not.
var withoutKubeAPIServer = []string{
	names.Etcd, "featuregate-generator", "control-plane-operator", "cluster-api", "capi-provider",
	"karpenter-operator", "karpenter", "router", "ignition-server", "ignition-server-proxy",
}

// dependenciesOf are the components that a component waits for: those it names, and kube-apiserver, but neither itself nor
// an etcd that somebody else manages. Who waits for etcd waits for its shards, too: the API is not whole without them. The result
// is sorted.
func dependenciesOf(name string, declared []string, hcp *hyperv1.HostedControlPlane) []string {
	deps := withShards(declared, hcp)
	if !slices.Contains(withoutKubeAPIServer, name) && !IsEtcd(name) {
		deps = append(deps, names.KubeAPIServer)
	}
	deps = slices.DeleteFunc(deps, func(dep string) bool {
		return dep == name || (dep == names.Etcd && hcp.Spec.Etcd.ManagementType != hyperv1.Managed)
	})
	slices.Sort(deps)
	return slices.Compact(deps)
}

// missingDependencies are those of deps that are not available, completely rolled out and at the version.
func missingDependencies(deps []string, components []hyperv1.ControlPlaneComponent, version string) []string {
	var missing []string
	for _, dep := range deps {
		i := slices.IndexFunc(components, func(c hyperv1.ControlPlaneComponent) bool { return c.Name == dep })
		if i < 0 || !satisfied(components[i], version) {
			missing = append(missing, dep)
		}
	}
	return missing
}

// mayStart says whether a component that does not exist yet is created although it has to wait for others.
func (c *WorkloadComponent) mayStart(hcp *hyperv1.HostedControlPlane, components []hyperv1.ControlPlaneComponent) bool {
	for _, name := range withShards(c.startsAfter, hcp) {
		i := slices.IndexFunc(components, func(c hyperv1.ControlPlaneComponent) bool { return c.Name == name })
		unmanaged := name == names.Etcd && hcp.Spec.Etcd.ManagementType != hyperv1.Managed
		if !unmanaged && (i < 0 || !conditions.IsTrue(components[i].Status.Conditions, Available)) {
			return false
		}
	}
	return c.startsEarly
}

func satisfied(c hyperv1.ControlPlaneComponent, version string) bool {
	return conditions.IsTrue(c.Status.Conditions, Available) &&
		conditions.IsTrue(c.Status.Conditions, RolloutComplete) &&
		c.Status.Version == version
}

// withShards adds the shards of etcd to a list that names etcd. The list itself stays as it is.
func withShards(list []string, hcp *hyperv1.HostedControlPlane) []string {
	all := slices.Clone(list)
	managed := hcp.Spec.Etcd.Managed
	if hcp.Spec.Etcd.ManagementType != hyperv1.Managed || managed == nil || !slices.Contains(list, names.Etcd) {
		return all
	}
	for _, shard := range managed.Shards {
		all = append(all, EtcdShard(string(shard.Name)))
	}
	return all
}

// EtcdShard is the name of the component that is a shard of etcd.
func EtcdShard(shard string) string { return names.Etcd + "-" + shard }

// IsEtcd is true for etcd and its shards, etcd-<name>.
func IsEtcd(name string) bool {
	return name == names.Etcd || len(name) > len(names.Etcd) && name[:len(names.Etcd)+1] == names.Etcd+"-"
}
