package simulate

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Node is a machine of the cluster, or one that could be made.
type Node struct {
	Object *corev1.Node
	// Allocatable is what pods may have altogether.
	Allocatable Amounts
	// Closed nodes take no new pods; what runs on them counts for rules between pods.
	Closed bool

	used Amounts
	pods map[*Pod]bool
}

// NewNode is a node without pods.
func NewNode(object *corev1.Node) *Node {
	return &Node{Object: object, Allocatable: AmountsOf(object.Status.Allocatable), Closed: object.Spec.Unschedulable, used: Amounts{}, pods: map[*Pod]bool{}}
}

// Name of the node.
func (n *Node) Name() string { return n.Object.Name }

// Pods on it, by name.
func (n *Node) Pods() []*Pod {
	return slices.SortedFunc(maps.Keys(n.pods), func(a, b *Pod) int {
		if a.Key() < b.Key() {
			return -1
		}
		return 1
	})
}

// Free is what is left of a resource.
func (n *Node) Free(name corev1.ResourceName) int64 { return n.Allocatable[name] - n.used[name] }

// Cluster is nodes with pods on them. The zero Cluster is empty. It is not safe for concurrent use.
type Cluster struct {
	nodes    []*Node
	counters map[string]*counter // by the key of the term
	apart    map[string]*counter // where the pods are that keep others away, by the key of the term
}

// counter says how many pods of a term there are in each place.
type counter struct {
	*term
	places map[string]int
}

func (c *counter) add(place string, n int) {
	if c.places[place] += n; c.places[place] <= 0 {
		delete(c.places, place)
	}
}

// Nodes in the order in which they were added.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// Add adds a node with the pods that are on it.
func (c *Cluster) Add(n *Node) {
	c.nodes = append(c.nodes, n)
	for p := range n.pods {
		c.count(p, n, 1)
	}
}

// Drop removes a node. Its pods stay on it, so that it can be added again.
func (c *Cluster) Drop(n *Node) {
	c.nodes = slices.DeleteFunc(c.nodes, func(other *Node) bool { return other == n })
	for p := range n.pods {
		c.count(p, n, -1)
	}
}

// Place puts a pod on a node of the cluster, whether it fits or not: what runs, runs.
func (c *Cluster) Place(p *Pod, n *Node) {
	if n.pods[p] {
		return
	}
	n.pods[p] = true
	for name, amount := range p.Requests {
		n.used[name] += amount
	}
	c.count(p, n, 1)
}

// Remove takes a pod off a node of the cluster.
func (c *Cluster) Remove(p *Pod, n *Node) {
	if !n.pods[p] {
		return
	}
	delete(n.pods, p)
	for name, amount := range p.Requests {
		n.used[name] -= amount
	}
	c.count(p, n, -1)
}

// count keeps the counters up to date. A pod that keeps others away is counted under its own terms, too.
func (c *Cluster) count(p *Pod, n *Node, by int) {
	for _, k := range c.counters {
		if place, ok := n.Object.Labels[k.topology]; ok && k.matches(p.Object) {
			k.add(place, by)
		}
	}
	for _, t := range p.apart {
		if place, ok := n.Object.Labels[t.topology]; ok {
			if c.apart == nil {
				c.apart = map[string]*counter{}
			}
			if c.apart[t.key] == nil {
				c.apart[t.key] = &counter{term: t, places: map[string]int{}}
			}
			c.apart[t.key].add(place, by)
		}
	}
}

// counterFor makes a counter when it is first asked for.
func (c *Cluster) counterFor(t *term) *counter {
	if k := c.counters[t.key]; k != nil {
		return k
	}
	k := &counter{term: t, places: map[string]int{}}
	for _, n := range c.nodes {
		place, ok := n.Object.Labels[t.topology]
		if !ok {
			continue
		}
		for p := range n.pods {
			if t.matches(p.Object) {
				k.add(place, 1)
			}
		}
	}
	if c.counters == nil {
		c.counters = map[string]*counter{}
	}
	c.counters[t.key] = k
	return k
}

// FirstFit puts the pod on the first node that takes it, and returns that; nil when none does.
func (c *Cluster) FirstFit(p *Pod) *Node {
	for _, n := range c.nodes {
		if c.Fits(p, n) == nil {
			c.Place(p, n)
			return n
		}
	}
	return nil
}

// Misfit says why a pod can't be on a node.
type Misfit struct{ reason string }

func (m *Misfit) String() string { return m.reason }

func misfit(format string, args ...any) *Misfit { return &Misfit{fmt.Sprintf(format, args...)} }
