package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// ClusterLabel is the label and the taint of nodes that are one control plane's: its value is the namespace.
const ClusterLabel = hyperv1.HostedClusterAnnotation

// Node is a node that may serve requests of a hosted cluster alone.
type Node struct {
	Name   string
	Labels map[string]string
	Taints []corev1.Taint
	// Usable: it is ready, takes pods, and isn't about to go.
	Usable bool
}

// Cluster is a hosted cluster.
type Cluster struct {
	// Namespace is that of its control plane, Name and HostedNamespace are those of the HostedCluster.
	Namespace, Name, HostedNamespace string
	// Size is what it should have.
	Size string
	// Places is how many nodes it needs, in different zones.
	Places int
}

// World is what a decision looks at.
type World struct {
	// Nodes are all that have label request-serving-component.
	Nodes []Node
	// Pairs are the claims: the namespace of the control plane that owns a pair, by its name.
	Pairs map[string]string
	// Busy are the nodes on which pods of this control plane are.
	Busy map[string]bool
}

// Plan says what to do, in the order of the fields.
type Plan struct {
	// Pair is the one to claim; empty: none, or it has one.
	Pair string
	// Take are nodes to give to the cluster.
	Take []string
	// Placed: it has all the nodes that it needs; Own is the pair that they are of.
	Placed bool
	Own    string
	// Missing is how many nodes it lacks, and Zones and Hosts are where they can't be: in zones that have one, and, of nodes without a zone, on these themselves.
	Missing      int
	Zones, Hosts []string
	// OneZone: all nodes that there are are in one zone, so that two of them do.
	OneZone bool
	// Release are nodes to take from it.
	Release []string
	// Waits: nodes that it no longer needs still have pods of it. Stuck are those of them that these pods may stay on, so that nothing moves them.
	Waits bool
	Stuck []string
	// Reason and Message tell how it is.
	Reason, Message string
}

// Reasons of condition RequestServingNodesReady.
const (
	Claimed         = "Claimed"
	Resizing        = "Resizing"
	WaitingForNodes = "WaitingForNodes"
)

