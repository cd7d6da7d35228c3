package sharedingress

import (
	"fmt"
	"slices"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/hostnames"
	"hcp.internal/platform/internal/contract/names"
)

// Published is a name by which a hosted cluster is to be reached.
type Published struct {
	// Cluster is the HostedCluster.
	Cluster *hyperv1.HostedCluster
	// Host is the name, in small letters.
	Host string
	// Services of the control plane's namespace, of which the first that exists serves it, and their usual port.
	Services []string
	Port     int32
}

// Names are all names of hosted clusters, each once, and what is wrong with some, in words. A name that several ask for is that of the first in
// hostnames.Claims, as at the shared endpoint; had is as there.
func Names(clusters []hyperv1.HostedCluster, had func(host string) (namespace string)) (list []Published, problems []string) {
	owners := map[string]string{}
	for _, c := range hostnames.Claims(clusters, had) {
		owner := names.BackReference(c.Cluster)
		if other, taken := owners[c.Host]; taken {
			problems = append(problems, fmt.Sprintf("%s: name %s is that of %s already: choose another", owner, c.Host, other))
			continue
		}
		owners[c.Host] = owner
		s := services[c.Service]
		list = append(list, Published{Cluster: c.Cluster, Host: c.Host, Services: s.names, Port: s.port})
	}
	return list, problems
}

// Own leaves out hosted clusters whose control-plane namespace belongs to another one, and says which. Two names may give the same namespace; the second is
// refused, and would otherwise lead clients to the first one's API server, under names and from networks that whoever made it chooses. owner is the
// HostedCluster, as names.BackReference, that a namespace says it is of; empty: it says nothing.
func Own(clusters []hyperv1.HostedCluster, owner func(namespace string) string) (own []hyperv1.HostedCluster, problems []string) {
	for i := range clusters {
		hc := &clusters[i]
		if of := owner(names.NamespaceOf(hc)); of != "" && of != names.BackReference(hc) {
			problems = append(problems, fmt.Sprintf("%s: namespace %s is that of %s: it is not served", names.BackReference(hc), names.NamespaceOf(hc), of))
			continue
		}
		own = append(own, *hc)
	}
	return own, problems
}

// PortOf is the port of a Service that a client is led to: the usual one, or the only one that it has; 0: it has none.
func PortOf(ports []int32, usual int32) int32 {
	switch {
	case len(ports) == 0:
		return 0
	case slices.Contains(ports, usual):
		return usual
	default:
		return ports[0]
	}
}
