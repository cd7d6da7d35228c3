package rollout

import (
	"fmt"
	"maps"
	"slices"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

// observer judges a rollout by what anybody sees who looks at the fleet, and by nothing that the planner believes: which Packages there are, what
// they have, whether they are available at this moment, and who wrote to them. Of the sim it reads the true fleet, and what is asked for.
//
// Its rules are the promises of docs/fleet.md:
//   - A write takes nobody down while as many as may be are down, whoever broke those.
//   - Never are more down by the rollout's hand than may be.
//   - Nobody gets a template that an earlier group has not proven, but for a cluster that is new, or that the rollout itself has broken.
//   - While fewer are down or being changed than may be, the current group goes on.
//   - A template is one to return to only after somebody had it and was up, and while nobody has it a rollout is not said to have come to its end.
//   - A template that the whole fleet was up with is taken from nobody, whatever happens later.
//   - Another environment reaches Packages as another template does: in their turn, and counted.
//   - Clusters that sleep hold nobody.
type observer struct {
	sim *sim
	// ours are the Packages that the rollout has changed and that have not been at rest since, by namespace.
	ours map[string]bool
	// taken are those of ours that were up when they were changed. The others were down without the rollout's doing.
	taken map[string]bool
	// tried are the Packages that the present pass sent a change to.
	tried map[string]bool
	// previous is status.processing as it was before the present pass.
	previous []packagesv1.HostedClusterPackageRefStatus
}

// sight is what is to be seen of a hosted cluster that is selected and stays.
type sight struct {
	group string
	// ready tells that a Package would be made, open that the one that is there can be written.
	ready, open bool
	// there is a Package, and what it has.
	there   bool
	version int
	held    bool
	// outdated is its condition that it waits to be rendered for another environment.
	outdated bool
	// up is its condition, reported whether it is about its present generation, and resting whether it says that nothing goes on.
	up, reported, resting bool
}

// absent tells that nothing is there, and nothing is made.
func (s sight) absent() bool { return !s.there && !s.ready }

// settled is what a person calls up to date in whatever it has.
func (s sight) settled() bool { return s.there && s.up && s.reported && s.resting }

// look is the fleet as it is now.
func (o *observer) look() map[string]sight {
	out := map[string]sight{}
	for ns, c := range o.sim.clusters {
		if !c.matches || c.deleting || c.asleep { // who sleeps is down because somebody wants it to be
			delete(o.ours, ns)
			delete(o.taken, ns)
			continue
		}
		s := sight{group: groupOf(o.sim.settings, c.label), ready: c.ready, open: (c.ready || !c.closed) && !o.sim.refuses[ns]}
		if p := o.sim.pkgs[ns]; p != nil {
			s.there, s.version, s.held, s.up, s.resting = true, p.version, p.held, p.available, p.progressed
			s.reported, s.outdated = p.observed == p.generation && !p.turn(), p.wants != 0
		}
		if !s.there || s.settled() {
			delete(o.ours, ns)
			delete(o.taken, ns)
		}
		out[ns] = s
	}
	for _, m := range []map[string]bool{o.ours, o.taken} {
		maps.DeleteFunc(m, func(ns string, _ bool) bool { _, ok := out[ns]; return !ok })
	}
	return out
}

// groups are the names of groups in their order.
func (o *observer) groups() []string {
	if o.sim.settings.Static != nil {
		return order(o.sim.settings, map[string]int{})
	}
	return []string{"a", "b", "c", "d", ""}
}

// announced tells that status.processing names the Package, which is for everybody to read: it was changed, or was about to be when the process died.
func (o *observer) announced(ns string) bool {
	return slices.ContainsFunc(o.previous, func(ref packagesv1.HostedClusterPackageRefStatus) bool { return ref.Namespace == ns })
}

// watch is called whenever something has happened.
func (o *observer) watch() {
	if o.sim.settings.MaxUnavailable == Unlimited {
		return
	}
	var down []string
	for ns, s := range o.look() {
		if o.taken[ns] && !s.up {
			down = append(down, ns)
		}
	}
	if len(down) > o.sim.settings.MaxUnavailable {
		slices.Sort(down)
		o.sim.violated("%d are down by the rollout's hand, %d may be: %v %s", len(down), o.sim.settings.MaxUnavailable, down, o.sim)
	}
}

// writes is called before a change of the rollout lands on a Package that is there.
func (o *observer) writes(ns string, version int, returned bool) {
	if returned && o.sim.hcp.completed == o.sim.hcp.version {
		o.sim.violated("%s returns from %d, which was completed: %s", ns, o.sim.hcp.version, o.sim)
	}
	fleet := o.look()
	target, selected := fleet[ns]
	if o.ours[ns] = true; !selected || o.sim.settings.MaxUnavailable == Unlimited {
		return
	}
	if target.up {
		o.taken[ns] = true
		// What was written and has not been heard of since may be down at any moment.
		down := 0
		for other, s := range fleet {
			switch unheard := o.ours[other] && !s.reported; {
			case other == ns, s.absent():
			case o.sim.lag > 0: // what breaks by itself may not have been seen
				down += count01(o.taken[other] && (unheard || !s.up))
			default:
				down += count01(unheard || !s.up)
			}
		}
		if down+1 > o.sim.settings.MaxUnavailable {
			o.sim.violated("%s was up and is changed while %d are down, of %d: %s", ns, down, o.sim.settings.MaxUnavailable, o.sim)
		}
	}
	if !o.sim.settings.Partitioned || o.sim.lag > 0 || returned || !target.up && o.announced(ns) {
		return // labels may have changed unseen; and what is down and in the rollout's hands can only get better
	}
	rank := func(s sight) int { return slices.Index(o.groups(), s.group) }
	for other, s := range fleet {
		if rank(s) < rank(target) && !s.absent() && !(s.settled() && s.version == version && !s.outdated) {
			o.sim.violated("%s in group %q gets %d, which %s in group %q has not proven: %s", ns, target.group, version, other, s.group, o.sim)
		}
	}
}

// passes is called after a pass that nothing disturbed. fleet is what was to be seen before it.
func (o *observer) passes(fleet map[string]sight) {
	s := o.sim.settings
	if o.sim.lag > 0 || s.Options.Soak > 0 || s.Options.OnFailure != Hold || s.Options.Paused {
		return
	}
	used := 0
	for _, x := range fleet {
		used += count01(!x.settled() && !x.absent())
	}
	if s.MaxUnavailable != Unlimited && used >= s.MaxUnavailable {
		return
	}
	done := func(x sight) bool { return x.settled() && x.version == o.sim.hcp.version && !x.held && !x.outdated }
	for _, group := range o.groups() {
		waiting := ""
		current := false
		for ns, x := range fleet {
			if x.group != group || x.absent() || done(x) {
				continue
			}
			current = true
			if o.tried[ns] {
				return
			}
			if x.settled() && !x.held && x.open && !o.remembered(ns) {
				waiting = ns
			}
		}
		if waiting != "" {
			o.sim.violated("%d of %d are down or being changed, and %s in group %q waits for nothing: %s", used, s.MaxUnavailable, waiting, group, o.sim)
		}
		if current && s.MaxUnavailable != Unlimited {
			return
		}
	}
}

// ends is called after a pass that nothing disturbed, as passes is.
func (o *observer) ends(fleet map[string]sight, plan Plan) {
	if o.sim.lag > 0 {
		return
	}
	have, proven := false, false
	for _, x := range fleet {
		has := x.there && x.version == o.sim.hcp.version && !x.held
		have, proven = have || has, proven || has && x.settled()
	}
	if plan.Finished && !proven {
		o.sim.violated("a rollout is finished, and nobody who is awake has %d and is up: %s", o.sim.hcp.version, o.sim)
	}
	waits := false
	for ns, c := range o.sim.clusters {
		p := o.sim.pkgs[ns]
		waits = waits || c.matches && !c.deleting && c.asleep && p != nil && (p.version != o.sim.hcp.version || p.held)
	}
	if waits && !have && o.sim.status.Conditions[1].Reason == "AllPackagesProgressed" {
		o.sim.violated("nobody has %d, those who sleep wait for it, and the rollout says that it has come to its end: %s", o.sim.hcp.version, o.sim)
	}
}

// remembered tells that a write was refused a moment ago, and is not tried again yet.
func (o *observer) remembered(ns string) bool { return o.sim.now.Before(o.sim.refused[ns].until) }

func (o *observer) String() string { return fmt.Sprintf("ours %v", slices.Sorted(maps.Keys(o.ours))) }

func count01(b bool) int { return int(one(b)) }
