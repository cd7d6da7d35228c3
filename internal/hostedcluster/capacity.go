package hostedcluster

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
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/release"
)

// Modes of Capacity, the values of --control-plane-capacity.
const (
	// CapacityAuto waits, unless something on the management cluster adds nodes when pods wait for them.
	CapacityAuto = "Auto"
	// CapacityWait makes nothing of a control plane before there is room for all of it.
	CapacityWait = "Wait"
	// CapacityIgnore makes everything at once and leaves the rest to the scheduler.
	CapacityIgnore = "Ignore"
)

const (
	// capacityRecheck heals events that were lost, and keeps messages of those that wait for long up to date.
	capacityRecheck = time.Minute
	// unseenFor is how long a HostedCluster that nobody has looked at yet holds its place in the queue. It takes a moment as a rule; nobody
	// shall wait for one that never will be looked at.
	unseenFor = time.Minute
	// woken is how many of those that wait are looked at when there is more room. Each that starts wakes the next.
	woken = 10
)

// Capacity decides when control planes may start. What exists is never held back; what was admitted and can't be seen yet in caches is
// remembered, so that two passes at the same time can't give the same room away twice. A restart of the operator loses nothing but that, and
// by then caches have caught up.
type Capacity struct {
	// Reader reads nodes, pods, HostedClusters and HostedControlPlanes from caches that CapacityCache bounds.
	Reader client.Reader
	// Grows says what adds nodes when pods wait for them; empty: nothing does.
	Grows func(context.Context) (why string, _ error)
	// Demands works out what a control plane asks for, as it would be of a release; nil: of any.
	Demands func(context.Context, *hyperv1.HostedControlPlane, *release.Release) ([]capacity.Group, *capacity.Group, error)
	// Operator tells which HostedClusters are in the queue.
	Operator operator.Identity
	Clock    clock.PassiveClock

	mu      sync.Mutex
	granted map[types.UID]grant
	waiting map[types.UID]waiter
	// decided counts decisions by what they were, for metrics; see capacity_metrics.go.
	decided map[string]float64
	wake    chan event.GenericEvent
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

// admission is what became of the question whether a control plane may start.
type admission struct {
	waits           bool
	reason, message string
}

// admit finds out whether the control plane may start. It asks only when nothing else keeps it from that.
func (r *Reconciler) admit(ctx context.Context, obs *observed, now time.Time) (err error) {
	c := r.Capacity
	if c == nil {
		return nil
	}
	obs.admission = &admission{reason: hyperv1.AsExpectedReason, message: "The control plane has its room"}
	if obs.exists() {
		c.settle(obs)
		return nil
	}
	if !obs.open(now) {
		obs.admission = nil
		c.forget(obs.hc.UID)
		return nil
	}
	obs.admission, err = c.decide(ctx, obs)
	return err
}

// exists tells that something of the control plane has been made. Its namespace is made after it was admitted, and nothing before.
func (obs *observed) exists() bool {
	if obs.hcp != nil {
		return true
	}
	ns := obs.namespace
	return ns != nil && ns.DeletionTimestamp.IsZero() && ns.Annotations[hyperv1.HostedClusterAnnotation] == names.BackReference(obs.hc)
}

// open tells that all other gates are.
func (obs *observed) open(now time.Time) bool {
	return decideGates(obs, now).open() && obs.target != nil
}

// settle ends what was remembered of a control plane that exists.
func (c *Capacity) settle(obs *observed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if obs.hcp != nil {
		delete(c.granted, obs.hc.UID)
	}
	delete(c.waiting, obs.hc.UID)
}

// forget takes a HostedCluster out of the queue, and gives back what was kept for it.
func (c *Capacity) forget(uid types.UID) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, granted := c.granted[uid]
	_, waited := c.waiting[uid]
	delete(c.granted, uid)
	delete(c.waiting, uid)
	if granted || waited {
		c.nudge()
	}
}

// freed is forget for a HostedCluster that is being deleted: what its pods held comes free bit by bit.
func (c *Capacity) freed(uid types.UID) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.granted, uid)
	delete(c.waiting, uid)
	c.nudge()
}

// forgetKey is forget for one that is gone altogether.
func (c *Capacity) forgetKey(key client.ObjectKey) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, w := range c.waiting {
		if w.key == key {
			delete(c.waiting, uid)
			c.nudge()
		}
	}
}

// errNoDemand says that what a control plane asks for can't be worked out: its spec contradicts itself.
var errNoDemand = errors.New("working out what the control plane asks for")

