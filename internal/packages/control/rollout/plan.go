package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

// Make decides what to do next. It depends on nothing but its arguments, and not on the order of lists in them.
func Make(in Observed, now time.Time) Plan {
	m := maker{in: in, now: now}
	m.keepProcessing()
	m.groups = arrange(in, m.processing)
	m.plan.Budget = in.Settings.MaxUnavailable
	m.plan.Used = m.down()
	m.plan.After = m.plan.Used
	m.current = m.findCurrent()
	// Of clusters that sleep nobody knows whether they can live with the template, so that it is none to return to while all of them do.
	awake := m.any(func(x *member) bool { return !x.out() })
	m.plan.Finished = awake && m.current == len(m.groups)
	m.plan.Sleeps = !awake && m.any((*member).sleeps)
	m.decide()
	m.remove()
	m.writeProcessing()
	m.plan.Status = m.status()
	return m.plan
}

// any tells that there is such a member.
func (m *maker) any(is func(*member) bool) bool {
	return slices.ContainsFunc(m.groups, func(g group) bool { return slices.ContainsFunc(g.members, is) })
}

// fewRemovals go without a question.
const fewRemovals = 2

// remove takes away the Packages of clusters that are gone or not selected any more. A mistake in a selector would take the package from the whole fleet:
// when more than half of all Packages would go, and more than a few, they are kept until somebody confirms how many.
func (m *maker) remove() {
	orphans := slices.Clone(m.in.Orphans)
	slices.SortFunc(orphans, func(a, b Package) int { return cmp.Compare(a.Namespace, b.Namespace) })
	deselected := 0
	for _, p := range orphans {
		deselected += int(one(p.Deselected))
	}
	hold := deselected > max(fewRemovals, m.in.Settings.Options.Remove) && deselected > len(m.in.Packages)
	for _, p := range orphans {
		if p.Deselected && hold {
			m.plan.Kept = append(m.plan.Kept, p)
		} else {
			m.plan.Delete = append(m.plan.Delete, p)
		}
	}
}

type maker struct {
	in         Observed
	now        time.Time
	processing map[string]bool // by namespace
	groups     []group
	current    int // index of the group that is worked on; len(groups) when none is
	soaking    time.Duration
	free       int // Packages that may still be taken down
	plan       Plan
}

// keepProcessing sorts old entries into those that are in flight and those that seem finished.
func (m *maker) keepProcessing() {
	m.processing = map[string]bool{}
	staying := map[string]bool{}
	for _, c := range m.in.Clusters {
		staying[c.Namespace] = !c.Leaving
	}
	for _, ref := range m.in.Processing {
		p, ok := m.in.Packages[ref.Namespace]
		switch {
		case !staying[ref.Namespace]:
			// A cluster that left takes its Package along, and its slot is free.
		case ok && p.UID == ref.UID && !p.settled():
			m.processing[ref.Namespace] = true
		default:
			m.plan.Dropped = append(m.plan.Dropped, ref)
		}
	}
}

// down counts what uses the budget: what is unavailable, what is in flight, and what is yet to be made.
func (m *maker) down() int {
	n := 0
	for _, g := range m.groups {
		for _, x := range g.members {
			if x.counts() {
				n++
			}
		}
	}
	return n
}

// findCurrent is the first group that isn't done, or that was done too short a time ago.
func (m *maker) findCurrent() int {
	done := func(g group) bool { return !slices.ContainsFunc(g.members, func(x *member) bool { return !x.done() }) }
	first := slices.IndexFunc(m.groups, func(g group) bool { return !done(g) })
	if first < 0 {
		return len(m.groups)
	}
	if m.in.Settings.Options.Soak > 0 {
		last, since := rested(m.groups[:first])
		if left := m.in.Settings.Options.Soak - m.now.Sub(since); last >= 0 && left > 0 && m.soakable(m.groups[first]) {
			m.soaking, m.plan.Soaks = left, true
			m.again(left)
			return last
		}
	}
	return first
}

// rested is when the last of some groups came to rest, and the index of the last of them that has anybody who did: those that sleep, leave or have no
// Package have proven nothing, and must not end the time of those before them. -1 is none.
func rested(groups []group) (last int, since time.Time) {
	last = -1
	for i, g := range groups {
		at := settled(g)
		if !at.IsZero() {
			last = i
		}
		if at.After(since) {
			since = at
		}
	}
	return last, since
}

