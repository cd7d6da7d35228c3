package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hcp.internal/platform/internal/capacity"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/platform/machine"
)

// Machines takes the scheduling gate off pods of machines when there is room for them that no control plane has been promised. Machines of
// hosted clusters that run come before control planes that wait: what runs may grow.
type Machines struct {
	Client client.Client
	Queue  *Queue // nil: the gate goes at once

	mu       sync.Mutex
	waiting  map[types.NamespacedName]bool
	released map[types.UID]bool // of pods that the cache shows behind the gate still
}

// gatedMachine tells that a pod is a machine behind the gate.
func gatedMachine(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp.IsZero() && gateIndex(pod) >= 0
}

func gateIndex(pod *corev1.Pod) int {
	return slices.IndexFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == machine.RoomGate })
}

// SetupWithManager adds the controller.
func (m *Machines) SetupWithManager(mgr ctrl.Manager) error {
	gated := predicate.NewPredicateFuncs(func(obj client.Object) bool { pod, ok := obj.(*corev1.Pod); return ok && gatedMachine(pod) })
	b := ctrl.NewControllerManagedBy(mgr).Named("machineroom").
		Watches(&corev1.Pod{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(gated))
	if m.Queue != nil {
		room := handler.EnqueueRequestsFromMapFunc(m.requests)
		b = b.Watches(&corev1.Pod{}, room, builder.WithPredicates(RoomChanged())).Watches(&corev1.Node{}, room, builder.WithPredicates(RoomChanged()))
	}
	return b.Complete(outcome.Wrap(m))
}

// requests are passes over all machines that wait.
func (m *Machines) requests(context.Context, client.Object) []reconcile.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []reconcile.Request
	for key := range m.waiting {
		out = append(out, reconcile.Request{NamespacedName: key})
	}
	return out
}

// Reconcile lets one machine through, or says what there is no room for.
func (m *Machines) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	err := m.Client.Get(ctx, req.NamespacedName, pod)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil || !gatedMachine(pod) {
		delete(m.waiting, req.NamespacedName)
		delete(m.released, pod.UID)
		return ctrl.Result{}, nil
	}
	if m.Queue == nil {
		return ctrl.Result{}, m.open(ctx, pod)
	}
	if m.waiting == nil {
		m.waiting, m.released = map[types.NamespacedName]bool{}, map[types.UID]bool{}
	}
	if m.released[pod.UID] {
		return ctrl.Result{}, nil
	}
	verdict, closed, err := m.decide(ctx, req.String())
	if err != nil {
		return ctrl.Result{}, err
	}
	if verdict.Admitted {
		delete(m.waiting, req.NamespacedName)
		if err := m.open(ctx, pod); err != nil {
			return ctrl.Result{}, err
		}
		m.released[pod.UID] = true
		return ctrl.Result{}, nil
	}
	m.waiting[req.NamespacedName] = true
	return ctrl.Result{RequeueAfter: Recheck}, m.say(ctx, pod, verdict.MachineMessage(closed))
}

// decide looks at the machines that wait, with this one among them. Those that were let through a moment ago are admitted again, being the
// older ones, and keep their room that way until caches show them.
func (m *Machines) decide(ctx context.Context, name string) (capacity.Verdict, int, error) {
	c := m.Queue
	c.mu.Lock()
	defer c.mu.Unlock()
	w, _, t, err := c.room(ctx)
	if err != nil {
		return capacity.Verdict{}, 0, fmt.Errorf("finding out whether there is room for machine %s: %w", name, err)
	}
	w.Queue = t.gated
	verdict := capacity.Decide(w)[name]
	if why, err := c.Grows(ctx); !verdict.Admitted && (err != nil || why != "") {
		verdict.Admitted = err == nil
		return verdict, w.Closed, err
	}
	return verdict, w.Closed, nil
}

// open takes the gate off, and no other.
func (m *Machines) open(ctx context.Context, pod *corev1.Pod) error {
	i := gateIndex(pod)
	path := fmt.Sprintf("/spec/schedulingGates/%d", i)
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": path + "/name", "value": machine.RoomGate}, {"op": "remove", "path": path},
	})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	if err := m.Client.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(names.HypershiftOperator)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("letting machine %s/%s be scheduled: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// say writes on the pod what there is no room for; its provider reports it.
func (m *Machines) say(ctx context.Context, pod *corev1.Pod, message string) error {
	if pod.Annotations[machine.WaitingForRoomAnnotation] == message {
		return nil
	}
	if err := m.Client.Patch(ctx, pod.DeepCopy(), patch.Annotation(machine.WaitingForRoomAnnotation, &message), client.FieldOwner(names.HypershiftOperator)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotating pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
