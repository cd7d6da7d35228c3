package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

var (
	errConflict = errors.New("the object has been modified")
	errNoAnswer = errors.New("the connection broke")
	errRefused  = errors.New("somebody else owns it")
)

// write counts, and kills the controller before or after the write that was chosen.
func (s *sim) write(effect func()) error {
	if s.dead {
		return errCrash
	}
	s.writes++
	s.dead = s.writes == s.crashAt
	if !s.dead || s.after {
		effect()
	}
	if s.dead {
		return errCrash
	}
	return nil
}

// Look implements Fleet.
func (s *sim) Look(_ context.Context, namespaces []string) (map[string]Package, error) {
	if s.dead {
		return nil, errCrash
	}
	out := map[string]Package{}
	for _, ns := range namespaces {
		if p, ok := s.pkgs[ns]; ok {
			out[ns] = s.view(ns, *p)
		}
	}
	return out, nil
}

// Record implements Fleet.
func (s *sim) Record(_ context.Context, status packagesv1.HostedClusterPackageStatus) error {
	if s.dead {
		return errCrash
	}
	if s.shownHCP.resourceVersion != s.hcp.resourceVersion {
		return errConflict
	}
	if slices.Equal(status.Processing, s.hcp.processing) {
		return nil
	}
	return s.write(func() {
		if s.status.ObservedGeneration == status.ObservedGeneration {
			s.status = status
		}
		s.hcp.processing = slices.Clone(status.Processing)
		s.hcp.resourceVersion++
		s.shownHCP = s.hcp // the answer to the write
	})
}

// inFlight is how many writes a controller has under way at the same time.
const inFlight = 16

// Apply implements Fleet. Writes land in any order; of those that are under way when the controller dies, any
// may have landed.
func (s *sim) Apply(_ context.Context, changes []Change) []error {
	errs := make([]error, len(changes))
	order := s.Perm(len(changes))
	for i, n := range order {
		if s.writes+1 == s.crashAt {
			for _, m := range order[i:min(i+inFlight, len(order))] {
				if s.IntN(2) == 0 {
					s.apply(changes[m])
				}
			}
			s.writes, s.dead = s.writes+1, true
		}
		if s.dead {
			errs[n] = errCrash
			return errs
		}
		c := changes[n]
		s.judge.tried[c.Namespace] = true
		delete(s.known, c.Namespace)
		s.writes++
		if s.refuses[c.Namespace] {
			errs[n] = errRefused
			s.refused[c.Namespace] = simRefused{s.shownHCP.version, s.now.Add(time.Duration(1+s.IntN(5)) * time.Minute)}
			continue
		}
		failed := !s.calm && s.Float64() < s.deaf
		if failed {
			errs[n] = errNoAnswer
			s.refused[c.Namespace] = simRefused{s.shownHCP.version, s.now.Add(time.Duration(s.IntN(2)) * time.Minute)}
		}
		if failed && s.IntN(2) == 0 {
			continue
		}
		if p := s.apply(c); p != nil && !failed {
			s.known[c.Namespace] = simKnown{p.uid, p.writes}
		}
	}
	return errs
}

// apply lets a write land, and tells what is there then.
func (s *sim) apply(c Change) *simPackage {
	version := s.shownHCP.version
	if c.Version == LastGood {
		version = s.shownHCP.good
	}
	if at := s.clusters[c.Namespace]; at != nil && at.asleep && s.lag == 0 {
		s.violated("the Package of a cluster that sleeps was written: %s", c.Namespace)
	}
	p, ok := s.pkgs[c.Namespace]
	if !ok {
		s.uids++
		p = &simPackage{uid: types.UID(fmt.Sprint(s.uids)), version: version, generation: 1, applied: s.now, left: 1 + s.IntN(4), env: s.env}
		s.pkgs[c.Namespace] = p
		return p
	}
	told, _ := strconv.Atoi(c.Environment) // 0: the annotation goes
	same := version == p.version && !p.held && (c.Version == LastGood) == (p.returnedFrom != 0)
	if same && told == p.told {
		return p // nothing would change
	}
	if p.held && s.lag == 0 {
		s.violated("a paused Package was changed: %s", c.Namespace)
	}
	s.judge.writes(c.Namespace, version, c.Version == LastGood)
	p.told, p.applied = told, s.now
	if p.writes++; same {
		s.judge.watch()
		return p
	}
	p.returnedFrom = 0
	if c.Version == LastGood {
		p.returnedFrom = s.shownHCP.version
	}
	p.version, p.generation, p.left = version, p.generation+1, 1+s.IntN(4)
	s.judge.watch()
	return p
}