// soakable tells that a group waits for a change, and is not merely down or new on the version that it should have.
func (m *maker) soakable(g group) bool {
	return slices.ContainsFunc(g.members, func(x *member) bool { return x.open() && !x.pkg.Current })
}

// settled is when the last member of a group came to rest.
func settled(g group) time.Time {
	var last time.Time
	for _, x := range g.members {
		for _, t := range []time.Time{x.pkg.AppliedAt, x.pkg.SettledAt} {
			if !x.Leaving && !x.Asleep && t.After(last) {
				last = t
			}
		}
	}
	return last
}

// again asks for another pass after d, at the latest.
func (m *maker) again(d time.Duration) {
	if m.plan.Again == 0 || d < m.plan.Again {
		m.plan.Again = d
	}
}

func (m *maker) unlimited() bool { return m.in.Settings.MaxUnavailable == Unlimited }

// decide goes through all members: first those that are down, for changing them takes nobody down; then those that have a slot, as long as no more
// are counted than may be; and then those that are up and at rest, as far as free slots go.
func (m *maker) decide() {
	m.free = max(0, m.in.Settings.MaxUnavailable-m.plan.Used)
	for i, g := range m.groups {
		returning := m.returning(i, g)
		var down, held, up []Change
		for _, x := range g.members {
			d := m.judge(i, x, returning)
			if d.Action != Return {
				m.relabel(x)
			}
			switch {
			case d.Action == Create:
				m.plan.Create = append(m.plan.Create, change(x, Template))
			case d.Action != Update && d.Action != Return:
			case x.pkg.down():
				c := change(x, version(d.Action))
				c.Free = true
				down = append(down, c)
			case m.unlimited():
				if !x.counts() {
					m.plan.After++
				}
				held = append(held, change(x, version(d.Action)))
			case x.counts() && m.plan.Used > m.in.Settings.MaxUnavailable:
				// It may be up: a change could take it down beside those that are down without our doing.
				d.Action, d.Reason = Wait, fmt.Sprintf("it has its slot, and waits until no more than %d of the Packages are unavailable", m.in.Settings.MaxUnavailable)
			case x.counts():
				held = append(held, change(x, version(d.Action)))
			case m.free == 0:
				d.Action, d.Reason = Wait, fmt.Sprintf("its turn comes when fewer than %d of the Packages are unavailable", m.in.Settings.MaxUnavailable)
			default:
				m.free--
				m.plan.After++
				up = append(up, change(x, version(d.Action)))
			}
			if m.in.Settings.Partitioned {
				d.Group = shown(g.name)
			}
			m.plan.Decisions = append(m.plan.Decisions, d)
		}
		m.plan.Apply = slices.Concat(m.plan.Apply, down, held, up)
	}
	if m.current < len(m.groups) && m.in.Settings.Partitioned && !m.unlimited() {
		m.plan.Group = shown(m.groups[m.current].name)
	}
}

// maxRelabelled bounds how many Packages get labels in a pass; their events cause the next one.
const maxRelabelled = 50

// relabel gives a Package what of the template is not in its spec, whatever its group.
func (m *maker) relabel(x *member) {
	if x.open() && x.refused == "" && x.pkg.Current && x.pkg.Unlabelled && !m.in.Settings.Options.Paused && len(m.plan.Relabel) < maxRelabelled {
		m.plan.Relabel = append(m.plan.Relabel, change(x, Template))
	}
}

