package teardown

import (
	"fmt"
	"slices"
	"strings"
)

// Observed is what was found on the machine.
type Observed struct {
	StateDir  string
	Processes []Process
	Mounts    []string // all mount points of the machine, in the order in which they were mounted
	Links     []Link
	Tables    []string // nftables tables as "family name"
	Files     []string // leftovers outside of the state folder that name it
	Groups    int      // control groups
	StateDirs []string // of StateDir, those that exist: none or one
	Ours      bool     // it is known already that local mode was here
}

// Process is a process in the control group of local mode.
type Process struct {
	PID  int
	Name string
}

// Link is a network link.
type Link struct {
	Name   string
	Master string
}

// Plan is what to remove. Each list is in the order in which it must happen.
type Plan struct {
	Kill    []Process
	Unmount []string
	Links   []string
	Tables  []string
	Files   []string
	Groups  bool
	State   string
}

// Names that local mode owns, apart from what hangs on them.
type Names struct {
	Bridge string
	Tables []string // names without family
	Shared []string // names without family of tables that others make, too, such as kube-proxy of a node of somebody else's cluster
	Self   int      // PID that must not be killed: the caller may have been started inside the group
}

// ours tells whether anything was found that only local mode makes.
func (o Observed) ours(n Names) bool {
	return o.Ours || len(o.Processes) > 0 || o.Groups > 0 ||
		slices.ContainsFunc(o.Links, func(l Link) bool { return l.Name == n.Bridge }) ||
		slices.ContainsFunc(o.Tables, func(t string) bool { return slices.Contains(n.Tables, tableName(t)) })
}

// tableName is the name in "family name".
func tableName(table string) string {
	_, name, _ := strings.Cut(table, " ")
	return name
}

// planFor never names a mount outside of the state folder, a link that is neither the bridge nor on it, or another table. A shared table it names only beside
// something that is local mode's own.
func planFor(o Observed, n Names) Plan {
	p := Plan{Groups: o.Groups > 0, Files: slices.Sorted(slices.Values(o.Files))}
	for _, proc := range o.Processes {
		if proc.PID != n.Self && proc.PID > 1 {
			p.Kill = append(p.Kill, proc)
		}
	}
	prefix := strings.TrimSuffix(o.StateDir, "/") + "/"
	for _, m := range o.Mounts {
		if o.StateDir != "" && o.StateDir != "/" && strings.HasPrefix(m, prefix) {
			p.Unmount = append(p.Unmount, m)
		}
	}
	slices.Reverse(p.Unmount) // what was mounted last is on top
	bridge := false
	for _, l := range o.Links {
		switch {
		case l.Name == n.Bridge:
			bridge = true
		case l.Master == n.Bridge:
			p.Links = append(p.Links, l.Name)
		}
	}
	slices.Sort(p.Links)
	if bridge {
		p.Links = append(p.Links, n.Bridge) // its routes and address go with it
	}
	mine := n.Tables
	if o.ours(n) {
		mine = slices.Concat(n.Tables, n.Shared)
	}
	for _, t := range o.Tables {
		if slices.Contains(mine, tableName(t)) {
			p.Tables = append(p.Tables, t)
		}
	}
	slices.Sort(p.Tables)
	if len(o.StateDirs) > 0 {
		p.State = o.StateDir
	}
	return p
}

// Empty tells that there is nothing to remove.
func (p Plan) Empty() bool {
	return len(p.Kill)+len(p.Unmount)+len(p.Links)+len(p.Tables)+len(p.Files) == 0 && !p.Groups && p.State == ""
}

// Summary says in a few lines what the plan removes.
func (p Plan) Summary() []string {
	var out []string
	count := func(n int, what string, names []string) {
		if n == 0 {
			return
		}
		line := fmt.Sprintf("%d %s", n, what)
		const few = 8
		if len(names) > 0 && len(names) <= few {
			line += ": " + strings.Join(names, ", ")
		}
		out = append(out, line)
	}
	names := map[string]int{}
	for _, k := range p.Kill {
		names[k.Name]++
	}
	var kinds []string
	for name, n := range names {
		kinds = append(kinds, fmt.Sprintf("%d %s", n, name))
	}
	slices.Sort(kinds)
	count(len(p.Kill), "process(es)", kinds)
	count(len(p.Unmount), "mount(s)", nil)
	count(len(p.Links), "network link(s)", p.Links)
	count(len(p.Tables), "packet filter table(s)", p.Tables)
	count(len(p.Files), "file(s) outside of the state folder", nil)
	if p.Groups {
		out = append(out, "the control groups")
	}
	if p.State != "" {
		out = append(out, "the state folder "+p.State)
	}
	return out
}
