package inplace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Machine is a machine of the set with what is known of its node.
type Machine struct {
	Name    string
	Leaving bool
	// Born is the version that the node was made with, by its label. The Machine doesn't know: Cluster API gives it the newest user data
	// of its MachineSet, whatever it was made with. Empty: nobody knows, and it isn't the target.
	Born string
	// Version of the release that the Machine is marked with.
	Version string
	// Node is empty until the machine has joined.
	Node string

	// What the node says, and what it was told.
	Current, Desired, State, Reason string
	// Blocked is what forbids its drain.
	Blocked string
	// Ready tells that the node's kubelet is heard of, and says that pods run there.
	Ready bool
}

// current is the version that the node has: what it reports, and what it was made with as long as it never reported.
func (m Machine) current() string { return cmp.Or(m.Current, m.Born) }

// desired is the version that the node was told to have.
func (m Machine) desired() string { return cmp.Or(m.Desired, m.current()) }

func (m Machine) updating() bool { return m.current() != m.desired() }

// underWay tells whether the node was told something else than it has, or has the target and isn't back at work yet.
func (m Machine) underWay(target string) bool {
	return m.updating() || m.desired() == target && !m.done(target)
}

// done reports whether the machine is at a version and at rest.
func (m Machine) done(version string) bool {
	if m.current() != version || m.desired() != version {
		return false
	}
	return m.State == stateDone || m.State == "" && m.Current == "" // made with it and never changed
}

// Observed is everything that the decision may look at.
type Observed struct {
	Target, Current string
	MaxUnavailable  int
	// Payload says whether the configuration of the target is there; Version is the release that it belongs to.
	Payload  bool
	Version  string
	Machines []Machine
	// Pods are the phases of daemons by node.
	Pods map[string]corev1.PodPhase
	// True and False are the progress annotations as they are.
	True, False *string
	// Held says why no other node is to be begun; empty: nothing holds. HeldFor is when that ends by itself; 0: a change ends it.
	Held    string
	HeldFor time.Duration
	// DrainTimeout is how long a drain may last; 0: for ever.
	DrainTimeout time.Duration
}

// Plan says what to do. The zero Plan does nothing.
type Plan struct {
	SetDesired []string // nodes that are told the target
	Objects    bool     // the namespace and Secret must be there
	CreatePods []string // nodes that get a daemon
	DeletePods []string // nodes whose daemon goes
	Mark       []string // Machines that get the version of the release

	Complete    bool // every machine is at the target: clean up and say so
	True, False *string
	Recheck     time.Duration
}

// planFor never lets more than MaxUnavailable nodes be told something else than they have, except those that were before. It begins none while something
// holds, and none that works while as many are under way or not ready: then another one would be missed.
func planFor(obs Observed) Plan {
	switch {
	case obs.Target == "" || obs.Target == obs.Current:
		return Plan{}
	case !obs.Payload:
		return Plan{True: say("waiting for the configuration of version %s", obs.Target), Recheck: payloadPoll}
	}
	slices.SortFunc(obs.Machines, func(a, b Machine) int { return cmp.Compare(a.Name, b.Name) })
	total, done, joining := count(obs)
	plan := Plan{Recheck: recheck(obs)}
	for _, m := range obs.Machines {
		if m.Node != "" && m.done(obs.Target) && m.Version != obs.Version && obs.Version != "" {
			plan.Mark = append(plan.Mark, m.Name)
		}
	}
	if done == total && joining == 0 {
		plan.Complete, plan.Recheck = true, 0
		return plan
	}
	plan.Objects = obs.Held == "" || busy(obs)
	for _, m := range obs.Machines {
		if m.Node != "" && !m.Leaving && m.State == stateDegraded && m.desired() == obs.Target {
			plan.False = say("Node %s in nodepool degraded: %s", m.Node, m.Reason)
		}
	}
	if plan.False == nil {
		plan.True = say("Upgrade in progress. Total Nodes: %d. Upgraded: %d%s", total, done, blocked(obs)+unready(obs)+outside(obs)+held(obs))
		plan.SetDesired = pick(obs)
	}
	plan.CreatePods, plan.DeletePods = pods(obs, plan.SetDesired)
	return plan
}

// blocked names the nodes on which nothing can be done as long as pods may not leave, and what ends that.
func blocked(obs Observed) string {
	text := ""
	for _, m := range obs.Machines {
		if m.Blocked != "" && !m.Leaving && m.desired() == obs.Target {
			text += fmt.Sprintf("; Node %s can't be drained: %s", m.Node, m.Blocked)
		}
	}
	switch {
	case text == "":
	case obs.DrainTimeout > 0:
		text += fmt.Sprintf("; a node that has drained for %s (spec.nodeDrainTimeout) is changed with the pods that are left", obs.DrainTimeout)
	default:
		text += "; make the pods satisfy their PodDisruptionBudgets (more replicas, or another budget), or limit the wait with spec.nodeDrainTimeout of the NodePool"
	}
	return text
}

// unready names the nodes that aren't ready: a rollout may have to wait for one of them, and a daemon can't start there.
func unready(obs Observed) string {
	var list []string
	for _, m := range obs.Machines {
		if m.Node != "" && !m.Leaving && !m.Ready {
			list = append(list, "Node "+m.Node)
		}
	}
	return some("; not ready: ", list)
}

