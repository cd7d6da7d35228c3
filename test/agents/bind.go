package agents

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// Claim is a machine that waits for a host.
type Claim struct {
	// Machine is unique.
	Machine  string
	Selector labels.Selector
	// Since is when it began to wait.
	Since time.Time
}

// Host is one that could become a machine.
type Host struct {
	Name   string
	Labels labels.Set
	// Free is one that somebody has approved, and that is nobody's.
	Free bool
}

// Bind gives hosts to machines, by the names of both. Who waits longest chooses first, and takes the first host by name that its selector matches. A machine
// without one in the result finds none.
func Bind(claims []Claim, hosts []Host) map[string]string {
	claims, hosts = slices.Clone(claims), slices.Clone(hosts)
	slices.SortFunc(claims, func(a, b Claim) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Machine, b.Machine)) })
	slices.SortFunc(hosts, func(a, b Host) int { return cmp.Compare(a.Name, b.Name) })
	bound := map[string]string{}
	for _, c := range claims {
		i := slices.IndexFunc(hosts, func(h Host) bool { return h.Free && c.Selector.Matches(h.Labels) })
		if i >= 0 {
			bound[c.Machine], hosts[i].Free = hosts[i].Name, false
		}
	}
	return bound
}