// decide looks at the queue, with the HostedCluster in it.
func (c *Capacity) decide(ctx context.Context, obs *observed) (*admission, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	admitted := &admission{reason: hyperv1.AsExpectedReason, message: "The control plane has its room"}
	if _, ok := c.granted[obs.hc.UID]; ok {
		return admitted, nil
	}
	w, own, err := c.world(ctx, obs)
	if errors.Is(err, errNoDemand) {
		// Whoever renders it will say what is wrong; there is nothing that could be kept for it.
		ctrl.LoggerFrom(ctx).Info("a control plane starts without having been asked for room", "reason", err.Error())
		return admitted, nil
	}
	if err != nil {
		return nil, fmt.Errorf("finding out whether there is room for the control plane of %s: %w", names.BackReference(obs.hc), err)
	}
	verdict := capacity.Decide(w)[names.BackReference(obs.hc)]
	// A management cluster without a single node is none that its nodes tell anything about.
	if !verdict.Admitted && len(w.Nodes)+w.Closed > 0 {
		why, err := c.Grows(ctx)
		if err != nil {
			return nil, err
		}
		if why == "" {
			c.remember(obs.hc, verdict.Missing)
			return &admission{waits: true, reason: hyperv1.WaitingForCapacityReason, message: verdict.Message(w.Closed)}, nil
		}
		admitted.reason, admitted.message = hyperv1.CapacityGrowsReason, "There is no room for all of the control plane now, but nodes are added when pods wait: "+why
	}
	if c.granted == nil {
		c.granted = map[types.UID]grant{}
	}
	c.granted[obs.hc.UID] = grant{names.NamespaceOf(obs.hc), own}
	c.count(admitted.reason)
	if _, waited := c.waiting[obs.hc.UID]; waited {
		delete(c.waiting, obs.hc.UID)
		c.nudge()
	}
	return admitted, nil
}

func (c *Capacity) remember(hc *hyperv1.HostedCluster, missing capacity.Amounts) {
	if c.waiting == nil {
		c.waiting = map[types.UID]waiter{}
	}
	_, known := c.waiting[hc.UID]
	c.waiting[hc.UID] = waiter{client.ObjectKeyFromObject(hc), hc.CreationTimestamp.Time, hc.Spec.ClusterID, missing}
	if !known {
		c.count(hyperv1.WaitingForCapacityReason)
		c.nudge() // the messages of the others say how long the queue is
	}
}

// queued tells whether a HostedCluster is in the queue, as far as its object says.
func (c *Capacity) queued(hc *hyperv1.HostedCluster, now time.Time) bool {
	if _, granted := c.granted[hc.UID]; granted || !hc.DeletionTimestamp.IsZero() || pause.At(hc.Spec.PausedUntil, now).Active {
		return false
	}
	if o := c.Operator.Owns(hc.Annotations); o != operator.Ours && o != operator.Unclaimed {
		return false
	}
	status := hc.Status.Conditions
	if len(status) == 0 {
		return now.Sub(hc.CreationTimestamp.Time) < unseenFor
	}
	return conditions.IsFalse(status, hyperv1.ControlPlaneAdmitted)
}

// nudge has the first of those that wait looked at. It never blocks: when the channel is full, somebody is about to look.
func (c *Capacity) nudge() {
	for _, key := range c.first() {
		hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		select {
		case c.wake <- event.GenericEvent{Object: hc}:
		default:
		}
	}
}

// first are the keys of those that wait longest.
func (c *Capacity) first() []client.ObjectKey {
	list := slices.SortedFunc(maps.Values(c.waiting), func(a, b waiter) int { return a.created.Compare(b.created) })
	var keys []client.ObjectKey
	for _, w := range list[:min(len(list), woken)] {
		keys = append(keys, w.key)
	}
	return keys
}

// requests are passes over those that wait longest, for an event that may have made room.
func (c *Capacity) requests(context.Context, client.Object) []reconcile.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []reconcile.Request
	for _, key := range c.first() {
		out = append(out, reconcile.Request{NamespacedName: key})
	}
	return out
}

// admittedCondition is absent where nobody asks, and while another gate is closed.
func admittedCondition(obs *observed) *metav1.Condition {
	if obs.admission == nil {
		return nil
	}
	status := metav1.ConditionTrue
	if obs.admission.waits {
		status = metav1.ConditionFalse
	}
	c := conditions.New(hyperv1.ControlPlaneAdmitted, status, obs.admission.reason, obs.admission.message)
	return &c
}
