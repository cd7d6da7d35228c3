package hostedcluster

import (
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/etcd/shards"
	"hcp.internal/platform/internal/controlplane/karpenter"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/netpolicy"
)

// policyInput is what the network policies of a control plane depend on.
func policyInput(obs *state.Observed) netpolicy.Input {
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
		AutoNode:    obs.Target.Kubernetes && karpenter.Asked(spec.AutoNode),
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

// everyone asks for a pass of each hosted cluster, whose policies name the management cluster's API servers.
func (r *Reconciler) everyone(ctx context.Context, _ client.Object) (requests []reconcile.Request) {
	clusters := &hyperv1.HostedClusterList{}
	if err := r.Client.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing hosted clusters after the management API servers moved")
		return nil
	}
	for i := range clusters.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&clusters.Items[i])})
	}
	return requests
}
