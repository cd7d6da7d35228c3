package nodetrust

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/nodetrust"
	"hcp.internal/platform/internal/kube/conditions"
)

// maxNamed bounds how many nodes the condition names.
const maxNamed = 10

// pod is what is seen of one pod of the DaemonSet.
type pod struct {
	node, hash string
	ready      bool
}

// observed is what the condition is computed from.
type observed struct {
	// hash of what nodes are to trust.
	hash string
	// nodes are the names of all Nodes, pods those of the DaemonSet.
	nodes []string
	pods  []pod
	// noImage is true when there is nothing to run on nodes.
	noImage bool
	// failed is true when the hosted API could not be asked or told; nothing else is known then.
	failed bool
}

// behind is a node that is waited for, and why.
type behind struct{ node, why string }

// judge lists the nodes that don't trust yet what they are to trust, in the order of their names.
func judge(obs observed) []behind {
	const (
		none = iota
		old
		unready
		trusts
	)
	state := map[string]int{}
	for _, p := range obs.pods {
		s := old
		switch {
		case p.hash == obs.hash && p.ready:
			s = trusts
		case p.hash == obs.hash:
			s = unready
		}
		state[p.node] = max(state[p.node], s)
	}
	var list []behind
	for _, n := range obs.nodes {
		switch state[n] {
		case none:
			list = append(list, behind{n, "no pod of the DaemonSet runs there"})
		case old:
			list = append(list, behind{n, "its pod still has the old ones"})
		case unready:
			list = append(list, behind{n, "its pod is not Ready"})
		}
	}
	slices.SortFunc(list, func(a, b behind) int { return strings.Compare(a.node, b.node) })
	return list
}

// condition says whether every node follows.
func condition(obs observed, generation int64) metav1.Condition {
	c := conditions.True(hyperv1.NodesTrustAuthorities, hyperv1.AsExpectedReason, "")
	list := judge(obs)
	switch {
	case obs.failed:
		c = conditions.Unknown(c.Type, hyperv1.StatusUnknownReason, "the hosted API does not answer, or refuses what nodes are to run; successors of authorities wait")
	case len(obs.nodes) == 0:
		c.Message = "there are no nodes that would have to follow; " + nodetrust.Report(obs.hash)
	case obs.noImage:
		c = conditions.False(c.Type, hyperv1.NodesLackAuthoritiesReason, fmt.Sprintf("the release has no program that would give %d nodes the new authorities: replace the machines, then `hypershift rotate authorities --force`", len(obs.nodes)))
	case len(list) > 0:
		c = conditions.False(c.Type, hyperv1.NodesLackAuthoritiesReason, message(list, len(obs.nodes)))
	default:
		c.Message = fmt.Sprintf("all %d nodes trust the new authorities; %s", len(obs.nodes), nodetrust.Report(obs.hash))
	}
	c.ObservedGeneration = generation
	return c
}

func message(list []behind, nodes int) string {
	var told []string
	for i, b := range list {
		if i == maxNamed {
			told = append(told, fmt.Sprintf("%d more", len(list)-maxNamed))
			break
		}
		told = append(told, b.node+" ("+b.why+")")
	}
	return fmt.Sprintf("%d of %d nodes don't trust the new authorities, which wait for them: %s. See the logs of DaemonSet kube-system/%s; delete the Nodes of machines that are gone, "+
		"or give nodes up with `hypershift rotate authorities --force`", len(list), nodes, strings.Join(told, ", "), daemonSet)
}
