package etcdinit

import (
	"fmt"
	"slices"
	"strings"
)

// Peer is a member as initial-cluster lists it.
type Peer struct{ Name, URL string }

// Member is a member as a running cluster lists it; the JSON is that of a peer's /members.
type Member struct {
	ID         uint64   `json:"id"`
	Name       string   `json:"name"` // empty: added, but never started
	PeerURLs   []string `json:"peerURLs"`
	ClientURLs []string `json:"clientURLs"` // empty: has not served yet
}

// Observed is everything that the decision may look at.
type Observed struct {
	Self    Peer
	HasData bool     // etcd's data directory holds a member
	Cluster []Member // nil: no cluster answered
	Founded bool     // the cluster is known to have had a quorum once
}

// Plan is what must be done, in this order, before etcd starts with State.
type Plan struct {
	Remove uint64       // ID of the member to remove, 0 for none
	Add    bool         // add Self as a voting member
	State  ClusterState // empty: wait, starting in any state could lose data
	Why    string       // for the log
}

// planFor decides how the member starts. It removes only the member whose name or address is Self's, and only when its data is
// gone; and it never answers new when the cluster has a record of Self that cannot be founded again, or when it was founded
// and nobody of it answers: the member would vote again in elections that it has forgotten, and acknowledged writes could go.
func planFor(obs Observed) Plan {
	if obs.HasData {
		// etcd ignores the state when it finds data; "existing" could only do harm if that ever changed.
		return Plan{State: StateNew, Why: "there is data: the member goes on where it was"}
	}
	if obs.Cluster == nil && obs.Founded {
		return Plan{Why: "there is no data, and the cluster that was founded before doesn't answer: waiting for its other members"}
	}
	if obs.Cluster == nil {
		return Plan{State: StateNew, Why: "there is no data and no cluster answers: a new cluster"}
	}
	known := slices.IndexFunc(obs.Cluster, func(m Member) bool {
		return m.Name == obs.Self.Name || slices.Contains(m.PeerURLs, obs.Self.URL)
	})
	if known < 0 {
		return Plan{Add: true, State: StateExisting, Why: "the cluster doesn't know this member: it joins"}
	}
	member := obs.Cluster[known]
	sameAddress := slices.Contains(member.PeerURLs, obs.Self.URL)
	switch {
	case len(member.ClientURLs) == 0 && member.Name == "" && sameAddress:
		return Plan{State: StateExisting, Why: "the member was added but never started: it joins"}
	case len(member.ClientURLs) == 0 && sameAddress:
		return Plan{State: StateNew, Why: "the cluster was founded without waiting for this member: it starts as a founder"}
	default:
		return Plan{Remove: member.ID, Add: true, State: StateExisting, Why: fmt.Sprintf("member %x lost its data: it is replaced", member.ID)}
	}
}

// initialCluster is the value of initial-cluster for a member that joins: exactly the members of the cluster, or etcd refuses.
// A member that hasn't started has no name yet; it gets the one that its address has in the template.
func initialCluster(members []Member, self Peer, founders []Peer) string {
	var pairs []string
	for _, m := range members {
		for _, url := range m.PeerURLs {
			pairs = append(pairs, nameOf(m, url, self, founders)+"="+url)
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

func nameOf(m Member, url string, self Peer, founders []Peer) string {
	if url == self.URL {
		return self.Name
	}
	if m.Name != "" {
		return m.Name
	}
	for _, p := range founders {
		if p.URL == url {
			return p.Name
		}
	}
	return fmt.Sprintf("member-%x", m.ID)
}
