package autoscaler

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hcp.internal/platform/internal/autoscaler/simulate"
)

// played is a cluster in which machines and a scheduler do what they are told at once.
type played struct {
	obs  Observed
	now  time.Time
	made int
}

func (w *played) settle() {
	for i := range w.obs.Groups {
		g := &w.obs.Groups[i]
		for len(g.Machines) < g.Replicas {
			w.made++
			n := node(fmt.Sprintf("made-%d", w.made))
			n.Status.Allocatable = g.Template.Status.Allocatable
			w.obs.Nodes = append(w.obs.Nodes, n)
			g.Machines = append(g.Machines, Machine{Name: n.Name, Node: n.Name, Created: w.now})
		}
		for len(g.Machines) > g.Replicas { // bounds of the pool
			w.drop(g, g.Machines[0].Name)
		}
	}
	c := &simulate.Cluster{}
	byName := map[string]*simulate.Node{}
	for _, n := range w.obs.Nodes {
		byName[n.Name] = simulate.NewNode(n)
		c.Add(byName[n.Name])
	}
	for _, p := range w.obs.Running {
		c.Place(simulate.Analyse(p), byName[p.Spec.NodeName])
	}
	w.obs.Pending = slices.DeleteFunc(w.obs.Pending, func(p *corev1.Pod) bool {
		n := c.FirstFit(simulate.Analyse(p))
		if n != nil {
			p.Spec.NodeName = n.Name()
			w.obs.Running = append(w.obs.Running, p)
		}
		return n != nil
	})
}

func (w *played) carryOut(p Plan) {
	find := func(name string) *Group {
		return &w.obs.Groups[slices.IndexFunc(w.obs.Groups, func(g Group) bool { return g.Name == name })]
	}
	for _, g := range p.Grow {
		find(g.Group.Name).Replicas = g.To
	}
	for _, r := range p.Remove {
		g := find(r.Group.Name)
		g.Replicas--
		w.drop(g, r.Machine)
	}
}

// drop removes a machine, and has its pods wait for another.
func (w *played) drop(g *Group, name string) {
	g.Machines = slices.DeleteFunc(g.Machines, func(m Machine) bool { return m.Name == name })
	w.obs.Nodes = slices.DeleteFunc(w.obs.Nodes, func(n *corev1.Node) bool { return n.Name == name })
	w.obs.Running = slices.DeleteFunc(w.obs.Running, func(p *corev1.Pod) bool {
		if p.Spec.NodeName == name {
			p.Spec.NodeName = ""
			w.obs.Pending = append(w.obs.Pending, p)
			return true
		}
		return false
	})
}
