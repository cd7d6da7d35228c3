package process

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// honest is a lock that gives back only what is ours.
//
// client-go's elector gives its lease back when it ends, and judges by what it knew last whether it has one (as of 0.36). A process that stood still for
// longer than its lease lasts knows of no successor, and would take the lease from that: a third process could begin while the second still works. So
// the record that was read from the API server counts here; the update after it is refused there if it has changed since.
type honest struct {
	resourcelock.Interface
	fence *Fence

	// holder is who had the lease when the API server last answered. Electors call from one goroutine at a time.
	holder string
}

// Get implements resourcelock.Interface.
func (l *honest) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.holder = record.HolderIdentity
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *honest) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Create(ctx, record)
	if err == nil {
		l.holder = record.HolderIdentity
	}
	return err
}

// Update implements resourcelock.Interface. A record without a holder gives the lease back, and nothing is written from then on.
func (l *honest) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" {
		if l.holder != l.Identity() {
			return fmt.Errorf("the lease is not given back: it is held by %q", l.holder)
		}
		l.fence.close()
	}
	err := l.Interface.Update(ctx, record)
	if err == nil {
		l.holder = record.HolderIdentity
	}
	return err
}
