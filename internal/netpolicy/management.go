package netpolicy

import (
	"cmp"
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
)

// Management is what has to be known of the management cluster.
type Management struct {
	// APIPorts are those that its API servers listen on.
	APIPorts []int32
	// Networks are its API servers, its pods, and what an administrator names besides.
	Networks []netip.Prefix
	// Prometheus is the namespace of the one that asks for metrics, besides namespaces that are labelled for it; empty: nothing besides.
	Prometheus string
	// Gateway is the namespace of the Gateway that leads to all hosted clusters; empty: there is none.
	Gateway string
}

// usualAPIPorts are those of a management API server before anybody looked.
var usualAPIPorts = []int32{443, 6443}

// metadata are the addresses on which clouds tell a machine, and whatever runs on it, who it is and with which credentials.
var metadata = []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fd00:ec2::254/128"), netip.MustParsePrefix("fe80::/10")}

func (m Management) apiPorts() []int32 {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(usualAPIPorts, m.APIPorts))))
}

// world are two blocks, one for each family, without the networks of the management cluster.
func (m Management) world() []networkingv1.NetworkPolicyPeer {
	var peers []networkingv1.NetworkPolicyPeer
	without := merge(slices.Concat(metadata, m.Networks))
	for _, everything := range []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")} {
		peer := &networkingv1.IPBlock{CIDR: everything.String()}
		for _, p := range without {
			if p.Addr().Is4() == everything.Addr().Is4() && p.Bits() > 0 {
				peer.Except = append(peer.Except, p.String())
			}
		}
		peers = append(peers, networkingv1.NetworkPolicyPeer{IPBlock: peer})
	}
	return peers
}

// merge sorts, drops what lies in another range, and joins halves: nodes have neighbouring ranges, and a policy with one for each of a thousand nodes helps nobody.
func merge(prefixes []netip.Prefix) []netip.Prefix {
	var sorted []netip.Prefix
	for _, p := range prefixes {
		if p.IsValid() {
			sorted = append(sorted, netip.PrefixFrom(p.Addr().Unmap(), p.Bits()).Masked())
		}
	}
	slices.SortFunc(sorted, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	var out []netip.Prefix
	for _, p := range sorted {
		if n := len(out); n > 0 && out[n-1].Overlaps(p) {
			continue // sorted: the one before is the wider
		}
		out = append(out, p)
		for n := len(out); n > 1 && siblings(out[n-2], out[n-1]); n = len(out) {
			out = append(out[:n-2], netip.PrefixFrom(out[n-2].Addr(), out[n-2].Bits()-1).Masked())
		}
	}
	return out
}

// siblings are the two halves of one range.
func siblings(a, b netip.Prefix) bool {
	if a.Bits() != b.Bits() || a.Bits() == 0 || a.Addr().Is4() != b.Addr().Is4() || a == b {
		return false
	}
	return netip.PrefixFrom(a.Addr(), a.Bits()-1).Masked() == netip.PrefixFrom(b.Addr(), b.Bits()-1).Masked()
}
