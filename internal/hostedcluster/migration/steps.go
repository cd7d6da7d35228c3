package migration

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Op is what a Step does.
type Op string

// Operations. Each has the fields of Step that it is followed by.
const (
	OpPause       Op = "pause"        // Object
	OpUnpause     Op = "unpause"      // Object: no longer ours to pause, and no copy any more
	OpScale       Op = "scale"        // Program, Replicas; notes how many there were
	OpRestore     Op = "restore"      // Program, Replicas; forgets that
	OpDeleteLease Op = "delete-lease" // of the manager
	OpCreate      Op = "create"       // Object, Copy
	OpComplete    Op = "complete"     // Object, Copy, Target: status, managed fields, deletion
	OpRepoint     Op = "repoint"      // Dependent, Owners
	OpNoteHCP     Op = "note-hcp"     // Private: where objects are, on the HostedControlPlane
	OpDeploy      Op = "deploy"       // Private, Awake
	OpCommit      Op = "commit"       // Private: the HostedCluster's annotations
	OpRelease     Op = "release"      // Object: finalizers, then the object
	OpNotePool    Op = "note-pool"    // Pool, Private
	OpUnlock      Op = "unlock"
)

// Step is one thing to do.
type Step struct {
	Op        Op
	Object    Object
	Target    Object
	Copy      *unstructured.Unstructured
	Dependent Dependent
	Owners    []metav1.OwnerReference
	Program   Program
	Replicas  int32
	Pool      *hyperv1.NodePool
	Private   bool
	Awake     bool
}

// Plan is what to do now: all Steps, at once unless they are Ordered, and if they succeed note Next. The zero Plan does nothing.
type Plan struct {
	Steps []Step
	// Ordered: each Step needs those before it.
	Ordered bool
	// Next is the phase after the Steps; empty: it stays.
	Next Phase
	// Failure, unless nil, is why the move is taken back from now on.
	Failure *Failure
	// Wait says what is waited for while there are no Steps.
	Wait string
	// Done of Total objects are through in this phase.
	Done, Total int
}

// Failure is why a move is taken back.
type Failure struct {
	Reason  Reason
	Message string
}

func (f *Failure) Error() string { return string(f.Reason) + ": " + f.Message }
