package autoscaler

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"hcp.internal/platform/internal/autoscaler/simulate"
)

// What users say on pods and nodes about their removal.
const (
	safeToEvict       = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	scaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	mirrorPod         = "kubernetes.io/config.mirror"
	systemNamespace   = "kube-system"
)

// candidate is a node that might go.
type candidate struct {
	group       *Group
	machine     Machine
	node        *simulate.Node
	utilization float64
	empty       bool
}

// scaleDown finds machines whose pods have a place elsewhere.
func (p *planner) scaleDown() {
	since := p.Memory.UnneededSince
	p.Memory.UnneededSince = map[string]time.Time{}
	candidates := p.candidates()
	budget := p.budgets()
	for _, c := range candidates {
		why, undo := p.empty(c, budget.copy())
		undo()
		if why != "" {
			p.note(c.group, fmt.Sprintf("node %s is needed: %s", c.node.Name(), why))
			continue
		}
		start, known := since[c.node.Name()]
		if !known {
			start = p.now
		}
		p.Memory.UnneededSince[c.node.Name()] = start
		if left := p.o.Unneeded - p.now.Sub(start); left > 0 {
			p.note(c.group, fmt.Sprintf("node %s is not needed, and goes if that stays so until %s", c.node.Name(), start.Add(p.o.Unneeded).UTC().Format(time.RFC3339)))
		}
	}
	if p.Idle = p.idle(); p.Idle != "" {
		return
	}
	p.remove(candidates, budget)
}

// idle says why nothing is removed in this pass.
func (p *planner) idle() string {
	newest := time.Time{}
	for _, g := range p.obs.Groups {
		for _, m := range g.Machines {
			if m.Created.After(newest) {
				newest = m.Created
			}
		}
	}
	wait := func(what string, since time.Time, delay time.Duration) string {
		if since.IsZero() || p.now.Sub(since) >= delay {
			return ""
		}
		return fmt.Sprintf("%s; nodes are removed again after %s", what, since.Add(delay).UTC().Format(time.RFC3339))
	}
	switch {
	case !p.o.ScaleDown:
		return "removing nodes is switched off by spec.autoscaling of the HostedCluster"
	case len(p.Grow) > 0 || p.upcoming > 0:
		return "machines are being added"
	case p.obs.Truncated != "":
		return p.obs.Truncated
	}
	return cmp.Or(
		wait("a machine was added", newest, p.o.DelayAfterAdd),
		wait("a node was removed", p.Memory.LastRemoval, p.o.DelayAfterDelete),
		wait("removing a node has failed", p.Memory.LastFailure, p.o.DelayAfterFailure),
	)
}

// candidates are nodes that may go as far as their groups and their own marks are concerned: those with the least on them first.
func (p *planner) candidates() []candidate {
	var list []candidate
	for i := range p.obs.Groups {
		g := &p.obs.Groups[i]
		switch {
		case g.Held != "":
			p.note(g, "its size is left alone: "+g.Held)
			continue
		case p.groupTotal[g.Name] != g.Replicas:
			continue
		case g.Replicas <= g.Min:
			p.note(g, fmt.Sprintf("it has its minimum of %d machines", g.Min))
			continue
		case g.Settling != "":
			p.note(g, "nothing is removed: "+g.Settling)
			continue
		}
		for _, m := range g.Machines {
			n := p.nodes[m.Node]
			if n == nil || p.leaving[m.Name] || !serves(n.Object) {
				continue
			}
			if n.Object.Annotations[scaleDownDisabled] == "true" {
				p.note(g, fmt.Sprintf("node %s is kept by its annotation %s", n.Name(), scaleDownDisabled))
				continue
			}
			c := candidate{group: g, machine: m, node: n, utilization: utilization(n), empty: !slices.ContainsFunc(n.Pods(), movable)}
			if c.utilization >= p.o.Utilization && !c.empty {
				p.aside(g, fmt.Sprintf("node %s is needed: %.0f %% of it is requested", n.Name(), 100*c.utilization))
				continue
			}
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		if a.empty != b.empty {
			if a.empty {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.utilization, b.utilization), cmp.Compare(a.node.Name(), b.node.Name()))
	})
	return list
}

// utilization is the larger of the shares of processors and memory that are requested.
func utilization(n *simulate.Node) float64 {
	most := 0.0
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if all := n.Allocatable[name]; all > 0 {
			most = max(most, 1-float64(n.Free(name))/float64(all))
		}
	}
	return most
}

// movable pods have to go somewhere else when their node goes.
func movable(pod *simulate.Pod) bool {
	_, mirror := pod.Object.Annotations[mirrorPod]
	return !mirror && !isDaemon(pod.Object)
}

