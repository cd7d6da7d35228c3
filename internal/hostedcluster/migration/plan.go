package migration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

// Observed is everything that a plan may look at.
type Observed struct {
	Now   time.Time
	HC    *hyperv1.HostedCluster
	HCP   *hyperv1.HostedControlPlane // nil: there is none
	Pools []hyperv1.NodePool
	// Journal is nil when there is none, or one of another lock.
	Journal *Journal
	// From are the objects in the group that they leave, To those in the other one.
	From, To []Object
	// Dependents are objects of other groups with owners among From and To.
	Dependents []Dependent
	Programs   []Program
	// Lease is that of Cluster API's manager; nil: there is none.
	Lease *metav1.ObjectMeta
	// Rights are the groups of Cluster API that Roles of the manager and the provider name.
	Rights []string
	// Deployed is when this process deployed the programs last; zero: it has not.
	Deployed time.Time
}

// Dependent is an object of another group than Cluster API's, with owners in these.
type Dependent struct {
	Resource        schema.GroupVersionResource
	Name            string
	UID             types.UID
	ResourceVersion string
	Owners          []metav1.OwnerReference
}

// Program is a Deployment of the control plane whose pods read or write objects of Cluster API, or scale such Deployments.
type Program struct {
	Name     string
	UID      types.UID
	Replicas int32
	// Before is how many replicas there were before the move; nil: it has not changed them.
	Before *int32
	// Pods are those with processes, also the ones that end.
	Pods int
	// Settled: the Deployment's controller has seen its spec, and counts no replicas.
	Settled bool
	// Runs: a replica is available, of whichever template.
	Runs bool
	// Available: at least one of its replicas is, of its newest template.
	Available bool
	// Rights are the groups of Cluster API that its Role names. They are read of programs that make or remove machines themselves, and that the
	// control-plane-operator deploys.
	Rights []string
}

func (p Program) gone() bool { return p.Replicas == 0 && p.Settled && p.Pods == 0 }

// programNames are the Deployments that end while objects are copied. Every component whose Role is about Cluster API is one of them.
var programNames = []string{names.ControlPlaneOperator, names.ClusterAPI, names.CAPIProvider, "cluster-autoscaler", "hosted-cluster-config-operator", "machine-approver", karpenter}

// karpenter makes and removes machines of Cluster API itself, and heeds no pause. A payload's Karpenter has the same name, makes machines of AWS, and has
// no right to Cluster API: its operator keeps it, and would bring it up again.
const karpenter = "karpenter"

// ours are those that the hypershift-operator deploys; the others are the control-plane-operator's.
func (p Program) ours() bool {
	return p.Name == names.ControlPlaneOperator || p.Name == names.ClusterAPI || p.Name == names.CAPIProvider
}

// planFor decides about a hosted cluster that is locked and has a journal.
//
// It never lets go of an object before its copy is whole and the HostedCluster names the copies' group; never asks for a program to run while
// objects of both groups are worth something; and never for an object's deletion while it has a finalizer.
func planFor(o Observed) Plan {
	j := o.Journal
	committed := o.private() == j.Direction.Private()
	switch {
	case j.Phase.Over():
		return Plan{Steps: []Step{{Op: OpUnlock}}}
	case j.SchemaVersion != journalSchema || j.Phase.Number() == 0 && j.Phase != RollBack:
		return Plan{Wait: "another version of the operator wrote the journal and has to finish the move"}
	case committed && j.Phase == RollBack, !committed && j.Phase.committed():
		return Plan{Wait: "the journal and the annotations of the HostedCluster contradict each other: see docs/migration.md for what to do"}
	case committed && !j.Phase.committed():
		return Plan{Next: ScaleUp} // the last thing before a crash
	}
	if !committed && !o.acknowledged() {
		if j.Phase == RollBack && o.untouched() {
			return Plan{Next: RolledBack} // who does not answer may never do so, and others wait for their turn
		}
		if o.Now.Sub(j.PhaseStarted) > patience[Quiesce] && j.Phase == Quiesce {
			return Plan{Failure: &Failure{timeoutReason(Quiesce), o.unacknowledged()}}
		}
		return Plan{Wait: o.unacknowledged()}
	}
	if j.Phase == RollBack {
		return o.rollBack()
	}
	if f := o.abort(); f != nil {
		return Plan{Failure: f}
	}
	p := o.advance(j.Phase)
	if f := j.overdue(o.Now, cmp.Or(p.Wait, fmt.Sprintf("%d of %d objects are done", p.Done, p.Total))); f != nil && p.Next == "" && p.Failure == nil {
		return Plan{Failure: f}
	}
	return p
}

