package plan

import (
	"errors"
	"fmt"
	"time"
)

// fits says that a fault keeps the bounds beside other steps.
func fits(steps []Step, s Step) bool {
	most := 0
	for _, o := range steps {
		if !o.Fault() {
			continue
		}
		if o.Target() == s.Target() && apart(o, s) < Recover {
			return false
		}
		if apart(o, s) > 0 {
			continue
		}
		if o.Heavy() || s.Heavy() {
			return false
		}
		most++
	}
	return most < MaxAtOnce
}

// apart is the time between two steps, 0 when they meet.
func apart(a, b Step) time.Duration { return max(b.At-a.End(), a.At-b.End(), 0) }

// Check returns what is wrong with a plan: each fault has its end and whom it meets, bounds are kept, and users do things in an order that makes sense.
func Check(p Plan) error {
	var errs []error
	wrong := func(s Step, why string, args ...any) {
		errs = append(errs, fmt.Errorf("step %d, %s of %s at %s: "+why, append([]any{s.Number, s.Kind, s.Target(), s.At}, args...)...))
	}
	if p.Clusters < 1 || p.Clusters > MaxClusters {
		errs = append(errs, fmt.Errorf("%d hosted clusters are made, at most %d may be", p.Clusters, MaxClusters))
	}
	made, gone := map[int]bool{Demo: true}, map[int]bool{}
	for i, s := range p.Steps {
		switch {
		case s.Number != i+1 || i > 0 && s.At < p.Steps[i-1].At:
			wrong(s, "it is not in order")
		case s.At < 0 || s.At%time.Second != 0 || s.For%time.Second != 0:
			wrong(s, "times are not whole seconds")
		case s.Fault() && (s.For > MaxFault || s.End() > p.Storm):
			wrong(s, "it ends at %s", s.End())
		case s.Fault() && s.Target() == "":
			wrong(s, "it meets nobody")
		case s.Cluster > p.Clusters:
			wrong(s, "there is no such cluster")
		case s.Fault() && !fits(p.Steps[:i], s):
			wrong(s, "it comes too soon after or beside others")
		}
		switch s.Kind {
		case Create:
			if made[s.Cluster] {
				wrong(s, "it was made before")
			}
			made[s.Cluster] = true
		case Destroy:
			if !made[s.Cluster] || gone[s.Cluster] || s.Cluster == Demo {
				wrong(s, "it can't be destroyed")
			}
			gone[s.Cluster] = true
		case Upgrade:
			if !made[s.Cluster] || gone[s.Cluster] {
				wrong(s, "there is none to upgrade")
			}
		}
	}
	return errors.Join(errs...)
}
