package hostedcluster

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/etcd/shards"
	"hcp.internal/platform/internal/netpolicy"
)

// EnvEgressBlock is the variable that lists networks which pods of control planes may not open connections to, as CIDRs separated by commas.
const EnvEgressBlock = "HCP_EGRESS_BLOCK_CIDRS"

// apiEndpoints are the addresses of the management cluster's API servers, under the name that these give them.
var apiEndpoints = client.ObjectKey{Namespace: "default", Name: "kubernetes"}

// openShiftNetwork says which networks the pods of an OpenShift cluster have.
var openShiftNetwork = schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Network"}

// reservedLabels are labels of pods that our objects select by; so are all with reservedDomains.
var reservedLabels = []string{"app", "name"}

// reservedDomains are prefixes of labels that say what a pod is and whom it may talk to, each with its subdomains.
var reservedDomains = []string{"hypershift.openshift.io", "cluster.x-k8s.io", "kubevirt.io", "network.openshift.io"}

// isReservedLabel tells whether a user must not set the label of a control plane's pods.
func isReservedLabel(key string) bool {
	domain, _, qualified := strings.Cut(key, "/")
	if !qualified {
		return slices.Contains(reservedLabels, key)
	}
	return slices.ContainsFunc(reservedDomains, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}

// policyInput is what the network policies of a control plane depend on.
func policyInput(obs *observed) netpolicy.Input {
	spec := &obs.hc.Spec
	in := netpolicy.Input{
		Namespace:   namespaceOf(obs.hc),
		Services:    spec.Services,
		HasOAuth:    len(obs.target.Missing("oauth-server")) == 0,
		HasIgnition: len(obs.target.Missing("machine-config-operator")) == 0 || len(obs.target.Missing("kubelet")) == 0,
		PodMachines: spec.Platform.Type == hyperv1.LocalPlatform,
		Management:  obs.management,
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
func registriesByAddress(obs *observed) []netip.AddrPort {
	images := []string{obs.hc.Spec.Release.Image}
	for _, pool := range obs.pools {
		images = append(images, pool.Spec.Release.Image)
	}
	for _, source := range obs.hc.Spec.ImageContentSources {
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

// networks looks for what pods of control planes must not reach in the management cluster: its API servers, and its pods as far as nodes or OpenShift tell.
func (m *ManagementCluster) networks(ctx context.Context) (netpolicy.Management, error) {
	out := netpolicy.Management{Networks: slices.Clone(m.Networks)}
	nodes := &corev1.NodeList{}
	if err := m.Reader.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return out, fmt.Errorf("looking at the networks of the management cluster's nodes: %w", err)
	}
	for _, n := range nodes.Items {
		for _, cidr := range append([]string{n.Spec.PodCIDR}, n.Spec.PodCIDRs...) {
			out.Networks = appendPrefix(out.Networks, cidr)
		}
	}
	slice, err := get(ctx, m.Reader, apiEndpoints, &discoveryv1.EndpointSlice{})
	if err != nil {
		return out, err
	}
	if slice != nil {
		for _, e := range slice.Endpoints {
			for _, address := range e.Addresses {
				if ip, err := netip.ParseAddr(address); err == nil {
					out.Networks = append(out.Networks, netip.PrefixFrom(ip, ip.BitLen()))
				}
			}
		}
		for _, port := range slice.Ports {
			if port.Port != nil {
				out.APIPorts = append(out.APIPorts, *port.Port)
			}
		}
	}
	if there, err := m.Accessible(ctx, openShiftNetwork); err != nil || !there {
		return out, err
	}
	network := &unstructured.Unstructured{}
	network.SetGroupVersionKind(openShiftNetwork)
	if network, err = get(ctx, m.Reader, client.ObjectKey{Name: "cluster"}, network); err != nil || network == nil {
		return out, err
	}
	entries, _, _ := unstructured.NestedSlice(network.Object, "status", "clusterNetwork")
	for _, entry := range entries {
		if fields, ok := entry.(map[string]any); ok {
			cidr, _, _ := unstructured.NestedString(fields, "cidr")
			out.Networks = appendPrefix(out.Networks, cidr)
		}
	}
	return out, nil
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

// apiMoved passes changes of addresses and ports only; that a server is not ready for a moment moves none.
func apiMoved() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // a start passes every cluster anyway
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*discoveryv1.EndpointSlice)
			now, is := e.ObjectNew.(*discoveryv1.EndpointSlice)
			return ok && is && !slices.Equal(reach(before), reach(now))
		},
	}
}

// reach is where a slice leads.
func reach(slice *discoveryv1.EndpointSlice) (addresses []string) {
	for _, e := range slice.Endpoints {
		addresses = append(addresses, e.Addresses...)
	}
	for _, p := range slice.Ports {
		addresses = append(addresses, strconv.Itoa(int(ptr.Deref(p.Port, 0))))
	}
	slices.Sort(addresses)
	return addresses
}

// appendPrefix leaves out what is no range.
func appendPrefix(list []netip.Prefix, cidr string) []netip.Prefix {
	if p, err := netip.ParsePrefix(cidr); err == nil {
		return append(list, p.Masked())
	}
	return list
}

// parseNetworks reads what EnvEgressBlock holds.
func parseNetworks(list string) (out []netip.Prefix, _ error) {
	for cidr := range strings.SplitSeq(list, ",") {
		if cidr = strings.TrimSpace(cidr); cidr == "" {
			continue
		}
		p, err := netip.ParsePrefix(cidr)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is no network: write it as 192.0.2.0/24", EnvEgressBlock, cidr)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}