// abort says why a move that has not been committed must not go on.
func (o Observed) abort() *Failure {
	j := o.Journal
	if j.Phase.committed() {
		return nil
	}
	switch {
	case o.HC.DeletionTimestamp != nil:
		return &Failure{reasonBeingErased, "the hosted cluster is being deleted"}
	case j.Direction == Forward && o.HC.Annotations[hyperv1.PrivateCAPIRollbackAnnotation] == "true":
		return &Failure{ReasonRequested, "annotation " + hyperv1.PrivateCAPIRollbackAnnotation + " asks for it"}
	case j.Phase.Number() > ScaleDown.Number():
		for _, p := range o.Programs {
			if p.Replicas != 0 || p.Pods > 0 {
				return &Failure{ReasonConcurrent, fmt.Sprintf("someone scaled up Deployment %s while objects were being moved", p.Name)}
			}
		}
	}
	return nil
}

func (o Observed) private() bool {
	return o.HC.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true"
}

func (o Observed) acknowledged() bool { return o.unacknowledged() == "" }

// unacknowledged says whose controller may still be at work.
func (o Observed) unacknowledged() string {
	const key = hyperv1.PrivateCAPIMigrationAckAnnotation
	var open []string
	if o.HC.Annotations[key] != o.Journal.Lock {
		open = append(open, "HostedCluster "+o.HC.Name)
	}
	for i := range o.Pools {
		if o.Pools[i].Annotations[key] != o.Journal.Lock {
			open = append(open, "NodePool "+o.Pools[i].Name)
		}
	}
	if len(open) == 0 {
		return ""
	}
	return "the operator has not let go of " + some(open)
}

func some(list []string) string {
	const most = 3
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}

func (o Observed) advance(phase Phase) Plan {
	switch phase {
	case Quiesce:
		return Plan{Next: Pause}
	case Pause:
		return o.pause()
	case ScaleDown:
		return o.scaleDown()
	case Copy:
		return o.copy()
	case Repoint:
		return o.repoint(o.uids())
	case Verify:
		return o.verify(Switch)
	case Switch:
		private := o.Journal.Direction.Private()
		p := Plan{Ordered: true, Next: Commit}
		if o.HCP != nil && (o.HCP.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true") != private {
			p.Steps = append(p.Steps, Step{Op: OpNoteHCP, Private: private})
		}
		p.Steps = append(p.Steps, Step{Op: OpDeploy, Private: private})
		return p
	case Commit:
		if p := o.verify(ScaleUp); p.Failure != nil {
			return p
		}
		return Plan{Steps: []Step{{Op: OpCommit, Private: o.Journal.Direction.Private()}}, Next: ScaleUp}
	case ScaleUp:
		return Plan{Steps: []Step{{Op: OpDeploy, Private: o.Journal.Direction.Private(), Awake: true}}, Next: Available}
	case Available:
		return o.available()
	case Unpause:
		return o.unpause(o.To, Release)
	case Release:
		return o.release()
	default: // Finish
		return o.finish()
	}
}

func (o Observed) pause() Plan {
	p := Plan{Total: len(o.From)}
	for _, obj := range o.From {
		if _, paused := obj.paused(); paused {
			p.Done++
			continue
		}
		p.Steps = append(p.Steps, Step{Op: OpPause, Object: obj})
	}
	if len(p.Steps) == 0 {
		p.Next = ScaleDown
	}
	return p
}

