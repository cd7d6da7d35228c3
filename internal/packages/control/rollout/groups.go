package rollout

import (
	"cmp"
	"slices"
)

// group is clusters that are finished before the next group starts.
type group struct {
	name    string
	members []*member // those that are ready first, by namespace and name of the cluster
}

// member is a cluster with what is there for it.
type member struct {
	Cluster
	pkg      Package
	missing  bool
	inFlight bool
	refused  string // why it could not be written; empty when it may be tried
}

// counts tells that it uses the budget: it is being changed, or not known to be up, whatever the reason and whether or not its cluster is Available.
func (x *member) counts() bool {
	return !x.Asleep && x.inFlight || !x.out() && (x.missing || !x.pkg.Available)
}

// out tells that nothing is expected of it now: it leaves, sleeps, or has no Package and gets none.
func (x *member) out() bool { return x.Leaving || x.Asleep || x.absent() }

// sleeps tells that its cluster sleeps, and that its Package gets the template, or gets on with it, when that wakes.
func (x *member) sleeps() bool {
	return x.Asleep && !x.Leaving && !x.missing && (!x.pkg.Current || x.inFlight)
}

// absent tells that it has no Package, and that none is made now: it may be installed for hours yet, or for ever, and nothing of ours can be wrong there.
func (x *member) absent() bool { return x.missing && x.Unready != "" }

// done tells that nobody has to wait for it.
func (x *member) done() bool { return x.out() || !x.missing && x.pkg.done() }

// open tells that its Package can be written.
func (x *member) open() bool { return !x.Leaving && !x.Closed && !x.missing }

// arrange puts clusters into groups in the order of the rollout. Groups without members are left out.
func arrange(in Observed, processing map[string]bool) []group {
	byName := map[string][]*member{}
	all := make([]member, len(in.Clusters))
	for i, c := range in.Clusters {
		name := groupOf(in.Settings, c.Label)
		p, ok := in.Packages[c.Namespace]
		all[i] = member{Cluster: c, pkg: p, missing: !ok, inFlight: ok && processing[c.Namespace], refused: in.Refused[c.Namespace]}
		byName[name] = append(byName[name], &all[i])
	}
	var out []group
	for _, name := range order(in.Settings, byName) {
		members := byName[name]
		if len(members) == 0 {
			continue
		}
		slices.SortFunc(members, func(a, b *member) int {
			return cmp.Or(cmp.Compare(one(a.Unready != ""), one(b.Unready != "")), cmp.Compare(a.Name.Namespace, b.Name.Namespace), cmp.Compare(a.Name.Name, b.Name.Name))
		})
		out = append(out, group{name, members})
	}
	return out
}

// groupOf is the group of a cluster whose label has a value. The implicit group has the empty name in here, for a label may well have
// the value that we show for it.
func groupOf(s Settings, label string) string {
	if !s.Partitioned || label == "" || label == "*" {
		return ""
	}
	if s.Static != nil && !slices.Contains(s.Static, label) {
		return ""
	}
	return label
}

func order[T any](s Settings, groups map[string]T) []string {
	if s.Static == nil {
		var names []string
		for name := range groups {
			if name != "" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return append(names, "")
	}
	var names []string
	for _, name := range s.Static {
		if name == "*" {
			name = ""
		}
		names = append(names, name)
	}
	if !slices.Contains(names, "") {
		names = append(names, "")
	}
	return names
}

// shown is the name of a group for people and for status.
func shown(name string) string {
	if name == "" {
		return Unknown
	}
	return name
}
