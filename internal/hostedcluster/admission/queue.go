package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capacity"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/release"
)

// Modes of a Queue, the values of --control-plane-capacity.
const (
	// Auto waits, unless something on the management cluster adds nodes when pods wait for them.
	Auto = "Auto"
	// Wait makes nothing of a control plane before there is room for all of it.
	Wait = "Wait"
	// Ignore makes everything at once and leaves the rest to the scheduler.
	Ignore = "Ignore"
)

const (
	// Recheck heals events that were lost, and keeps messages of those that wait for long up to date.
	Recheck = time.Minute
	// unseenFor is how long a HostedCluster that nobody has looked at yet holds its place in the queue. It takes a moment as a rule; nobody
	// shall wait for one that never will be looked at.
	unseenFor = time.Minute
	// woken is how many of those that wait are looked at when there is more room. Each that starts wakes the next.
	woken = 10
)

// Queue decides when control planes may start. What exists is never held back; what was admitted and can't be seen yet in caches is
// remembered, so that two passes at the same time can't give the same room away twice. A restart of the operator loses nothing but that, and
// by then caches have caught up.
type Queue struct {
	// Reader reads nodes, pods, HostedClusters and HostedControlPlanes from caches that hold what KeepPod and KeepNode leave.
	Reader client.Reader
	// Grows says what adds nodes when pods wait for them; empty: nothing does.
	Grows func(context.Context) (why string, _ error)
	// Demands works out what a control plane asks for, as it would be of a release; nil: of any.
	Demands func(context.Context, *hyperv1.HostedControlPlane, *release.Release) ([]capacity.Group, *capacity.Group, error)
	// Operator tells which HostedClusters are in the queue.
	Operator scope.Identity
	// Render makes the control plane of a HostedCluster as it would be without its NodePools.
	Render func(*hyperv1.HostedCluster) *hyperv1.HostedControlPlane
	Clock  clock.PassiveClock

	mu      sync.Mutex
	granted map[types.UID]grant
	waiting map[types.UID]waiter
	// decided counts decisions by what they were, for metrics; see metrics.go.
	decided map[string]float64
	Wake    chan event.GenericEvent // the HostedClusters to be looked at
}

// grant is a control plane that may start and is not in the cache yet.
type grant struct {
	namespace string
	groups    []capacity.Group
}

// waiter is a HostedCluster whose control plane was not admitted.
type waiter struct {
	key       client.ObjectKey
	created   time.Time
	clusterID string
	missing   capacity.Amounts
}

// Decision is what became of the question whether a control plane may start.
type Decision struct {
	Waits           bool
	Reason, Message string
}

// Settle ends what was remembered of a control plane of which something exists. seen tells that caches show it.
func (q *Queue) Settle(uid types.UID, seen bool) *Decision {
	q.mu.Lock()
	defer q.mu.Unlock()
	if seen {
		delete(q.granted, uid)
	}
	delete(q.waiting, uid)
	return admitted()
}

func admitted() *Decision {
	return &Decision{Reason: hyperv1.AsExpectedReason, Message: "The control plane has room"}
}

// Forget takes a HostedCluster out of the queue, and gives back what was kept for it.
func (q *Queue) Forget(uid types.UID) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	_, granted := q.granted[uid]
	_, waited := q.waiting[uid]
	delete(q.granted, uid)
	delete(q.waiting, uid)
	if granted || waited {
		q.nudge()
	}
}

// Freed is Forget for a HostedCluster that is being deleted: what its pods held comes free bit by bit.
func (q *Queue) Freed(uid types.UID) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.granted, uid)
	delete(q.waiting, uid)
	q.nudge()
}

// ForgetKey is Forget for one that is gone altogether.
func (q *Queue) ForgetKey(key client.ObjectKey) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for uid, w := range q.waiting {
		if w.key == key {
			delete(q.waiting, uid)
			q.nudge()
		}
	}
}

// errNoDemand says that what a control plane asks for can't be worked out: its spec contradicts itself.
var errNoDemand = errors.New("working out what the control plane asks for")

// Candidate is a HostedCluster whose control plane may start or not.
type Candidate struct {
	HostedCluster *hyperv1.HostedCluster
	// ControlPlane is its control plane as it would be made.
	ControlPlane *hyperv1.HostedControlPlane
	// Release is that of the control plane.
	Release *release.Release
}

