package management

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/netpolicy"
)

// EnvEgressBlock is the variable that lists networks which pods of control planes may not open connections to, as CIDRs separated by commas.
const EnvEgressBlock = "HCP_EGRESS_BLOCK_CIDRS"

// APIEndpoints are the addresses of the management cluster's API servers, under the name that these give them.
var APIEndpoints = client.ObjectKey{Namespace: "default", Name: "kubernetes"}

// openShiftNetwork says which networks the pods of an OpenShift cluster have.
var openShiftNetwork = schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Network"}

// Network looks for what pods of control planes must not reach in the management cluster: its API servers, and its pods as far as nodes or OpenShift tell.
func (m *Cluster) Network(ctx context.Context) (netpolicy.Management, error) {
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
	slice, err := read.Optional(ctx, m.Reader, APIEndpoints, &discoveryv1.EndpointSlice{})
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
	if network, err = read.Optional(ctx, m.Reader, client.ObjectKey{Name: "cluster"}, network); err != nil || network == nil {
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

// APIMoved passes changes of addresses and ports only; that a server is not ready for a moment moves none.
func APIMoved() predicate.Predicate {
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

// ParseNetworks reads what EnvEgressBlock holds.
func ParseNetworks(list string) (out []netip.Prefix, _ error) {
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
