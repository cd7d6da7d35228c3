package etcdrecovery

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// minRestarts is how often a member must have been started again in vain. One that was only killed, or met a full disk for a moment, is
// back before that.
const minRestarts = 3

// Pod is a member's pod.
type Pod struct {
	Name     string
	Ready    bool
	Restarts int
	// Down says that etcd doesn't run in it now: it waits for its next start.
	Down bool
}

func (p Pod) failing() bool { return !p.Ready && p.Down && p.Restarts > 0 }

// Member is what the cluster has on its list.
type Member struct {
	ID      uint64
	Name    string // empty: added, but never started
	PeerURL string
	Healthy bool // it takes part in the quorum
}

// Observed is all that Decide may look at.
type Observed struct {
	// Replicas is how many members there should be.
	Replicas int
	Pods     []Pod
	// Members is what a quorum agreed on; ListErr says why there is no such list.
	Members []Member
	ListErr error
}

// Action is what to do next.
type Action string

const (
	// Done: every member is healthy.
	Done Action = "done"
	// Wait: look again soon.
	Wait Action = "wait"
	// Replace: delete the pod and its volume.
	Replace Action = "replace"
	// Refuse: nothing may be deleted.
	Refuse Action = "refuse"
)

// Decision is what Decide says.
type Decision struct {
	Action Action
	Pod    string // to replace
	Remove uint64 // the member to take out before; 0: the list doesn't have it (any more)
	Why    string
}

func refuse(format string, args ...any) Decision {
	return Decision{Action: Refuse, Why: fmt.Sprintf(format, args...)}
}

// Decide never says Replace unless the list comes from a quorum, exactly one pod fails, and every other replica is ready and takes part in
// the quorum; so the cluster keeps its quorum, and every acknowledged write is on the others.
func Decide(obs Observed) Decision {
	if obs.Replicas < 3 {
		return refuse("there are %d members: without the failing one there would be no quorum", obs.Replicas)
	}
	if obs.ListErr != nil {
		return refuse("the members can't be read from a quorum: %v", obs.ListErr)
	}
	var failing []Pod
	for _, p := range obs.Pods {
		if p.failing() {
			failing = append(failing, p)
		}
	}
	switch {
	case len(failing) > 1:
		return refuse("%d members fail: %s; the data of either may be the last", len(failing), names(failing))
	case len(failing) == 0 && complete(obs):
		return Decision{Action: Done, Why: fmt.Sprintf("all %d members are healthy", obs.Replicas)}
	case len(failing) == 0:
		return Decision{Action: Wait, Why: "no member crashes, but not all are healthy yet"}
	}
	target := failing[0]
	if why := othersLack(obs, target); why != "" {
		return refuse("%s fails, and %s", target.Name, why)
	}
	if target.Restarts < minRestarts {
		return Decision{Action: Wait, Why: fmt.Sprintf("%s was started again %d times in vain, %d are waited for", target.Name, target.Restarts, minRestarts)}
	}
	d := Decision{Action: Replace, Pod: target.Name, Why: target.Name + " fails, and all others are healthy"}
	if i := slices.IndexFunc(obs.Members, func(m Member) bool { return m.of(target.Name) }); i >= 0 {
		d.Remove = obs.Members[i].ID
	}
	return d
}

// of says whether a member is that of a pod. One that never started has no name, but the address that it was added with.
func (m Member) of(pod string) bool {
	if m.Name != "" {
		return m.Name == pod
	}
	u, err := url.Parse(m.PeerURL)
	return err == nil && strings.HasPrefix(u.Hostname(), pod+".")
}

// othersLack says why the other members can't stand in for target; empty when they can.
func othersLack(obs Observed, target Pod) string {
	for _, p := range obs.Pods {
		if p.Name != target.Name && !p.Ready {
			return p.Name + " isn't ready either"
		}
	}
	healthy, total := 0, 0
	for _, m := range obs.Members {
		total++
		switch {
		case m.of(target.Name):
		case !slices.ContainsFunc(obs.Pods, func(p Pod) bool { return m.of(p.Name) }):
			return fmt.Sprintf("member %x (%s) is of no pod here", m.ID, m.Name)
		case !m.Healthy:
			return fmt.Sprintf("member %s takes no part in the quorum", m.Name)
		default:
			healthy++
		}
	}
	if healthy != obs.Replicas-1 || healthy < total/2+1 {
		return fmt.Sprintf("of %d other members %d are healthy", obs.Replicas-1, healthy)
	}
	return ""
}

// complete says whether nothing is missing.
func complete(obs Observed) bool {
	return len(obs.Pods) == obs.Replicas && len(obs.Members) == obs.Replicas &&
		!slices.ContainsFunc(obs.Pods, func(p Pod) bool { return !p.Ready }) &&
		!slices.ContainsFunc(obs.Members, func(m Member) bool { return !m.Healthy })
}

func names(pods []Pod) string {
	var list []string
	for _, p := range pods {
		list = append(list, p.Name)
	}
	return strings.Join(list, ", ")
}
