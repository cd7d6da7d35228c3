package autoscaler

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"

	"hcp.internal/platform/internal/autoscaler/simulate"
)

// maxPending bounds the pods that one pass finds places for; the next pass goes on with the others.
const maxPending = 500

// planner makes one plan.
type planner struct {
	obs    *Observed
	o      Options
	now    time.Time
	choose func(n int) int

	cluster    *simulate.Cluster
	nodes      map[string]*simulate.Node // those that there are, by name
	daemons    []*simulate.Pod           // one of each DaemonSet
	upcoming   int                       // machines on their way
	total      int                       // nodes altogether, with those on their way
	waits      bool                      // pods wait for machines that are on their way or were just asked for
	made       int                       // hypothetical nodes so far, for their names
	groupTotal map[string]int            // size of each group after what was decided
	leaving    map[string]bool           // machines on their way out, by name
	asides     map[string]string         // notes of groups that have no other
	Plan
}

// planFor decides what a pass does. choose picks one of n for expander random.
//
// No group gets more than its max or less than its min, none is both grown and shrunk, and none that is held is touched. Every pod of a
// machine that is removed fits on another node that is there.
func planFor(obs *Observed, o Options, m Memory, now time.Time, choose func(n int) int) Plan {
	copied := *obs
	copied.Groups = slices.Clone(obs.Groups) // some are held by what is found here
	p := &planner{obs: &copied, o: o, now: now, choose: choose, cluster: &simulate.Cluster{}, nodes: map[string]*simulate.Node{}, groupTotal: map[string]int{}, leaving: map[string]bool{}, asides: map[string]string{}}
	p.Notes = map[string]string{}
	p.Memory = m
	p.populate()
	p.scaleUp()
	p.scaleDown()
	p.unmark()
	for name, text := range p.asides {
		if p.Notes[name] == "" {
			p.Notes[name] = text
		}
	}
	return p.Plan
}

// populate puts what there is, and what is on its way, into the simulation.
func (p *planner) populate() {
	for i := range p.obs.DaemonSets {
		p.daemons = append(p.daemons, simulate.Analyse(podOf(&p.obs.DaemonSets[i])))
	}
	closing := map[string]bool{}
	for _, g := range p.obs.Groups {
		p.groupTotal[g.Name] = g.Replicas
		excess := -g.Replicas
		for _, m := range g.Machines {
			if !m.Deleting {
				excess++
			}
		}
		for _, m := range g.Machines {
			// A mark alone deletes nothing: there must be more machines than are asked for.
			if m.Deleting || m.Mark != "" && excess > 0 {
				p.leaving[m.Name] = true
				closing[m.Node] = true
			}
			if !m.Deleting && m.Mark != "" {
				excess--
			}
		}
	}
	for _, object := range p.obs.Nodes {
		n := simulate.NewNode(object)
		n.Closed = n.Closed || closing[object.Name] || !serves(object)
		p.cluster.Add(n)
		p.nodes[object.Name] = n
	}
	for _, pod := range p.obs.Running {
		if n := p.nodes[pod.Spec.NodeName]; n != nil && !p.expendable(pod) {
			p.cluster.Place(simulate.Analyse(pod), n)
		}
	}
	outside := len(p.obs.Nodes)
	for i := range p.obs.Groups {
		g := &p.obs.Groups[i]
		p.total += g.Replicas
		for _, m := range g.Machines {
			if p.nodes[m.Node] != nil {
				outside--
			}
		}
		missing := p.onTheirWay(g)
		p.upcoming += missing
		for range missing {
			if g.Template != nil {
				p.addNode(g)
			}
		}
	}
	p.total += max(outside, 0)
}

// onTheirWay is how many machines of a group were asked for and are not nodes that serve yet. Those that take too long don't count, and
// hold the group: more of the same would not help. A node that has served and does not any more is lost, until a health check replaces it.
func (p *planner) onTheirWay(g *Group) int {
	serving, late, lost := 0, 0, 0
	for _, m := range g.Machines {
		n, old := p.nodes[m.Node], p.now.Sub(m.Created) > p.o.MaxProvision
		switch {
		case p.leaving[m.Name]:
		case n != nil && serves(n.Object):
			serving++
		case n != nil && old:
			lost++
		case old:
			late++
		}
	}
	if late > 0 && g.Held == "" {
		g.Held = fmt.Sprintf("%d of its machines have not become nodes within %s", late, p.o.MaxProvision)
	}
	return min(max(g.Replicas-serving-late-lost, 0), maxGroup)
}

// maxGroup bounds what is simulated for a group, whatever its max says.
const maxGroup = 1000