// scaleDown ends the programs. Until the last of them is gone it may make objects that are not paused yet, and the control-plane-operator may
// bring others back.
func (o Observed) scaleDown() Plan {
	p := o.pause()
	p.Next, p.Done, p.Total = "", 0, len(o.Programs)
	var running []string
	for _, program := range o.Programs {
		if program.gone() {
			p.Done++
			continue
		}
		running = append(running, program.Name)
		if program.Replicas != 0 || program.Before == nil {
			p.Steps = append(p.Steps, Step{Op: OpScale, Program: program})
		}
	}
	if len(running) > 0 {
		p.Wait = "waiting for the end of " + some(running)
		return p
	}
	if o.Lease != nil {
		// Its manager never gives it back, and the next one would wait for 45 s.
		p.Steps = append(p.Steps, Step{Op: OpDeleteLease})
	}
	if len(p.Steps) == 0 {
		p.Next = Copy
	}
	return p
}

// uids are the copies' for the objects'.
func (o Observed) uids() map[types.UID]types.UID {
	to := byID(o.To)
	uids := map[types.UID]types.UID{}
	for _, obj := range o.From {
		if c, ok := to[obj.ID()]; ok {
			uids[obj.GetUID()] = c.GetUID()
		}
	}
	return uids
}

func byID(list []Object) map[ID]Object {
	out := make(map[ID]Object, len(list))
	for _, o := range list {
		out[o.ID()] = o
	}
	return out
}

// copy makes copies of objects whose owners have theirs, and completes those that were made.
func (o Observed) copy() Plan {
	to, uids := byID(o.To), o.uids()
	moved := map[types.UID]bool{}
	for _, obj := range o.From {
		moved[obj.GetUID()] = true
	}
	p := Plan{Total: len(o.From)}
	for _, obj := range o.From {
		c, exists := to[obj.ID()]
		switch {
		case exists && !c.isCopy():
			return Plan{Failure: &Failure{ReasonConflict, fmt.Sprintf("%s also exists in group %s", obj.ID(), c.GroupVersionKind().Group)}}
		case exists && c.whole():
			p.Done++
			continue
		case !exists && slices.ContainsFunc(obj.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return moved[r.UID] && uids[r.UID] == "" }):
			continue
		}
		made, err := copyOf(obj, uids)
		if err != nil {
			return Plan{Failure: &Failure{ReasonConversion, err.Error()}}
		}
		step := Step{Op: OpCreate, Object: obj, Copy: made}
		if exists {
			step.Op, step.Target = OpComplete, c
		}
		p.Steps = append(p.Steps, step)
	}
	switch {
	case len(p.Steps) > 0:
	case p.Done < p.Total:
		return Plan{Failure: &Failure{ReasonConversion, "owner references of objects form a circle"}}
	default:
		p.Next = Repoint
	}
	return p
}

// repoint gives everything that names a key of uids as an owner the value in its place.
func (o Observed) repoint(uids map[types.UID]types.UID) Plan {
	p := Plan{Total: len(o.Dependents)}
	for _, d := range o.Dependents {
		owners := repointed(d.Owners, uids)
		if owners == nil {
			p.Done++
			continue
		}
		p.Steps = append(p.Steps, Step{Op: OpRepoint, Dependent: d, Owners: owners})
	}
	if len(p.Steps) == 0 {
		p.Next = Verify
	}
	return p
}

// verify compares each object with its copy, and looks that nothing is owned by what goes.
func (o Observed) verify(next Phase) Plan {
	to, uids := byID(o.To), o.uids()
	var places []string
	for _, obj := range o.From {
		c, exists := to[obj.ID()]
		if !exists {
			places = append(places, obj.ID().String()+": no copy exists")
			continue
		}
		if obj.deleting() && len(obj.GetFinalizers()) == 0 {
			continue // the API server is taking it away
		}
		places = append(places, different(obj, c, uids)...)
		delete(to, obj.ID())
	}
	for id := range to {
		places = append(places, id.String()+": the original does not exist")
	}
	if len(places) > 0 {
		slices.Sort(places)
		return Plan{Failure: &Failure{ReasonMismatch, "copies differ from their originals: " + some(places)}}
	}
	if p := o.repoint(uids); len(p.Steps) > 0 {
		return Plan{Failure: &Failure{ReasonConcurrent, fmt.Sprintf("someone gave %s %s an owner in the old API group while objects were being moved", p.Steps[0].Dependent.Resource.Resource, p.Steps[0].Dependent.Name)}}
	}
	return Plan{Next: next, Done: len(o.From), Total: len(o.From)}
}

