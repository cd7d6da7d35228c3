package sharedingress

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/hostnames"
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

	open, cluster *atomic.Int64 // connections: to it, and to all backends of its hosted cluster
}

// leave ends the count of one connection.
func (b *Backend) leave() {
	b.open.Add(-1)
	b.cluster.Add(-1)
}

func (b *Backend) allows(from netip.Addr) bool {
	return len(b.Allowed) == 0 || slices.ContainsFunc(b.Allowed, func(p netip.Prefix) bool { return p.Contains(from.Unmap()) })
}

// Table says where connections go. It is not changed once it is used.
type Table struct {
	names    map[string]*Backend // by server name, in small letters
	clusters map[string]*Backend // by the ID of the hosted cluster

	// counts are the numbers of connections, by the names of backends and the namespaces of control planes: those of the table, and others that have some
	// still. A tenant could begin at nothing otherwise, by taking a name away and asking for it again.
	counts map[string]*atomic.Int64
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
// A name that several hosted clusters ask for is that of the first in hostnames.Claims, an ID that of the oldest.
func MakeTable(clusters []hyperv1.HostedCluster, server Server, before *Table) (*Table, []string) {
	m := &maker{server: server, before: before.counters(), counts: map[string]*atomic.Int64{}, allowed: map[string][]netip.Prefix{}}
	sorted := slices.Clone(clusters)
	slices.SortFunc(sorted, func(a, b hyperv1.HostedCluster) int { return hostnames.Older(&a, &b) })
	sorted = slices.DeleteFunc(sorted, func(hc hyperv1.HostedCluster) bool { return !hc.DeletionTimestamp.IsZero() || !m.admits(&hc) })
	t, owners := &Table{names: map[string]*Backend{}, clusters: map[string]*Backend{}}, map[string]string{}
	for _, c := range hostnames.Claims(sorted, before.namespace) {
		owner, b := names.BackReference(c.Cluster), m.backend(c.Cluster, c.Service)
		switch other, taken := owners[c.Host]; {
		case taken && other != owner:
			m.problems = append(m.problems, fmt.Sprintf("%s: name %s is that of %s already: choose another", owner, c.Host, other))
		case b != nil && !taken:
			owners[c.Host], t.names[c.Host] = owner, b
		}
	}
	for i := range sorted {
		hc := &sorted[i]
		id, owner := hc.Spec.ClusterID, names.BackReference(hc)
		if id == "" {
			continue
		}
		if other, taken := owners["id "+id]; taken {
			m.problems = append(m.problems, fmt.Sprintf("%s: spec.clusterID %s is that of %s already", owner, id, other))
		} else if b := m.backend(hc, hyperv1.APIServer); b != nil {
			owners["id "+id], t.clusters[id] = owner, b
		}
	}
	for of, n := range m.before {
		if n.Load() > 0 {
			m.counts[of] = n
		}
	}
	t.counts = m.counts
	return t, m.problems
}

// maker is what making a table needs.
type maker struct {
	server         Server
	before, counts map[string]*atomic.Int64
	allowed        map[string][]netip.Prefix // by names.BackReference
	problems       []string
}

// admits reads which networks a hosted cluster lets in. One whose list can't be read is not served: that could let in everybody.
func (m *maker) admits(hc *hyperv1.HostedCluster) bool {
	allowed, err := allowedFor(hc)
	if err != nil {
		m.problems = append(m.problems, fmt.Sprintf("%s: %v: it is not served", names.BackReference(hc), err))
		return false
	}
	m.allowed[names.BackReference(hc)] = allowed
	return true
}

// backend is the server of a service, nil for none.
func (m *maker) backend(hc *hyperv1.HostedCluster, kind hyperv1.ServiceType) *Backend {
	s, namespace := services[kind], names.NamespaceOf(hc)
	for _, name := range s.names {
		if address, ok := m.server(namespace, name, s.port); ok {
			b := &Backend{Name: namespace + "/" + name, Address: address, Allowed: m.allowed[names.BackReference(hc)]}
			b.open, b.cluster = m.count(b.Name), m.count(namespace)
			return b
		}
	}
	return nil
}

// count is the number of connections to a backend or a namespace, which goes on if there was one.
func (m *maker) count(of string) *atomic.Int64 {
	if m.counts[of] == nil {
		if m.counts[of] = m.before[of]; m.counts[of] == nil {
			m.counts[of] = &atomic.Int64{}
		}
	}
	return m.counts[of]
}

// namespace is that of the control plane that a name leads to, "" for none.
func (t *Table) namespace(host string) string {
	if t == nil || t.names[host] == nil {
		return ""
	}
	namespace, _, _ := strings.Cut(t.names[host].Name, "/")
	return namespace
}

func (t *Table) counters() map[string]*atomic.Int64 {
	if t == nil {
		return nil
	}
	return t.counts
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
