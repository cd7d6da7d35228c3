package simulate

import (
	"maps"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
)

// Fits says why the pod can't be on the node of the cluster, or nil when it can.
func (c *Cluster) Fits(p *Pod, n *Node) *Misfit {
	if m := Suits(p, n.Object); m != nil {
		return m
	}
	if n.Closed {
		return misfit("it takes no new pods")
	}
	for _, name := range slices.Sorted(maps.Keys(p.Requests)) {
		if amount := p.Requests[name]; amount > 0 && amount > n.Free(name) {
			return misfit("not enough %s", name)
		}
	}
	if len(p.ports) > 0 {
		for other := range n.pods {
			for _, a := range p.ports {
				if slices.ContainsFunc(other.ports, a.conflicts) {
					return misfit("host port %d is taken", a.port)
				}
			}
		}
	}
	return c.between(p, n)
}

// Suits is Fits as far as it depends on the node alone, and not on what is there.
func Suits(p *Pod, n *corev1.Node) *Misfit {
	if p.unsatisfiable != "" {
		return misfit("%s", p.unsatisfiable)
	}
	if ok, err := p.affinity.Match(n); err != nil || !ok {
		return misfit("node selector or required node affinity does not match")
	}
	blocking := func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}
	if t, found := schedulinghelper.FindMatchingUntoleratedTaint(logr.Discard(), n.Spec.Taints, p.Object.Spec.Tolerations, blocking, false); found {
		return misfit("taint %s is not tolerated", t.ToString())
	}
	return nil
}

// between applies the rules between pods.
func (c *Cluster) between(p *Pod, n *Node) *Misfit {
	for _, k := range c.apart {
		if place, ok := n.Object.Labels[k.topology]; ok && k.places[place] > 0 && k.matches(p.Object) {
			return misfit("a pod there keeps it away by anti-affinity over %s", k.topology)
		}
	}
	for _, t := range p.apart {
		if place, ok := n.Object.Labels[t.topology]; ok && c.counterFor(t).places[place] > 0 {
			return misfit("anti-affinity over %s", t.topology)
		}
	}
	for _, t := range p.near {
		place, ok := n.Object.Labels[t.topology]
		if !ok {
			return misfit("affinity over %s, which is no label of the node", t.topology)
		}
		// The first of pods that want to be together may be anywhere.
		if k := c.counterFor(t); k.places[place] == 0 && (len(k.places) > 0 || !t.matches(p.Object)) {
			return misfit("affinity over %s", t.topology)
		}
	}
	for _, s := range p.spread {
		place, ok := n.Object.Labels[s.topology]
		if !ok {
			return misfit("spread over %s, which is no label of the node", s.topology)
		}
		own := 0
		if s.matches(p.Object) {
			own = 1
		}
		k := c.counterFor(s.term)
		if k.places[place]+own-c.least(p, k) > s.maxSkew {
			return misfit("spread over %s", s.topology)
		}
	}
	return nil
}

// least is the smallest number of counted pods in any place that the pod could be in.
func (c *Cluster) least(p *Pod, k *counter) int {
	least := -1
	for _, n := range c.nodes {
		place, ok := n.Object.Labels[k.topology]
		if !ok {
			continue
		}
		if matches, err := p.affinity.Match(n.Object); err != nil || !matches {
			continue
		}
		if least < 0 || k.places[place] < least {
			least = k.places[place]
		}
		if least == 0 {
			break
		}
	}
	return max(least, 0)
}