// Decide says what becomes of the nodes of a cluster. Of its own nodes it keeps those with pods before those without: nothing moves pods from a node that works, as one does that
// was replaced and came back.
func Decide(c Cluster, w World) Plan {
	nodes := slices.SortedFunc(slices.Values(w.Nodes), func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	place := places(nodes)
	own := slices.Collect(func(yield func(Node) bool) {
		for _, n := range nodes {
			if n.Labels[ClusterLabel] == c.Namespace && !yield(n) {
				return
			}
		}
	})
	pair, recorded := pairOf(c, w, own)
	plan := Plan{}
	if pair == "" {
		pair = c.choose(nodes, w, place)
	}
	if pair != "" && !recorded {
		plan.Pair = pair
	}
	taken, keep := map[string]bool{}, map[string]bool{}
	for _, n := range inTurn(c, w, nodes) {
		if pair == "" || !n.fits(c.Size, pair) || taken[place(n)] || len(taken) == c.Places {
			continue
		}
		taken[place(n)], keep[n.Name] = true, true
		if n.Labels[ClusterLabel] == "" {
			plan.Take = append(plan.Take, n.Name)
		}
	}
	plan.Placed, plan.Own, plan.Missing = len(taken) >= c.Places, pair, c.Places-len(taken)
	if plan.Placed {
		plan.leave(c, w, own, keep)
	} else {
		plan.lacks(nodes, keep)
	}
	plan.Reason, plan.Message = plan.tell(c, own)
	return plan
}

// inTurn are the nodes that a cluster may have, in the order in which they are chosen: those that it has come first, and of these those with pods.
func inTurn(c Cluster, w World, nodes []Node) []Node {
	turn := func(n Node) int {
		switch {
		case n.Labels[ClusterLabel] == "":
			return 2
		case w.Busy[n.Name]:
			return 0
		}
		return 1
	}
	list := slices.DeleteFunc(slices.Clone(nodes), func(n Node) bool { owner := n.Labels[ClusterLabel]; return owner != "" && owner != c.Namespace })
	slices.SortStableFunc(list, func(a, b Node) int { return cmp.Compare(turn(a), turn(b)) })
	return list
}

// leave releases the nodes that the cluster has beside those that it keeps, as soon as none of its pods is there.
func (p *Plan) leave(c Cluster, w World, own []Node, keep map[string]bool) {
	for _, n := range own {
		switch {
		case keep[n.Name]:
		case w.Busy[n.Name]:
			p.Waits = true
			if n.fits(c.Size, p.Own) {
				p.Stuck = append(p.Stuck, n.Name)
			}
		default:
			p.Release = append(p.Release, n.Name)
		}
	}
}

// lacks notes where the nodes that are missing can't be.
func (p *Plan) lacks(nodes []Node, keep map[string]bool) {
	zones := zonesOf(nodes)
	p.OneZone = OneZone(nodes)
	for _, n := range nodes {
		zone := n.Labels[corev1.LabelTopologyZone]
		switch {
		case !keep[n.Name]:
		case len(zones) > 1 && zone != "":
			p.Zones = append(p.Zones, zone)
		default:
			p.Hosts = append(p.Hosts, cmp.Or(n.Labels[corev1.LabelHostname], n.Name))
		}
	}
	slices.Sort(p.Zones)
}

func (p Plan) tell(c Cluster, own []Node) (reason, message string) {
	switch {
	case p.Placed && len(p.Stuck) > 0:
		return Resizing, fmt.Sprintf("It has %[1]s for size %[2]s of pair %[3]s, and keeps %[4]s as long as pods of it are there, which nothing moves: drain %[4]s, or delete these pods",
			inAll(c.Places), c.Size, p.Own, strings.Join(p.Stuck, ", "))
	case p.Placed && p.Waits:
		return Resizing, fmt.Sprintf("It has %s for size %s of pair %s; pods are moving from others", inAll(c.Places), c.Size, p.Own)
	case p.Placed:
		return Claimed, fmt.Sprintf("It has %s for size %s of pair %s", inAll(c.Places), c.Size, p.Own)
	case p.Own != "":
		return WaitingForNodes, fmt.Sprintf("Pair %s lacks %s for size %s, in zones without one: add nodes with labels %s=true, %s=%s and %s=%s; it has %d in all",
			p.Own, inAll(p.Missing), c.Size, hyperv1.RequestServingComponentLabel, hyperv1.ClusterSizeLabel, c.Size, hyperv1.PairedNodesLabel, p.Own, len(own))
	}
	need := "a node for size " + c.Size
	if c.Places > 1 {
		need = fmt.Sprintf("%d nodes for size %s in different zones", c.Places, c.Size)
	}
	return WaitingForNodes, fmt.Sprintf("No pair is free that has %s: add nodes with labels %s=true, %s=%s and %s=NAME",
		need, hyperv1.RequestServingComponentLabel, hyperv1.ClusterSizeLabel, c.Size, hyperv1.PairedNodesLabel)
}

func inAll(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// fits: the node is for clusters of the size, in the pair, and takes pods.
func (n Node) fits(size, pair string) bool {
	return n.Usable && n.Labels[hyperv1.ClusterSizeLabel] == size && n.Labels[hyperv1.PairedNodesLabel] == pair
}

// places gives the zone of a node, or the node itself where there are fewer than two zones.
func places(nodes []Node) func(Node) string {
	if len(zonesOf(nodes)) < 2 {
		return func(n Node) string { return n.Name }
	}
	return func(n Node) string { return cmp.Or(n.Labels[corev1.LabelTopologyZone], "node "+n.Name) }
}

func zonesOf(nodes []Node) map[string]bool {
	zones := map[string]bool{}
	for _, n := range nodes {
		if z := n.Labels[corev1.LabelTopologyZone]; z != "" {
			zones[z] = true
		}
	}
	return zones
}

// OneZone: all nodes of a world are in one zone, so that two of them do. It isn't so while there are none.
func OneZone(nodes []Node) bool { return len(zonesOf(nodes)) == 1 }

// pairOf is the pair that a cluster has: by its claim, else by its nodes, when nobody else claims that.
func pairOf(c Cluster, w World, own []Node) (pair string, recorded bool) {
	for _, pair := range slices.Sorted(maps.Keys(w.Pairs)) {
		if w.Pairs[pair] == c.Namespace {
			return pair, true
		}
	}
	for _, n := range own {
		if pair := n.Labels[hyperv1.PairedNodesLabel]; pair != "" && w.Pairs[pair] == "" {
			return pair, false
		}
	}
	return "", false
}

// choose is the first pair, by name, that is free.
func (c Cluster) choose(nodes []Node, w World, place func(Node) string) string {
	for _, pair := range free(nodes, w, c.Size, c.Places, place) {
		return pair
	}
	return ""
}

// Free are the pairs, by name, that nobody has and that have all the nodes that a cluster of a size needs, in as many places. Nodes without the name of a pair are in none.
func Free(w World, size string, count int) []string {
	return free(w.Nodes, w, size, count, places(w.Nodes))
}

func free(nodes []Node, w World, size string, count int, place func(Node) string) (pairs []string) {
	found := map[string]map[string]bool{}
	owned := map[string]bool{}
	for _, n := range nodes {
		pair := n.Labels[hyperv1.PairedNodesLabel]
		if pair == "" {
			continue
		}
		if n.Labels[ClusterLabel] != "" || w.Pairs[pair] != "" {
			owned[pair] = true
		}
		if n.fits(size, pair) {
			if found[pair] == nil {
				found[pair] = map[string]bool{}
			}
			found[pair][place(n)] = true
		}
	}
	for _, pair := range slices.Sorted(maps.Keys(found)) {
		if !owned[pair] && len(found[pair]) >= count {
			pairs = append(pairs, pair)
		}
	}
	return pairs
}

// PlacesFor is how many nodes a hosted cluster needs for its requests.
func PlacesFor(policy hyperv1.AvailabilityPolicy) int {
	if policy == hyperv1.SingleReplica {
		return 1
	}
	return 2
}

// Given is the node as it is when it is the cluster's: labels to set, and all its taints.
func Given(c Cluster, n Node) (labels map[string]*string, taints []corev1.Taint) {
	labels = map[string]*string{ClusterLabel: &c.Namespace, hyperv1.ClusterNameLabel: &c.Name, hyperv1.ClusterNamespaceLabel: &c.HostedNamespace}
	return labels, append(withoutOurs(n.Taints), corev1.Taint{Key: ClusterLabel, Value: c.Namespace, Effect: corev1.TaintEffectNoSchedule})
}

// Released is the node as it is when it is nobody's.
func Released(n Node) (labels map[string]*string, taints []corev1.Taint) {
	return map[string]*string{ClusterLabel: nil, hyperv1.ClusterNameLabel: nil, hyperv1.ClusterNamespaceLabel: nil}, withoutOurs(n.Taints)
}

func withoutOurs(taints []corev1.Taint) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool { return t.Key == ClusterLabel })
}