// addNode adds a machine of the group to the simulation, with the pods of DaemonSets that it would have.
func (p *planner) addNode(g *Group) *simulate.Node {
	p.made++
	object := g.Template.DeepCopy()
	object.Name = fmt.Sprintf("template-%s-%d", g.Name, p.made)
	if object.Labels == nil {
		object.Labels = map[string]string{}
	}
	object.Labels[corev1.LabelHostname] = object.Name
	n := simulate.NewNode(object)
	p.cluster.Add(n)
	for _, d := range p.daemons {
		if simulate.Suits(d, object) == nil {
			copied := *d
			p.cluster.Place(&copied, n)
		}
	}
	return n
}

// podOf is the pod that a DaemonSet would put on a node, with the tolerations that its controller adds.
func podOf(ds *appsv1.DaemonSet) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ds.Namespace, Name: ds.Name, Labels: ds.Spec.Template.Labels}, Spec: *ds.Spec.Template.Spec.DeepCopy()}
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable, corev1.TaintNodeNetworkUnavailable} {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
	return pod
}

func (p *planner) expendable(pod *corev1.Pod) bool {
	return schedulinghelper.PodPriority(pod) < p.o.PriorityCutoff
}

// scaleUp finds machines for pods that fit nowhere.
func (p *planner) scaleUp() {
	var pods []*simulate.Pod
	for _, pod := range p.obs.Pending {
		if !p.expendable(pod) && !isDaemon(pod) {
			pods = append(pods, simulate.Analyse(pod))
		}
	}
	// The largest first, because the small ones fit in between; those of high priority before, because maxNodesTotal may end it.
	slices.SortStableFunc(pods, func(a, b *simulate.Pod) int {
		return cmp.Or(
			-cmp.Compare(schedulinghelper.PodPriority(a.Object), schedulinghelper.PodPriority(b.Object)),
			-cmp.Compare(a.Requests[corev1.ResourceCPU], b.Requests[corev1.ResourceCPU]),
			-cmp.Compare(a.Requests[corev1.ResourceMemory], b.Requests[corev1.ResourceMemory]),
			cmp.Compare(a.Key(), b.Key()),
		)
	})
	if len(pods) > maxPending {
		pods = pods[:maxPending]
	}
	pods = slices.DeleteFunc(pods, func(pod *simulate.Pod) bool {
		fits := p.cluster.FirstFit(pod) != nil
		p.waits = p.waits || fits
		return fits
	})
	grown := map[string]bool{}
	for len(pods) > 0 {
		options := p.options(pods, grown)
		if len(options) == 0 {
			break
		}
		best := p.expand(options)
		grown[best.group.Name] = true
		pods = p.grow(best, pods, grown)
	}
	for _, pod := range pods {
		p.Helpless = append(p.Helpless, Verdict{pod.Object, p.whyNot(pod)})
	}
}

// option is a group that could grow, and what that would bring.
type option struct {
	group *Group
	nodes int
	pods  []*simulate.Pod
	waste float64 // share of the new machines' processors and memory that stays free
}

// room is how many machines a group may get.
func (p *planner) room(g *Group) int {
	room := min(g.Max-p.groupTotal[g.Name], maxGroup)
	if p.o.MaxNodesTotal > 0 {
		room = min(room, p.o.MaxNodesTotal-p.total)
	}
	return max(room, 0)
}

func (p *planner) options(pods []*simulate.Pod, grown map[string]bool) []option {
	var list []option
	for i := range p.obs.Groups {
		g := &p.obs.Groups[i]
		if g.Held != "" || g.Template == nil || grown[g.Name] || p.room(g) == 0 {
			continue
		}
		if o := p.try(g, pods); o.nodes > 0 {
			list = append(list, o)
		}
	}
	return list
}

// try grows the group in the simulation, and takes it all back.
func (p *planner) try(g *Group, pods []*simulate.Pod) option {
	nodes, placed := p.pack(g, pods, p.room(g))
	free, all := [2]float64{}, [2]float64{}
	for _, n := range nodes {
		for i, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			free[i] += float64(n.Free(name))
			all[i] += float64(n.Allocatable[name])
		}
		p.cluster.Drop(n)
	}
	o := option{group: g, nodes: len(nodes), pods: placed}
	for i := range all {
		if all[i] > 0 {
			o.waste += free[i] / all[i] / 2
		}
	}
	return o
}

// pack puts pods on as few new machines of the group as first fit needs.
func (p *planner) pack(g *Group, pods []*simulate.Pod, room int) (nodes []*simulate.Node, placed []*simulate.Pod) {
	for _, pod := range pods {
		if simulate.Suits(pod, g.Template) != nil {
			continue
		}
		i := slices.IndexFunc(nodes, func(n *simulate.Node) bool { return p.cluster.Fits(pod, n) == nil })
		if i >= 0 {
			p.cluster.Place(pod, nodes[i])
			placed = append(placed, pod)
			continue
		}
		if len(nodes) >= room {
			continue
		}
		n := p.addNode(g)
		if p.cluster.Fits(pod, n) != nil {
			p.cluster.Drop(n)
			continue
		}
		p.cluster.Place(pod, n)
		nodes, placed = append(nodes, n), append(placed, pod)
	}
	return nodes, placed
}