// outside names the machines that have yet to join: the change isn't complete before their nodes tell what they have.
func outside(obs Observed) string {
	var list []string
	for _, m := range obs.Machines {
		if m.Node == "" && !m.Leaving {
			list = append(list, "Machine "+m.Name)
		}
	}
	return some("; not joined yet: ", list)
}

// some is a list with what is before it, and at most maxNamed of its entries; nothing for none.
func some(before string, list []string) string {
	if len(list) == 0 {
		return ""
	}
	if more := len(list) - maxNamed; more > 0 {
		list = append(list[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return before + strings.Join(list, ", ")
}

func held(obs Observed) string {
	if obs.Held == "" {
		return ""
	}
	return "; no other node is begun: " + obs.Held
}

// busy tells whether a node is under way.
func busy(obs Observed) bool {
	return slices.ContainsFunc(obs.Machines, func(m Machine) bool { return m.Node != "" && !m.Leaving && m.underWay(obs.Target) })
}

// recheck is when an upgrade that isn't complete is looked at again. Nodes under way are looked after whatever holds.
func recheck(obs Observed) time.Duration {
	switch {
	case obs.Held == "":
		return poll
	case !busy(obs):
		return obs.HeldFor
	case obs.HeldFor > 0:
		return min(poll, obs.HeldFor)
	}
	return poll
}

func say(format string, args ...any) *string {
	text := fmt.Sprintf(format, args...)
	return &text
}

// count counts nodes, those at the target, and machines that have yet to join: with what, only their nodes will tell.
func count(obs Observed) (total, done, joining int) {
	for _, m := range obs.Machines {
		switch {
		case m.Leaving:
		case m.Node == "":
			joining++
		default:
			total++
			if m.done(obs.Target) {
				done++
			}
		}
	}
	return total, done, joining
}

// pick chooses nodes to be told the target: those that were told something obsolete, and as many others as may be unavailable. A node that isn't ready
// is unavailable already, told or not, so it is told before one that works: what it is told may be what mends it.
func pick(obs Observed) []string {
	var chosen, away, idle []string
	under, lost := 0, 0
	for _, m := range obs.Machines {
		if m.Node == "" || m.Leaving {
			continue
		}
		switch {
		case m.underWay(obs.Target):
			under++
			if m.desired() != obs.Target {
				chosen = append(chosen, m.Node)
			}
		case m.desired() != obs.Target && m.Ready:
			idle = append(idle, m.Node)
		case m.desired() != obs.Target:
			away = append(away, m.Node)
		case !m.Ready:
			lost++ // it is done, and not at work all the same
		}
	}
	if obs.Held != "" {
		return chosen
	}
	room := max(obs.MaxUnavailable, 1) - under
	chosen = append(chosen, first(away, room)...)
	return append(chosen, first(idle, room-len(away)-lost)...)
}

// first are the first n of a list, or fewer.
func first(list []string, n int) []string { return list[:max(0, min(n, len(list)))] }

// pods gives every node that is on its way a daemon. One that ended is removed first, and made again by the next pass.
func pods(obs Observed, told []string) (create, remove []string) {
	wanted := map[string]bool{}
	for _, m := range obs.Machines {
		if m.Node == "" || m.Leaving {
			continue
		}
		target := m.desired() == obs.Target || slices.Contains(told, m.Node)
		wanted[m.Node] = target && !m.done(obs.Target)
	}
	for node := range obs.Pods {
		if !wanted[node] || obs.Pods[node] == corev1.PodSucceeded || obs.Pods[node] == corev1.PodFailed {
			remove = append(remove, node)
		}
	}
	for node, want := range wanted {
		if _, there := obs.Pods[node]; want && !there {
			create = append(create, node)
		}
	}
	slices.Sort(create)
	slices.Sort(remove)
	return create, remove
}

// drainOf reads what a node asks for: whether to drain it, or to let pods in again. ok is false when it asks for nothing that
// has not been done.
func drainOf(annotations map[string]string) (drain, ok bool) {
	want := annotations[desiredDrain]
	if want == "" || want == annotations[lastAppliedDrain] {
		return false, false
	}
	switch {
	case strings.HasPrefix(want, drainPrefix):
		return true, true
	case strings.HasPrefix(want, uncordonPrefix):
		return false, true
	default:
		return false, false
	}
}

// evictable chooses the pods that a drain has to wait for. Pods of DaemonSets come back at once, those of files go with the
// machine, those that ended use nothing; and the daemon that asked for the drain stays.
func evictable(pod *corev1.Pod, node string, ready bool, now time.Time) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return false
	}
	if strings.HasSuffix(pod.Namespace, "-upgrade") && pod.Name == daemonPrefix+node {
		return false
	}
	for _, owner := range pod.OwnerReferences {
		if owner.Kind == "DaemonSet" && owner.Controller != nil && *owner.Controller {
			return false
		}
	}
	if !pod.DeletionTimestamp.IsZero() && !ready && now.Sub(pod.DeletionTimestamp.Time) > stuckAfter {
		return false
	}
	return true
}