// Delete implements Fleet.
func (s *sim) Delete(_ context.Context, p Package) error {
	if c, ok := s.clusters[p.Namespace]; ok && c.matches {
		return nil // the look past caches
	}
	if have, ok := s.pkgs[p.Namespace]; !ok || have.uid != p.UID {
		return nil
	}
	return s.write(func() { delete(s.pkgs, p.Namespace) })
}

// Report implements Fleet.
func (s *sim) Report(_ context.Context, status packagesv1.HostedClusterPackageStatus) error {
	if s.dead {
		return errCrash
	}
	if s.shownHCP.resourceVersion != s.hcp.resourceVersion {
		return errConflict
	}
	if reflect.DeepEqual(status, s.status) && slices.Equal(status.Processing, s.hcp.processing) {
		return nil
	}
	return s.write(func() {
		s.status = status
		s.hcp.processing = slices.Clone(status.Processing)
		s.hcp.resourceVersion++
		s.shownHCP = s.hcp
	})
}

// events are what happens between two passes.
func (s *sim) events() {
	s.tick()
	defer s.judge.watch()
	for range s.IntN(3) {
		s.judge.watch()
		switch s.IntN(13) {
		case 0:
			s.join()
		case 1:
			s.any(func(ns string, c *simCluster) { // deleted at last, with its namespace
				if c.deleting {
					delete(s.clusters, ns)
					delete(s.pkgs, ns)
				}
				c.deleting = true
			})
		case 2:
			s.any(func(_ string, c *simCluster) { c.matches = !c.matches })
		case 3, 4:
			s.any(func(_ string, c *simCluster) { c.label = labels[s.IntN(len(labels))] })
		case 5:
			s.any(func(_ string, c *simCluster) { c.ready = !c.ready })
		case 6:
			if s.IntN(4) == 0 {
				s.template()
			}
		case 7:
			s.any(func(ns string, _ *simCluster) { // breaks, or heals, by itself
				if p := s.pkgs[ns]; p != nil && p.left < 0 && !s.broken[p.version] {
					p.available = !p.available
				}
			})
		case 8:
			s.any(func(ns string, _ *simCluster) {
				if p := s.pkgs[ns]; p != nil && s.IntN(3) == 0 {
					p.held = !p.held
					p.generation++
					p.left = max(p.left, 0)
				}
			})
		case 10:
			s.any(func(ns string, _ *simCluster) { s.refuses[ns] = !s.refuses[ns] })
		case 9:
			s.any(func(ns string, _ *simCluster) {
				if s.IntN(5) == 0 {
					delete(s.pkgs, ns) // by hand
				}
			})
		case 11:
			if s.IntN(4) == 0 {
				s.night(s.IntN(2) == 0)
			} else {
				s.any(func(ns string, c *simCluster) { s.sleep(ns, !c.asleep) })
			}
		case 12:
			if s.IntN(4) == 0 {
				s.env++
			}
		}
	}
}

// sleep stops the Package of a cluster with all else that is there, or lets it come up again.
func (s *sim) sleep(ns string, asleep bool) {
	c, p := s.clusters[ns], s.pkgs[ns]
	if c.asleep == asleep {
		return
	}
	if c.asleep = asleep; p == nil {
		return
	}
	if p.available = false; !asleep && p.left < 0 {
		p.left = 1 + s.IntN(4)
	}
}

