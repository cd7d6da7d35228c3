package sharedingress

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

// Backend is a server of a control plane.
type Backend struct {
	// Name is namespace/service of the control plane.
	Name string
	// Address is HOST:PORT.
	Address string
	// Allowed are the networks that clients may come from; none: any. They are compared with whoever connects, never with what a header says.
	Allowed []netip.Prefix

	open *atomic.Int64 // connections
}

func (b *Backend) allows(from netip.Addr) bool {
	return len(b.Allowed) == 0 || slices.ContainsFunc(b.Allowed, func(p netip.Prefix) bool { return p.Contains(from.Unmap()) })
}

// Table says where connections go. It is not changed once it is used.
type Table struct {
	names    map[string]*Backend // by server name, in small letters
	clusters map[string]*Backend // by the ID of the hosted cluster
}

// Named is the backend of a server name, nil for none.
func (t *Table) Named(name string) *Backend { return t.names[strings.ToLower(name)] }

// Cluster is the API server of a hosted cluster, nil for none.
func (t *Table) Cluster(id string) *Backend { return t.clusters[id] }

// Len is how many names and clusters lead somewhere.
func (t *Table) Len() (names, clusters int) { return len(t.names), len(t.clusters) }

// Server is where a Service of a control plane is reached: HOST:PORT; ok is false when there is none.
type Server func(namespace, service string, port int32) (address string, ok bool)

// service is what a published service is reached by: a Service and its port. The first that exists counts.
type service struct {
	names []string
	port  int32
}

var services = map[hyperv1.ServiceType]service{
	hyperv1.APIServer:    {[]string{names.KubeAPIServer}, 6443},
	hyperv1.Konnectivity: {[]string{"konnectivity-server"}, 8091},
	hyperv1.Ignition:     {[]string{"ignition-server-proxy", "ignition-server"}, 443},
	hyperv1.OAuthServer:  {[]string{"oauth-openshift"}, 6443},
}

// MakeTable is the table for all hosted clusters, and what is wrong with some, in words. before is the one that it replaces, whose counters of
// connections go on; it may be nil.
//
// A name, or an ID, that several hosted clusters ask for is that of the oldest: nobody takes over what somebody else has.
func MakeTable(clusters []hyperv1.HostedCluster, server Server, before *Table) (*Table, []string) {
	sorted := slices.Clone(clusters)
	slices.SortFunc(sorted, func(a, b hyperv1.HostedCluster) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	t := &Table{names: map[string]*Backend{}, clusters: map[string]*Backend{}}
	owners := map[string]string{}
	counters := before.counters()
	var problems []string
	for i := range sorted {
		hc := &sorted[i]
		if !hc.DeletionTimestamp.IsZero() {
			continue
		}
		owner, allowed, err := names.BackReference(hc), []netip.Prefix(nil), error(nil)
		if allowed, err = allowedFor(hc); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v: it is not served", owner, err))
			continue
		}
		backend := func(kind hyperv1.ServiceType) *Backend {
			s := services[kind]
			for _, name := range s.names {
				if address, ok := server(names.NamespaceOf(hc), name, s.port); ok {
					b := &Backend{Name: names.NamespaceOf(hc) + "/" + name, Address: address, Allowed: allowed}
					if b.open = counters[b.Name]; b.open == nil {
						b.open = &atomic.Int64{}
						counters[b.Name] = b.open
					}
					return b
				}
			}
			return nil
		}
		for _, name := range namesOf(hc) {
			b := backend(name.kind)
			switch other, taken := owners[name.host]; {
			case taken && other != owner:
				problems = append(problems, fmt.Sprintf("%s: name %s is that of %s already: choose another", owner, name.host, other))
			case b != nil && !taken:
				owners[name.host], t.names[name.host] = owner, b
			}
		}
		if id := hc.Spec.ClusterID; id != "" {
			if other, taken := owners["id "+id]; taken {
				problems = append(problems, fmt.Sprintf("%s: spec.clusterID %s is that of %s already", owner, id, other))
			} else if b := backend(hyperv1.APIServer); b != nil {
				owners["id "+id], t.clusters[id] = owner, b
			}
		}
	}
	return t, problems
}

func (t *Table) counters() map[string]*atomic.Int64 {
	out := map[string]*atomic.Int64{}
	if t == nil {
		return out
	}
	for _, by := range []map[string]*Backend{t.names, t.clusters} {
		for _, b := range by {
			out[b.Name] = b.open
		}
	}
	return out
}

type host struct {
	host string
	kind hyperv1.ServiceType
}

// namesOf are the names by which a hosted cluster publishes its services, each once; that of the API comes first.
func namesOf(hc *hyperv1.HostedCluster) (list []host) {
	add := func(name string, kind hyperv1.ServiceType) {
		name = strings.ToLower(strings.TrimSuffix(name, "."))
		if name != "" && !slices.ContainsFunc(list, func(h host) bool { return h.host == name }) {
			list = append(list, host{name, kind})
		}
	}
	add(hc.Spec.KubeAPIServerDNSName, hyperv1.APIServer)
	for _, kind := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		for _, s := range hc.Spec.Services {
			if s.Service != kind {
				continue
			}
			if r := s.ServicePublishingStrategy.Route; r != nil {
				add(string(r.Hostname), kind)
			}
			if lb := s.ServicePublishingStrategy.LoadBalancer; lb != nil {
				add(string(lb.Hostname), kind)
			}
		}
	}
	return list
}

// allowedFor are the networks of spec.networking.apiServer.allowedCIDRBlocks.
func allowedFor(hc *hyperv1.HostedCluster) (out []netip.Prefix, err error) {
	if hc.Spec.Networking.APIServer == nil {
		return nil, nil
	}
	for _, block := range hc.Spec.Networking.APIServer.AllowedCIDRBlocks {
		p, err := netip.ParsePrefix(string(block))
		if err != nil {
			return nil, fmt.Errorf("spec.networking.apiServer.allowedCIDRBlocks: %q is no network", block)
		}
		out = append(out, p)
	}
	return out, nil
}