// Decide looks at the queue, with the candidate in it. It is asked only when nothing else keeps the control plane from being made.
func (q *Queue) Decide(ctx context.Context, one Candidate) (*Decision, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	decision := admitted()
	if _, ok := q.granted[one.HostedCluster.UID]; ok {
		return decision, nil
	}
	w, own, err := q.world(ctx, one)
	if errors.Is(err, errNoDemand) {
		// Whoever renders it will say what is wrong; there is nothing that could be kept for it.
		ctrl.LoggerFrom(ctx).Info("started a control plane without checking whether there is room", "reason", err.Error())
		return decision, nil
	}
	if err != nil {
		return nil, fmt.Errorf("finding out whether there is room for the control plane of %s: %w", names.BackReference(one.HostedCluster), err)
	}
	verdict := capacity.Decide(w)[names.BackReference(one.HostedCluster)]
	// A management cluster without a single node is none that its nodes tell anything about.
	if !verdict.Admitted && len(w.Nodes)+w.Closed > 0 {
		why, err := q.Grows(ctx)
		if err != nil {
			return nil, err
		}
		if why == "" {
			q.remember(one.HostedCluster, verdict.Missing)
			return &Decision{Waits: true, Reason: hyperv1.WaitingForCapacityReason, Message: waiting(one.HostedCluster, verdict.Message(w.Closed))}, nil
		}
		decision.Reason, decision.Message = hyperv1.CapacityGrowsReason, "There is no room for all of the control plane now, but nodes are added when pods wait: "+why
	}
	if q.granted == nil {
		q.granted = map[types.UID]grant{}
	}
	q.granted[one.HostedCluster.UID] = grant{names.NamespaceOf(one.HostedCluster), own}
	q.count(decision.Reason)
	if _, waited := q.waiting[one.HostedCluster.UID]; waited {
		delete(q.waiting, one.HostedCluster.UID)
		q.nudge()
	}
	return decision, nil
}

// waiting is what a control plane waits for: nodes for its requests alone, as long as there are none that could be given to it, else room.
func waiting(hc *hyperv1.HostedCluster, room string) string {
	if c := conditions.Get(hc.Status.Conditions, hyperv1.RequestServingNodesReady); c != nil && c.Status == metav1.ConditionFalse {
		return "The control plane is waiting for dedicated nodes: " + c.Message
	}
	return room
}

func (q *Queue) remember(hc *hyperv1.HostedCluster, missing capacity.Amounts) {
	if q.waiting == nil {
		q.waiting = map[types.UID]waiter{}
	}
	_, known := q.waiting[hc.UID]
	q.waiting[hc.UID] = waiter{client.ObjectKeyFromObject(hc), hc.CreationTimestamp.Time, hc.Spec.ClusterID, missing}
	if !known {
		q.count(hyperv1.WaitingForCapacityReason)
		q.nudge() // the messages of the others say how long the queue is
	}
}

// queued tells whether a HostedCluster is in the queue, as far as its object says.
func (q *Queue) queued(hc *hyperv1.HostedCluster, now time.Time) bool {
	if _, granted := q.granted[hc.UID]; granted || !hc.DeletionTimestamp.IsZero() || pause.At(hc.Spec.PausedUntil, now).Active {
		return false
	}
	if o := q.Operator.Owns(hc.Annotations); o != scope.Ours && o != scope.Unclaimed {
		return false
	}
	status := hc.Status.Conditions
	if len(status) == 0 {
		return now.Sub(hc.CreationTimestamp.Time) < unseenFor
	}
	return conditions.IsFalse(status, hyperv1.ControlPlaneAdmitted)
}

// nudge has the first of those that wait looked at. It never blocks: when the channel is full, somebody is about to look.
func (q *Queue) nudge() {
	for _, key := range q.first() {
		hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		select {
		case q.Wake <- event.GenericEvent{Object: hc}:
		default:
		}
	}
}

// first are the keys of those that wait longest.
func (q *Queue) first() []client.ObjectKey {
	list := slices.SortedFunc(maps.Values(q.waiting), func(a, b waiter) int { return a.created.Compare(b.created) })
	var keys []client.ObjectKey
	for _, w := range list[:min(len(list), woken)] {
		keys = append(keys, w.key)
	}
	return keys
}

// Requests are passes over those that wait longest, for an event that may have made room.
func (q *Queue) Requests(context.Context, client.Object) []reconcile.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []reconcile.Request
	for _, key := range q.first() {
		out = append(out, reconcile.Request{NamespacedName: key})
	}
	return out
}
