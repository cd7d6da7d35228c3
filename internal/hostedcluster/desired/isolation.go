package desired

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/etcd/shards"
	"hcp.internal/platform/internal/controlplane/karpenter"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/netpolicy"
)

// PolicyInput is what the network policies of a control plane depend on.
func PolicyInput(obs *state.Observed) netpolicy.Input {
	spec := &obs.HC.Spec
	in := netpolicy.Input{
		Namespace:   names.NamespaceOf(obs.HC),
		Services:    spec.Services,
		HasOAuth:    len(obs.Target.Missing("oauth-server")) == 0,
		HasIgnition: len(obs.Target.Missing("machine-config-operator")) == 0 || len(obs.Target.Missing("kubelet")) == 0,
		Payload:     !obs.Target.Kubernetes,
		HasRouter:   !obs.Target.Kubernetes && hasRouter(obs.HC),
		PodMachines: spec.Platform.Type == hyperv1.LocalPlatform,
		Cloud:       spec.Platform.Type != hyperv1.NonePlatform && spec.Platform.Type != hyperv1.LocalPlatform,
		AutoNode:    obs.Target.Kubernetes && (karpenter.Asked(spec.AutoNode) || obs.HCPCondition(hyperv1.AutoNodeEnabled) != nil), // also while it removes its machines
		Management:  obs.Management,
	}
	if api := spec.Networking.APIServer; api != nil && api.Port != nil {
		in.APIPort = *api.Port
	}
	for _, shard := range shards.Names(spec.Etcd) {
		in.EtcdShards = append(in.EtcdShards, names.Etcd+"-"+shard)
	}
	if u := spec.Etcd.Unmanaged; u != nil {
		in.UnmanagedEtcdPort = portOf(u.Endpoint)
	}
	if k := spec.Platform.Kubevirt; spec.Platform.Type == hyperv1.KubevirtPlatform && (k == nil || k.Credentials == nil) {
		in.VirtualMachines = spec.InfraID
	}
	if in.PodMachines {
		in.Registries = registriesByAddress(obs)
	}
	return in
}

// portOf is the port of a URL, that of https without one.
func portOf(endpoint string) int32 {
	const https = 443
	u, err := url.Parse(endpoint)
	if err != nil {
		return https
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil || port == 0 {
		return https
	}
	return int32(port)
}

// registriesByAddress are those among the registries of the releases and their mirrors that have an address for a name, sorted.
func registriesByAddress(obs *state.Observed) []netip.AddrPort {
	images := []string{obs.HC.Spec.Release.Image}
	for _, pool := range obs.Pools {
		images = append(images, pool.Spec.Release.Image)
	}
	for _, source := range obs.HC.Spec.ImageContentSources {
		images = append(images, source.Mirrors...)
	}
	var found []netip.AddrPort
	for _, image := range images {
		host, _, _ := strings.Cut(image, "/")
		if registry, err := netip.ParseAddrPort(host); err == nil && registry.Port() != 0 {
			found = append(found, registry)
		}
	}
	slices.SortFunc(found, netip.AddrPort.Compare)
	return slices.Compact(found)
}

// AsControlPlane is the HostedControlPlane as far as it says how it is published.
func AsControlPlane(hc *hyperv1.HostedCluster) *hyperv1.HostedControlPlane {
	hcp := &hyperv1.HostedControlPlane{}
	hcp.Namespace, hcp.Name, hcp.Annotations = names.NamespaceOf(hc), hc.Name, hc.Annotations
	hcp.Spec.Platform, hcp.Spec.Services = hc.Spec.Platform, hc.Spec.Services
	return hcp
}

// hasRouter says whether the control plane has a router of its own.
func hasRouter(hc *hyperv1.HostedCluster) bool {
	return kit.OwnRouter(component.WorkloadContext{HCP: AsControlPlane(hc)})
}
