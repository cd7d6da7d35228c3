// Package fault harms a local cluster and undoes it. Each fault ends by itself, at the latest with Faults.UndoAll; what a killed process could not undo
// is in a journal, for the next one.
package fault

import (
	"context"
	"fmt"
	"time"

	"hcp.internal/platform/test/adversary/plan"
	"hcp.internal/platform/test/adversary/world"
)

// Faults plays the steps of a plan that are faults.
type Faults struct {
	World   *world.World
	Journal *Journal
	// Hostile has what tenants try.
	Hostile Hostile
}

// Play does what a step says, and returns when it is over and undone. An error that is world.ErrNobody says that there was nobody to meet. When ctx ends
// the fault does, too.
func (f *Faults) Play(ctx context.Context, s plan.Step) (met string, err error) {
	switch s.Kind {
	case plan.Templates, plan.Packages, plan.Requests, plan.Signing:
		return f.tenant(ctx, s)
	case plan.Apart:
		return f.apart(ctx, s)
	}
	processes, err := f.World.Processes(ctx, s)
	if err != nil {
		return "", err
	}
	met = fmt.Sprintf("%s (%d processes, first %d)", processes[0].Program, len(processes), processes[0].PID)
	var undo func() error
	switch s.Kind {
	case plan.Kill:
		return met, kill(processes)
	case plan.Stop:
		undo, err = f.stop(processes)
	case plan.Partition:
		undo, err = f.cut(processes[0].PID, all)
	case plan.Registry:
		undo, err = f.cut(processes[0].PID, noRegistry)
	case plan.SlowRegistry:
		undo, err = f.cut(processes[0].PID, slowRegistry)
	case plan.Loss:
		undo, err = f.cut(processes[0].PID, fmt.Sprintf(loss, s.Count, s.Count))
	default:
		return met, fmt.Errorf("nobody knows how to play %s", s.Kind)
	}
	if err != nil {
		return met, err
	}
	world.Wait(ctx, s.For)
	return met, undo()
}

const (
	// undoTime is how long taking back what a tenant made may take, also when API servers are slow.
	undoTime = 2 * time.Minute
	// failurePause is for a client whose request has failed.
	failurePause = 200 * time.Millisecond
)