// expand chooses by the expanders in their order; what they leave undecided goes to the first group by name.
func (p *planner) expand(list []option) option {
	slices.SortFunc(list, func(a, b option) int { return cmp.Compare(a.group.Name, b.group.Name) })
	for _, e := range p.o.Expanders {
		switch e {
		case Priority:
			list = best(list, func(o option) float64 { return -float64(p.priority(o.group.Name)) })
		case LeastWaste:
			list = best(list, func(o option) float64 { return o.waste })
		case Random:
			i := p.choose(len(list))
			list = list[i : i+1]
		}
	}
	return list[0]
}

// priority that the user has given a group; the lowest of all when there is none.
func (p *planner) priority(name string) int {
	found := math.MinInt32
	for _, preference := range p.obs.Priorities {
		for _, pattern := range preference.Names {
			if pattern.MatchString(name) {
				found = max(found, preference.Priority)
			}
		}
	}
	return found
}

// best keeps the options with the lowest score.
func best(list []option, score func(option) float64) []option {
	least := math.Inf(1)
	for _, o := range list {
		least = min(least, score(o))
	}
	return slices.DeleteFunc(slices.Clone(list), func(o option) bool { return score(o) > least+1e-9 })
}

// grow decides for an option, and returns the pods that are still without a place. Groups that are alike share the machines.
func (p *planner) grow(o option, pods []*simulate.Pod, grown map[string]bool) []*simulate.Pod {
	_, placed := p.pack(o.group, pods, o.nodes)
	p.waits = true
	shares := map[*Group]int{o.group: 0}
	if p.o.Balance {
		for i := range p.obs.Groups {
			if g := &p.obs.Groups[i]; g != o.group && p.shares(o, g, grown) {
				shares[g] = 0
			}
		}
	}
	for range o.nodes {
		var next *Group
		for i := range p.obs.Groups {
			g := &p.obs.Groups[i]
			if _, ok := shares[g]; ok && p.room(g) > 0 && (next == nil || p.groupTotal[g.Name] < p.groupTotal[next.Name]) {
				next = g
			}
		}
		if next == nil {
			break
		}
		shares[next]++
		p.groupTotal[next.Name]++
		p.total++
	}
	for i := range p.obs.Groups {
		g := &p.obs.Groups[i]
		if n := shares[g]; n > 0 {
			grown[g.Name] = true
			growth := Growth{Group: g, From: g.Replicas, To: g.Replicas + n, Reason: fmt.Sprintf("%d pods fit on no node, %d of them on %d new machines", len(pods), len(placed), o.nodes)}
			for _, pod := range placed {
				growth.Pods = append(growth.Pods, pod.Object)
			}
			p.Grow = append(p.Grow, growth)
			p.Notes[g.Name] = fmt.Sprintf("growing from %d to %d machines: %s", growth.From, growth.To, growth.Reason)
		}
	}
	return slices.DeleteFunc(slices.Clone(pods), func(pod *simulate.Pod) bool { return slices.Contains(placed, pod) })
}

// shares tells whether a group may take a share of what the option's group would get.
func (p *planner) shares(o option, g *Group, grown map[string]bool) bool {
	if g.Held != "" || g.Template == nil || grown[g.Name] || p.room(g) == 0 || !p.similar(o.group.Template, g.Template) {
		return false
	}
	return !slices.ContainsFunc(o.pods, func(pod *simulate.Pod) bool { return simulate.Suits(pod, g.Template) != nil })
}

// whyNot says why no group can help a pod.
func (p *planner) whyNot(pod *simulate.Pod) string {
	if len(p.obs.Groups) == 0 {
		return "no NodePool has autoScaling"
	}
	var list []string
	for i := range p.obs.Groups {
		g := &p.obs.Groups[i]
		var why string
		switch {
		case g.Held != "":
			why = g.Held
		case g.Template == nil:
			why = g.Unknown
		case p.groupTotal[g.Name] >= g.Max:
			why = fmt.Sprintf("has its maximum of %d machines", g.Max)
		case p.room(g) == 0:
			why = fmt.Sprintf("spec.autoscaling.maxNodesTotal, which is %d, is reached", p.o.MaxNodesTotal)
		default:
			n := p.addNode(g)
			if m := p.cluster.Fits(pod, n); m != nil {
				why = "would not fit on a new machine: " + m.String()
			} else {
				why = "waits for the machines that were just asked for"
			}
			p.cluster.Drop(n)
		}
		if len(list) < maxReasons {
			list = append(list, g.Name+": "+why)
		}
	}
	return join(list, len(p.obs.Groups))
}
