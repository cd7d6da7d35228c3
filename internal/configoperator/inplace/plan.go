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
}

// current is the version that the node has: what it reports, and what it was made with as long as it never reported.
func (m Machine) current() string { return cmp.Or(m.Current, m.Born) }

// desired is the version that the node was told to have.
func (m Machine) desired() string { return cmp.Or(m.Desired, m.current()) }

func (m Machine) updating() bool { return m.current() != m.desired() }

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

// planFor never lets more than MaxUnavailable nodes be told something else than they have, except those that were before.
func planFor(obs Observed) Plan {
	switch {
	case obs.Target == "" || obs.Target == obs.Current:
		return Plan{}
	case !obs.Payload:
		return Plan{True: say("waiting for the configuration of version %s", obs.Target), Recheck: payloadPoll}
	}
	slices.SortFunc(obs.Machines, func(a, b Machine) int { return cmp.Compare(a.Name, b.Name) })
	total, done, joining := count(obs)
	plan := Plan{Recheck: poll}
	for _, m := range obs.Machines {
		if m.Node != "" && m.done(obs.Target) && m.Version != obs.Version && obs.Version != "" {
			plan.Mark = append(plan.Mark, m.Name)
		}
	}
	if done == total && joining == 0 {
		plan.Complete, plan.Recheck = true, 0
		return plan
	}
	plan.Objects = true
	for _, m := range obs.Machines {
		if m.Node != "" && !m.Leaving && m.State == stateDegraded && m.desired() == obs.Target {
			plan.False = say("Node %s in nodepool degraded: %s", m.Node, m.Reason)
		}
	}
	if plan.False == nil {
		plan.True = say("Upgrade in progress. Total Nodes: %d. Upgraded: %d%s", total, done, blocked(obs))
		plan.SetDesired = pick(obs)
	}
	plan.CreatePods, plan.DeletePods = pods(obs, plan.SetDesired)
	return plan
}

// blocked names the nodes on which nothing can be done as long as pods may not leave.
func blocked(obs Observed) string {
	text := ""
	for _, m := range obs.Machines {
		if m.Blocked != "" && !m.Leaving && m.desired() == obs.Target {
			text += fmt.Sprintf("; Node %s can't be drained: %s", m.Node, m.Blocked)
		}
	}
	return text
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

// pick chooses nodes to be told the target: those that were told something obsolete, and as many others as may be unavailable.
func pick(obs Observed) []string {
	var chosen, idle []string
	under := 0
	for _, m := range obs.Machines {
		if m.Node == "" || m.Leaving {
			continue
		}
		switch {
		case m.updating():
			under++
			if m.desired() != obs.Target {
				chosen = append(chosen, m.Node)
			}
		case m.desired() != obs.Target:
			idle = append(idle, m.Node)
		case !m.done(obs.Target):
			under++ // it has the files and is not back at work yet
		}
	}
	capacity := max(obs.MaxUnavailable, 1) - under
	return append(chosen, idle[:max(0, min(capacity, len(idle)))]...)
}

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
