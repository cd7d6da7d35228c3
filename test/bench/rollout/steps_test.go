//go:build bench

package rollout

import (
	"slices"
	"time"
)

// steps measures what a rollout waits for its controller.
//
// A step is the change of one Package. It could be made as soon as a watch showed two things: that a slot is free, and that the groups before
// are done. It was made when a watch showed the change. What lies between is the controller's, and the API server's for the requests that the
// controller makes; how long a Package takes to come up is nobody's, and not counted. Both times are of one watch, so that its own delay
// falls out.
type steps struct {
	group map[string]int // by namespace
	left  []int          // members of each group that are not up yet
	first int            // the group that is worked on
	open  []slot
	// single are steps that became possible one by one; waves are those of a group that starts, all at the same time.
	single []time.Duration
	waves  map[time.Time][]time.Duration
}

// slot is one that nobody has taken yet.
type slot struct {
	since time.Time
	wave  bool
}

// begin tells that a rollout starts, with all slots free.
func (s *steps) begin(now time.Time) {
	s.left, s.first, s.open, s.single, s.waves = make([]int, groups), 0, nil, nil, map[time.Time][]time.Duration{}
	for _, g := range s.group {
		s.left[g]++
	}
	for range budget {
		s.open = append(s.open, slot{now, true})
	}
}

// changed tells that a watch showed a change.
func (s *steps) changed(now time.Time) {
	if len(s.open) == 0 {
		return // not of a rollout
	}
	from := s.open[0]
	s.open = s.open[1:]
	if took := now.Sub(from.since); from.wave {
		s.waves[from.since] = append(s.waves[from.since], took)
	} else {
		s.single = append(s.single, took)
	}
}

// up tells that a watch showed a Package up that had been changed.
func (s *steps) up(namespace string, now time.Time) {
	s.open = append(s.open, slot{now, false})
	s.left[s.group[namespace]]--
	if s.first < groups && s.left[s.first] == 0 {
		s.first++
		for i := range s.open { // until now there was nobody to take them
			s.open[i] = slot{now, true}
		}
	}
}

// ofWaves is how long the first and the last of each wave took, sorted.
func (s *steps) ofWaves() (first, last []time.Duration) {
	for _, w := range s.waves {
		first, last = append(first, slices.Min(w)), append(last, slices.Max(w))
	}
	slices.Sort(first)
	slices.Sort(last)
	return first, last
}

// at is a quantile of what is sorted.
func at(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Round(100 * time.Microsecond)
}