// redeploy is how often programs that don't come are deployed again, as the HostedCluster says by then: what keeps them may be corrected there.
const redeploy = 30 * time.Second

// available waits for the programs, which can only look: everything is paused.
func (o Observed) available() Plan {
	p := Plan{Total: len(o.Programs), Ordered: true}
	var missing []string
	for _, program := range o.Programs {
		wanted := program.Before != nil && *program.Before > 0
		switch {
		case wanted && program.Replicas == 0 && program.ours():
			p.Steps = append(p.Steps, Step{Op: OpScale, Program: program, Replicas: *program.Before})
			missing = append(missing, program.Name)
		case wanted && !program.Available:
			missing = append(missing, program.Name)
		default:
			p.Done++
		}
	}
	if len(missing) == 0 {
		p.Next = Unpause
		return p
	}
	p.Wait = "waiting for " + some(missing)
	if o.Now.Sub(o.Deployed) >= redeploy {
		p.Steps = append(p.Steps, Step{Op: OpDeploy, Private: o.Journal.Direction.Private(), Awake: true})
	}
	return p
}

// unpause lets the kinds work again, one after the other.
func (o Observed) unpause(objs []Object, next Phase) Plan {
	p, least := Plan{Total: len(objs)}, 0
	for _, obj := range objs {
		if ours, _ := obj.paused(); !ours && !obj.isCopy() {
			p.Done++
			continue
		}
		r := rank(obj.ID())
		if len(p.Steps) == 0 || r < least {
			least, p.Steps = r, nil
		}
		if r == least {
			p.Steps = append(p.Steps, Step{Op: OpUnpause, Object: obj})
		}
	}
	if len(p.Steps) == 0 {
		p.Next = next
	}
	return p
}

// release lets the old objects go, what others own before its owners, once nothing has them as owners and nobody has a right to them.
func (o Observed) release() Plan {
	from := rightsIn(!o.Journal.Direction.Private(), o.Rights)
	if from != "" {
		return Plan{Steps: []Step{{Op: OpDeploy, Private: o.Journal.Direction.Private(), Awake: true}}, Wait: "programs still have rights in group " + from}
	}
	for _, program := range o.Programs {
		if from := rightsIn(!o.Journal.Direction.Private(), program.Rights); from != "" {
			return Plan{Wait: program.Name + " still has rights in group " + from}
		}
	}
	if p := o.repoint(o.uids()); len(p.Steps) > 0 {
		return p
	}
	p := o.drop(o.From)
	if len(p.Steps) == 0 {
		p.Next = Finish
	}
	return p
}

// drop takes away those objects that own none of the others.
func (o Observed) drop(objs []Object) Plan {
	p, owner := Plan{Total: len(objs)}, map[types.UID]bool{}
	for _, obj := range objs {
		for _, r := range obj.GetOwnerReferences() {
			owner[r.UID] = true
		}
	}
	for _, obj := range objs {
		if !owner[obj.GetUID()] {
			p.Steps = append(p.Steps, Step{Op: OpRelease, Object: obj})
		}
	}
	return p
}

// finish forgets last how many replicas there were: if the journal is lost, nothing else shows any more that there is a move.
func (o Observed) finish() Plan {
	private := o.Journal.Direction.Private()
	p := Plan{Next: Completed, Ordered: true}
	for i := range o.Pools {
		if (o.Pools[i].Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true") != private {
			p.Steps = append(p.Steps, Step{Op: OpNotePool, Pool: &o.Pools[i], Private: private})
		}
	}
	p.Steps = append(p.Steps, o.forget()...)
	return p
}

// begun tells that there are traces of a move in the objects and programs: it was begun, and is not over.
func (o Observed) begun() bool {
	return slices.ContainsFunc(slices.Concat(o.From, o.To), func(obj Object) bool { ours, _ := obj.paused(); return ours || obj.isCopy() }) ||
		slices.ContainsFunc(o.Programs, func(p Program) bool { return p.Before != nil })
}

// forget takes the notes off programs, how many there were of each.
func (o Observed) forget() (steps []Step) {
	for _, program := range o.Programs {
		if program.Before != nil {
			steps = append(steps, Step{Op: OpRestore, Program: program, Replicas: program.Replicas})
		}
	}
	return steps
}
