package capacity

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"hcp.internal/platform/internal/autoscaler/simulate"
)

// Amounts are quantities of resources: CPU in thousandths, everything else in its own unit.
type Amounts = simulate.Amounts

// Node is a node of the management cluster that takes pods: ready and not cordoned.
type Node struct {
	Object *corev1.Node
	// Free is what is allocatable less what pods there have asked for. It may be negative.
	Free Amounts
	// Base is what would be free without the pods of hosted clusters.
	Base Amounts
}

// Group is some pods that are alike and have no place yet.
type Group struct {
	// Component is what they are part of, for people.
	Component string
	Pod       *simulate.Pod
	Count     int
	// Apart is the label of nodes by which no two of them may be in the same place; empty: they may.
	Apart string
	// Places are the values of that label where others of them are already.
	Places []string
}

// total is what the pods of a group ask for together.
func (g Group) total() Amounts {
	sum := Amounts{}
	for name, n := range g.Pod.Requests {
		sum[name] = n * int64(g.Count)
	}
	return sum
}

// Need is what groups ask for together.
func Need(groups []Group) Amounts {
	sum := Amounts{}
	for _, g := range groups {
		add(sum, g.total(), 1)
	}
	return sum
}

func add(to, amounts Amounts, sign int64) {
	for name, n := range amounts {
		to[name] += sign * n
	}
}

// placed is a group with the nodes that it may be on.
type placed struct {
	Group
	nodes []int // sorted indices
	key   string
}

// field is nodes with what is to be placed on them.
type field struct {
	nodes []Node
	// suits remembers which nodes groups may be on, by what of the pod decides about that.
	suits map[string][]int
}

func newField(nodes []Node) *field { return &field{nodes: nodes, suits: map[string][]int{}} }

func (f *field) place(g Group) placed {
	key := placesKey(g.Pod.Object)
	nodes, known := f.suits[key]
	if !known {
		for i := range f.nodes {
			if simulate.Suits(g.Pod, f.nodes[i].Object) == nil {
				nodes = append(nodes, i)
			}
		}
		f.suits[key] = nodes
	}
	return placed{g, nodes, key}
}

func (f *field) placeAll(groups []Group) []placed {
	out := make([]placed, 0, len(groups))
	for _, g := range groups {
		if g.Count > 0 {
			out = append(out, f.place(g))
		}
	}
	return out
}

// load is what waits for a place, summed up by which nodes it may go to.
type load map[string]*struct {
	nodes []int
	sum   Amounts
}

func (l load) add(p placed) {
	e := l[p.key]
	if e == nil {
		e = &struct {
			nodes []int
			sum   Amounts
		}{p.nodes, Amounts{}}
		l[p.key] = e
	}
	add(e.sum, p.total(), 1)
}

// on is the load that may go to any of these nodes.
func (l load) on(nodes []int) Amounts {
	sum := Amounts{}
	for _, e := range l {
		if meet(e.nodes, nodes) {
			add(sum, e.sum, 1)
		}
	}
	return sum
}

// meet tells whether two sorted lists have something in common.
func meet(a, b []int) bool {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			return true
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	return false
}

// guaranteed tells whether every pod of p finds a place, wherever the others of the load go first. others includes p itself; room is Free or
// Base of a node.
//
// It counts how many nodes the others could make too small for one more pod of p at most: for each resource those that take least, added up
// over resources. When fewer than there are, one is left. On one node this is exact: the pods fit if their sum does.
func (f *field) guaranteed(p placed, others Amounts, room func(*Node) Amounts) bool {
	var usable []int
	for _, i := range p.nodes {
		if fits(p.Pod.Requests, room(&f.nodes[i])) && !p.taken(f.nodes[i].Object) {
			usable = append(usable, i)
		}
	}
	left, own := len(usable), int64(p.Count)
	rest := Amounts{}
	add(rest, others, 1)
	if p.Apart == "" || !f.labelled(usable, p.Apart) {
		own = 1 // the others of the group are load like all else
	}
	if p.Apart != "" {
		left -= largestPlaces(f.nodes, usable, p.Apart, p.Count-1)
	}
	for name, n := range p.Pod.Requests {
		rest[name] -= n * own
	}
	if left <= 0 {
		return false
	}
	blocked := 0
	for name, n := range p.Pod.Requests {
		if n == 0 {
			continue
		}
		costs := make([]int64, 0, len(usable))
		for _, i := range usable {
			costs = append(costs, room(&f.nodes[i])[name]-n+1)
		}
		slices.Sort(costs)
		budget := rest[name]
		for _, cost := range costs {
			if budget -= cost; budget < 0 {
				break
			}
			blocked++
		}
	}
	return blocked < left
}

// labelled tells whether all of the nodes are in places of that kind.
func (f *field) labelled(nodes []int, label string) bool {
	return !slices.ContainsFunc(nodes, func(i int) bool { _, ok := f.nodes[i].Object.Labels[label]; return !ok })
}

func fits(requests, room Amounts) bool {
	for name, n := range requests {
		if n > 0 && n > room[name] {
			return false
		}
	}
	return true
}

// taken tells that another pod of the group keeps the rest away from the node.
func (g Group) taken(n *corev1.Node) bool {
	place, labelled := n.Labels[g.Apart]
	return g.Apart != "" && labelled && slices.Contains(g.Places, place)
}

// largestPlaces is how many of the nodes are in the n places with most of them. A node without the label is no place: it keeps nobody away.
func largestPlaces(nodes []Node, usable []int, label string, n int) int {
	count := map[string]int{}
	for _, i := range usable {
		if place, ok := nodes[i].Object.Labels[label]; ok {
			count[place]++
		}
	}
	sizes := make([]int, 0, len(count))
	for _, c := range count {
		sizes = append(sizes, c)
	}
	slices.SortFunc(sizes, func(a, b int) int { return cmp.Compare(b, a) })
	sum := 0
	for _, c := range sizes[:min(max(n, 0), len(sizes))] {
		sum += c
	}
	return sum
}