// judge says what a member needs, budget aside.
func (m *maker) judge(index int, x *member, returning bool) Decision {
	d := func(a Action, format string, args ...any) Decision {
		return Decision{Cluster: x.Name, Action: a, Reason: fmt.Sprintf(format, args...)}
	}
	p := x.pkg
	turn := m.unlimited() || index == m.current && m.soaking == 0
	switch {
	case x.Leaving || x.Closed || x.missing && x.Unready != "":
		return d(Skip, "the hosted cluster %s", x.Unready)
	case x.refused != "" && !p.Current:
		return d(Skip, "its Package can't be written, and is tried again later: %s", x.refused)
	case x.missing:
		return d(Create, "it has no Package yet; new ones are made at once")
	case p.Held && !p.Current:
		return d(Skip, "its Package was paused by somebody; unpause it to go on")
	case m.in.Settings.Options.Paused && !p.done():
		return d(Wait, "the rollout is paused; resume it to go on")
	case p.Current && m.failed(x):
		return m.failure(d)
	case returning && p.Current && m.in.Settings.HasGood:
		return d(Return, "a Package of its group failed, and the group returns to the last good version")
	case p.done():
		return d(Done, "up to date and available")
	case p.Current && x.inFlight && p.Available:
		return d(Wait, "it is available, and its update has not ended yet")
	case p.Current && x.inFlight:
		return d(Wait, "it was updated and is not available yet")
	case p.Current:
		return d(Wait, "it is up to date and %s", state(p))
	case p.Returned && m.in.Settings.Options.OnFailure != Hold:
		return d(Skip, "the template failed here and was taken back; change the template to go on")
	case returning:
		return d(Skip, "the template failed in its group; change the template to go on")
	case x.inFlight && p.down():
		// Whatever its group: it is down by our hand, and that can only get better.
		return d(Update, "an earlier update of it has not come to an end, and it goes first")
	case !turn && m.soaking > 0 && index > m.current:
		return d(Wait, "group %s soaks for another %s", shown(m.groups[m.current].name), m.soaking.Round(time.Second))
	case !turn:
		return d(Wait, "group %s is not done yet", shown(m.groups[min(m.current, len(m.groups)-1)].name))
	case p.down():
		return d(Update, "it is unavailable, and goes first")
	case x.inFlight:
		return d(Update, "an earlier update of it has not ended, and it has a slot")
	default:
		return d(Update, "its turn has come")
	}
}

func state(p Package) string {
	if !p.Available {
		return "unavailable"
	}
	return "still progressing"
}

// failed tells that a Package missed its deadline, and asks to be woken when one will.
func (m *maker) failed(x *member) bool {
	deadline := m.in.Settings.Options.Deadline
	if deadline == 0 || !x.inFlight || x.pkg.settled() || x.pkg.AppliedAt.IsZero() {
		return false
	}
	left := deadline - m.now.Sub(x.pkg.AppliedAt)
	if left > 0 {
		m.again(left)
	}
	return left <= 0
}

func (m *maker) failure(d func(Action, string, ...any) Decision) Decision {
	s := m.in.Settings
	switch {
	case s.Options.OnFailure == Hold:
		return d(Wait, "it was updated, and is not up for longer than %s", s.Options.Deadline)
	case s.Completed:
		return d(Wait, "it was updated, and is not up for longer than %s; a rollout of this template was completed before, so it is held here and nothing is returned: "+
			"find out what is different now", s.Options.Deadline)
	case !s.HasGood:
		return d(Wait, "it was updated, and is not up for longer than %s; no rollout was completed before, so there is no version to return to", s.Options.Deadline)
	default:
		return d(Return, "it was updated, and is not up for longer than %s", s.Options.Deadline)
	}
}

// returning tells that a group goes back to the last good version as a whole.
func (m *maker) returning(index int, g group) bool {
	if m.in.Settings.Options.OnFailure != ReturnGroup || !m.in.Settings.HasGood || index > m.current && !m.unlimited() {
		return false
	}
	return slices.ContainsFunc(g.members, func(x *member) bool {
		return x.open() && (x.pkg.Returned || x.pkg.Current && m.failed(x))
	})
}

func version(a Action) Version {
	if a == Return {
		return LastGood
	}
	return Template
}

func change(x *member, v Version) Change {
	return Change{Cluster: x.Name, Namespace: x.Namespace, Version: v, UID: x.pkg.UID, Environment: x.pkg.Environment}
}

// writeProcessing is what stays in flight, and what is about to be.
func (m *maker) writeProcessing() {
	add := func(ref packagesv1.HostedClusterPackageRefStatus) { m.plan.Processing = append(m.plan.Processing, ref) }
	for _, ref := range m.in.Processing {
		if m.processing[ref.Namespace] {
			add(ref)
		}
	}
	for _, c := range m.plan.Apply {
		if !m.processing[c.Namespace] {
			add(packagesv1.HostedClusterPackageRefStatus{UID: c.UID, Name: m.in.Settings.Name, Namespace: c.Namespace})
			m.plan.Starts = true
		}
	}
	slices.SortFunc(m.plan.Processing, func(a, b packagesv1.HostedClusterPackageRefStatus) int { return cmp.Compare(a.Namespace, b.Namespace) })
}