// night falls over the whole fleet, or ends.
func (s *sim) night(falls bool) {
	for _, ns := range slices.Sorted(maps.Keys(s.clusters)) {
		s.sleep(ns, falls)
	}
}

var labels = []string{"", "a", "b", "c", "d", "*"}

func (s *sim) any(do func(string, *simCluster)) {
	if len(s.clusters) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(s.clusters))
	ns := names[s.IntN(len(names))]
	do(ns, s.clusters[ns])
}

func (s *sim) join() {
	s.uids++
	name := fmt.Sprintf("c%04d", s.uids)
	s.clusters["clusters-"+name] = &simCluster{name: types.NamespacedName{Namespace: "clusters", Name: name}, ready: s.IntN(8) > 0, closed: s.IntN(2) == 0, matches: true,
		label: labels[s.IntN(len(labels))]}
}

// template changes what is rolled out, to something that may be bad, or back.
func (s *sim) template() {
	if s.finished() {
		s.hcp.good = s.hcp.version
	}
	if !s.calm && s.hcp.version > 1 && s.IntN(3) == 0 {
		s.hcp.version-- // as a revert does
	} else {
		s.newest = max(s.newest, s.hcp.version) + 1
		s.hcp.version = s.newest
	}
	s.broken[s.hcp.version] = !s.calm && s.IntN(4) == 0
	s.hcp.resourceVersion++
	s.hcp.completed = 0 // also what comes back has to show that it is good
}

// tick lets Packages get on.
func (s *sim) tick() {
	s.now = s.now.Add(30 * time.Second)
	for _, ns := range slices.Sorted(maps.Keys(s.pkgs)) {
		p := s.pkgs[ns]
		if !p.held && p.observed == p.generation {
			if p.wants = 0; p.env != s.env {
				p.wants = s.env
			}
		}
		switch c := s.clusters[ns]; {
		case c != nil && c.asleep:
			// Nothing gets on there.
		case p.left > 0:
			p.left--
			if (p.observed != p.generation || p.turn() && !p.held) && p.left < 3 {
				// The revision before may be available until the new one begins.
				p.observed, p.available, p.progressed = p.generation, p.available && s.IntN(2) == 0, false
				p.env, p.wants = s.env, 0
			}
			if p.left == 0 && !(s.broken[p.version] && p.uid[len(p.uid)-1]%2 == 0) {
				p.available = false // the new one takes over; a bad one of some packages never does
			}
		case p.left == 0 || s.calm && !p.up():
			p.observed = p.generation
			if s.broken[p.version] {
				p.progressed = false
				continue
			}
			p.left, p.settled = -1, s.now
			p.available, p.progressed = true, true
		case p.turn() && !p.held:
			p.left = 1 + s.IntN(3) // it hears of it
		}
	}
}

// deliver brings the caches up to date, as far as they are not lagging.
func (s *sim) deliver() {
	late := func() bool { return s.lag > 0 && s.Float64() < s.lag }
	if !late() {
		s.shownHCP = s.hcp
	}
	for _, ns := range slices.Sorted(maps.Keys(s.clusters)) {
		if !late() {
			s.shownC[ns] = *s.clusters[ns]
		}
	}
	for _, ns := range slices.Sorted(maps.Keys(s.pkgs)) {
		if !late() {
			s.shownP[ns] = *s.pkgs[ns]
		}
	}
	for _, ns := range slices.Sorted(maps.Keys(s.shownC)) {
		if _, ok := s.clusters[ns]; !ok && !late() {
			delete(s.shownC, ns)
		}
	}
	for _, ns := range slices.Sorted(maps.Keys(s.shownP)) {
		if _, ok := s.pkgs[ns]; !ok && !late() {
			delete(s.shownP, ns)
		}
	}
}
