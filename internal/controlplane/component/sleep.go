package component

import (
	"fmt"

	"k8s.io/utils/ptr"
)

// SleepUntil keeps the workload at no replica until needed holds for the first time. Once it ran it goes on running, whatever needed
// says, since it may have to take away what it made. An error leaves everything as it is.
//
// A component that sleeps is available and rolled out: everything that it is to do is done. It takes no processor while control planes
// start and no memory of those that never have a use for it.
func (c *WorkloadComponent) SleepUntil(needed Predicate) *WorkloadComponent {
	c.needed = needed
	return c
}

// SleepUntil is that of WorkloadComponent.
func (b *Builder[W]) SleepUntil(needed Predicate) *Builder[W] { b.c.SleepUntil(needed); return b }

// sleep comes last, so that the pods are those of a workload that runs, and waking changes nothing but their number.
func sleep(s *scope) error {
	r := replicasOf(s.workload)
	if s.c.needed == nil || r == nil {
		return nil
	}
	if s.live != nil {
		if live := replicasOf(s.live); live != nil && ptr.Deref(*live, 1) > 0 {
			return nil
		}
	}
	needed, err := s.c.needed(s.ctx)
	if err != nil {
		return fmt.Errorf("deciding whether %s has work to do: %w", s.c.name, err)
	}
	if !needed {
		*r = ptr.To[int32](0)
	}
	return nil
}
