package migration

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Direction is where objects go.
type Direction string

// Directions.
const (
	Forward Direction = "forward" // to HyperShift's own groups
	Reverse Direction = "reverse" // to the standard groups
)

// Private tells whether objects are in HyperShift's own groups at the end.
func (d Direction) Private() bool { return d == Forward }

// Phase is how far a move is. It is noted in the journal, and the reason of condition PrivateCAPIMigrationProgressing.
type Phase string

// Phases in their order. From Commit's end on there is no way but forward.
const (
	Quiesce   Phase = "Quiesce"   // the operators say that they let go
	Pause     Phase = "Pause"     // every object is paused
	ScaleDown Phase = "ScaleDown" // the programs end
	Copy      Phase = "Copy"      // each object gets its copy, owners first
	Repoint   Phase = "Repoint"   // what objects own gets their copies as owners
	Verify    Phase = "Verify"    // copies and objects are compared
	Switch    Phase = "Switch"    // programs and rights are made ready for the copies, and stay down
	Commit    Phase = "Commit"    // the HostedCluster says where its objects are
	ScaleUp   Phase = "ScaleUp"   // the programs are brought up
	Available Phase = "Available" // they run, and only look: everything is paused
	Unpause   Phase = "Unpause"   // one kind after the other
	Release   Phase = "Release"   // the old objects go: their finalizers first, then they
	Finish    Phase = "Finish"    // notes are put away
	Completed Phase = "Completed" // the lock goes

	RollBack   Phase = "RollBack"   // copies go, and everything is as before
	RolledBack Phase = "RolledBack" // the lock goes
)

var order = []Phase{Quiesce, Pause, ScaleDown, Copy, Repoint, Verify, Switch, Commit, ScaleUp, Available, Unpause, Release, Finish, Completed}

// Number is the position of a phase among those of a move that succeeds, from 1 on; 0: none of them.
func (p Phase) Number() int { return slices.Index(order, p) + 1 }

// Last is the number of phases.
func Last() int { return len(order) }

// Over tells that nothing of the move is left to be done but to take the lock off.
func (p Phase) Over() bool { return p == Completed || p == RolledBack }

// committed tells that p comes after the commit of a move that succeeds.
func (p Phase) committed() bool { return p.Number() > Commit.Number() }

// suspends tells that the hosted cluster can neither scale nor heal.
func (p Phase) suspends() bool {
	return p == RollBack || p.Number() >= Pause.Number() && p.Number() <= Unpause.Number()
}

// patience is how long a phase before the commit may take until everything is taken back. Verify only looks.
var patience = map[Phase]time.Duration{
	Quiesce:   2 * time.Minute, // a pass of an operator is bounded by that
	Pause:     5 * time.Minute,
	ScaleDown: 5 * time.Minute,
	Copy:      5 * time.Minute,
	Repoint:   5 * time.Minute,
	Switch:    5 * time.Minute,
	Commit:    5 * time.Minute,
}

// Reason is why a move was taken back, or was not begun: the value of annotation migration-failed and of a label of a metric.
type Reason string

// Reasons.
const (
	ReasonQuiesce     Reason = "quiesce-timeout"
	ReasonScaleDown   Reason = "scale-down-timeout"
	ReasonConversion  Reason = "resource-conversion-failed"
	ReasonConflict    Reason = "resource-conflict"
	ReasonStatus      Reason = "status-copy-failed"
	ReasonRepoint     Reason = "owner-repoint-failed"
	ReasonMismatch    Reason = "verification-mismatch"
	ReasonWorkload    Reason = "workload-update-failed"
	ReasonConcurrent  Reason = "concurrent-write"
	ReasonInternal    Reason = "internal"
	ReasonRequested   Reason = "rollback-requested"
	reasonBeingErased Reason = "" // the hosted cluster is being deleted: no veto is left behind
)

// timeoutReason is what it is called that a phase took too long.
func timeoutReason(p Phase) Reason {
	switch p {
	case Quiesce:
		return ReasonQuiesce
	case ScaleDown:
		return ReasonScaleDown
	case Copy:
		return ReasonConversion
	case Repoint:
		return ReasonRepoint
	case Switch:
		return ReasonWorkload
	}
	return ReasonInternal
}

// Journal is what is noted of a move besides what objects themselves show: ConfigMap private-capi-migration of the control plane's namespace.
type Journal struct {
	// SchemaVersion is 1. One that is unknown is left alone.
	SchemaVersion int    `json:"schemaVersion"`
	Lock          string `json:"lock"` // annotation migration-lock of the HostedCluster
	// Locks: the HostedCluster has yet to get Lock, which nobody has acknowledged so far.
	Locks     bool      `json:"locks,omitempty"`
	Direction Direction `json:"direction"`
	Phase     Phase     `json:"phase"`
	// Started is when the move began, PhaseStarted when the phase did; Suspended and Resumed are the window in which nothing scales.
	Started      time.Time  `json:"started"`
	PhaseStarted time.Time  `json:"phaseStarted"`
	Suspended    *time.Time `json:"suspended,omitempty"`
	Resumed      *time.Time `json:"resumed,omitempty"`
	// Machines is how many there were at the start.
	Machines int `json:"machines"`
	// Failure and Message say why the move is, or was, taken back.
	Failure Reason `json:"failure,omitempty"`
	Message string `json:"message,omitempty"`
}

const journalSchema = 1

// JournalName is the ConfigMap that holds the journal, in JSON.
const (
	JournalName = "private-capi-migration"
	journalKey  = "journal"
)

// overdue is why a move is taken back whose phase takes too long, for what keeps it; nil: it may take longer.
func (j Journal) overdue(now time.Time, why string) *Failure {
	limit := patience[j.Phase]
	if limit == 0 || now.Sub(j.PhaseStarted) <= limit {
		return nil
	}
	return &Failure{timeoutReason(j.Phase), fmt.Sprintf("phase %s took more than %s: %s", j.Phase, limit, why)}
}

// failed is why a move is taken back after its steps ended with err; nil: they are tried again. After the commit there is no way back, and on the way
// back there is no other.
func (j Journal) failed(err error, now time.Time) *Failure {
	var f *Failure
	switch {
	case err == nil || j.Phase.committed() || j.Phase == RollBack || j.Phase.Over():
		return nil
	case errors.As(err, &f):
		return f
	}
	return j.overdue(now, err.Error())
}

// at is the journal in another phase.
func (j Journal) at(p Phase, now time.Time) Journal {
	j.Phase, j.PhaseStarted = p, now
	if p == Pause && j.Suspended == nil {
		j.Suspended = &now
	}
	if j.Suspended != nil && j.Resumed == nil && !p.suspends() && p != Quiesce {
		j.Resumed = &now
	}
	return j
}