// empty takes the node out of the simulation and finds other places for its pods. It says why that does not work. undo takes it back.
func (p *planner) empty(c candidate, b budgets) (why string, undo func()) {
	type move struct {
		pod *simulate.Pod
		to  *simulate.Node
	}
	var moves []move
	pods := c.node.Pods()
	undo = func() {
		for _, m := range moves {
			p.cluster.Remove(m.pod, m.to)
		}
		p.cluster.Add(c.node)
	}
	p.cluster.Drop(c.node)
	for _, pod := range pods {
		if !movable(pod) {
			continue
		}
		if why := b.evict(pod.Object); why != "" {
			return fmt.Sprintf("pod %s: %s", pod.Key(), why), undo
		}
		to := p.placeOnExisting(pod)
		if to == nil {
			return fmt.Sprintf("pod %s fits on no other node", pod.Key()), undo
		}
		moves = append(moves, move{pod, to})
	}
	return "", undo
}

// placeOnExisting is FirstFit without machines that are on their way.
func (p *planner) placeOnExisting(pod *simulate.Pod) *simulate.Node {
	for _, n := range p.cluster.Nodes() {
		if p.nodes[n.Name()] == n && p.cluster.Fits(pod, n) == nil {
			p.cluster.Place(pod, n)
			return n
		}
	}
	return nil
}

// remove decides which of the nodes that have not been needed for long enough go now. One that is not empty goes alone.
func (p *planner) remove(candidates []candidate, b budgets) {
	for _, c := range candidates {
		start, unneeded := p.Memory.UnneededSince[c.node.Name()]
		if !unneeded || p.now.Sub(start) < p.o.Unneeded || p.groupTotal[c.group.Name] <= c.group.Min {
			continue
		}
		if len(p.Remove) >= p.o.MaxRemovals || !c.empty && len(p.Remove) > 0 {
			return
		}
		// What was found for one node alone need not hold for several.
		why, undo := p.empty(c, b)
		if why != "" {
			undo()
			continue
		}
		p.groupTotal[c.group.Name]--
		reason := fmt.Sprintf("no pod has needed node %s since %s", c.node.Name(), start.UTC().Format(time.RFC3339))
		if !c.empty {
			reason = fmt.Sprintf("only %.0f %% of node %s is requested, and all its pods fit on others, since %s", 100*c.utilization, c.node.Name(), start.UTC().Format(time.RFC3339))
		}
		p.Remove = append(p.Remove, Removal{Group: c.group, Machine: c.machine.Name, Node: c.node.Name(), Reason: reason})
		p.Notes[c.group.Name] = fmt.Sprintf("shrinking to %d machines: %s", p.groupTotal[c.group.Name], reason)
		if !c.empty {
			return
		}
	}
}

// unmark takes marks back that no decision stands behind any more: a pass ended between the mark and the number of replicas, and this one
// doesn't go on with that. The group has as many machines as it is to have then; otherwise Cluster API is about to delete the marked one.
func (p *planner) unmark() {
	goes := map[string]bool{}
	for _, r := range p.Remove {
		goes[r.Machine] = true
	}
	for _, g := range p.obs.Groups {
		alive, marked := 0, []string{}
		for _, m := range g.Machines {
			if m.Deleting {
				continue
			}
			alive++
			if isOurs(m.Mark) && !goes[m.Name] {
				marked = append(marked, m.Name)
			}
		}
		if alive <= g.Replicas {
			p.Unmark = append(p.Unmark, marked...)
		}
	}
}

// budgets are what PodDisruptionBudgets still allow, by namespace.
type budgets map[string][]*budget

type budget struct {
	name     string
	selector labels.Selector
	left     int32
}

func (p *planner) budgets() budgets {
	out := budgets{}
	for i := range p.obs.Budgets {
		b := &p.obs.Budgets[i]
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil {
			selector = labels.Everything()
		}
		out[b.Namespace] = append(out[b.Namespace], &budget{b.Name, selector, b.Status.DisruptionsAllowed})
	}
	return out
}

func (b budgets) copy() budgets {
	out := budgets{}
	for namespace, list := range b {
		for _, one := range list {
			copied := *one
			out[namespace] = append(out[namespace], &copied)
		}
	}
	return out
}

// evict says why a pod must not be moved, and uses its budgets up.
func (b budgets) evict(pod *corev1.Pod) string {
	var matching []*budget
	for _, one := range b[pod.Namespace] {
		if one.selector.Matches(labels.Set(pod.Labels)) {
			matching = append(matching, one)
		}
	}
	safe := pod.Annotations[safeToEvict]
	switch {
	case safe == "false":
		return "its annotation " + safeToEvict + " is false"
	case safe == "true":
	case metav1.GetControllerOf(pod) == nil:
		return "it has no controller that would make it again"
	case pod.Namespace == systemNamespace && len(matching) == 0:
		return "it is of the system, and has no PodDisruptionBudget"
	}
	for _, one := range matching {
		if one.left < 1 {
			return fmt.Sprintf("PodDisruptionBudget %s allows no disruption", one.name)
		}
	}
	for _, one := range matching {
		one.left--
	}
	return ""
}
