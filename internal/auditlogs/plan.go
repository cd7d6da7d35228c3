package auditlogs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/contract/auditlogs"
)

// maxAbandoned is how many claims of Pods that are gone are kept per control plane, the newest. Those of one ReplicaSet go with it, so it is the bound for Pods
// that were evicted or deleted again and again.
const maxAbandoned = 10

// Pod is one of kube-apiserver.
type Pod struct {
	Name string
	// Owner is its ReplicaSet; nil: it has none.
	Owner *metav1.OwnerReference
	// Restarts of the container, and how many of them a snapshot was taken after, or none needed.
	Restarts, Seen int32
	// Last is when the last snapshot was taken.
	Last time.Time
}

// Claim is a claim of audit logs.
type Claim struct {
	Name    string
	Owners  []metav1.OwnerReference
	Created time.Time
	// Bound: it has a volume.
	Bound bool
}

// Snapshot is one of a claim.
type Snapshot struct {
	Name, Pod string
	Created   time.Time
}

// World is what is there of a control plane.
type World struct {
	Now       time.Time
	Pods      []Pod
	Claims    []Claim
	Snapshots []Snapshot
	// Settings of snapshots; nil: none are taken, and those that are there are left alone.
	Settings *Snapshots
}

// Plan is what to do, in this order.
type Plan struct {
	// Keep are owners that claims get beside their Pods, by the name of the claim.
	Keep map[string]metav1.OwnerReference
	// Take are snapshots.
	Take []Shot
	// Drop are claims, and Prune snapshots, that nobody needs any more.
	Drop, Prune []string
	// Again is how long until a snapshot may be taken that is due; 0: none is.
	Again time.Duration
}

// Shot is a snapshot to take of a Pod's claim. Its name tells of which restart it is, so that it is taken once, however often we die on the way.
type Shot struct {
	Name, Claim, Pod string
	// Restarts is what the Pod has had then.
	Restarts int32
}

// Decide says what to do.
func Decide(w World) Plan {
	p := Plan{Keep: map[string]metav1.OwnerReference{}}
	claims, alive := map[string]Claim{}, map[string]bool{}
	for _, c := range w.Claims {
		claims[c.Name] = c
	}
	for _, pod := range w.Pods {
		name := auditlogs.Claim(pod.Name)
		alive[name] = true
		claim, ok := claims[name]
		if !ok {
			continue
		}
		if pod.Owner != nil && !owned(claim, pod.Owner.UID) {
			p.Keep[name] = *pod.Owner
		}
		p.shoot(w, pod, claim)
	}
	var left []Claim
	for _, c := range w.Claims {
		if !alive[c.Name] {
			left = append(left, c)
		}
	}
	slices.SortFunc(left, func(a, b Claim) int { return cmp.Or(b.Created.Compare(a.Created), strings.Compare(a.Name, b.Name)) })
	for _, c := range left[min(len(left), maxAbandoned):] {
		p.Drop = append(p.Drop, c.Name)
	}
	p.prune(w)
	return p
}

func owned[T ~string](c Claim, uid T) bool {
	return slices.ContainsFunc(c.Owners, func(o metav1.OwnerReference) bool { return string(o.UID) == string(uid) })
}

// shoot has a snapshot taken after a restart, as soon as the interval lets it.
func (p *Plan) shoot(w World, pod Pod, claim Claim) {
	if w.Settings == nil || pod.Restarts <= pod.Seen || !claim.Bound {
		return
	}
	if left := pod.Last.Add(w.Settings.Interval).Sub(w.Now); !pod.Last.IsZero() && left > 0 {
		if p.Again == 0 || left < p.Again {
			p.Again = left
		}
		return
	}
	p.Take = append(p.Take, Shot{Name: fmt.Sprintf("%s-snapshot-%d", claim.Name, pod.Restarts), Claim: claim.Name, Pod: pod.Name, Restarts: pod.Restarts})
}

// prune removes snapshots that are too many, the oldest first: of each Pod, and then of all.
func (p *Plan) prune(w World) {
	if w.Settings == nil {
		return
	}
	list := slices.SortedFunc(slices.Values(w.Snapshots), func(a, b Snapshot) int { return cmp.Or(b.Created.Compare(a.Created), strings.Compare(b.Name, a.Name)) })
	byPod, kept := map[string]int{}, 0
	for _, s := range list {
		if byPod[s.Pod] < w.Settings.PerPod && kept < w.Settings.PerControlPlane {
			byPod[s.Pod]++
			kept++
			continue
		}
		p.Prune = append(p.Prune, s.Name)
	}
}
