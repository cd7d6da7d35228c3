package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/autoscaler/simulate"
	"hcp.internal/platform/internal/capacity"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	packagepod "hcp.internal/platform/internal/packages/control/pod"
	"hcp.internal/platform/internal/platform/machine"
)

// connectorLabel is on the pod of a connector.
const connectorLabel = "app.kubernetes.io/name"

// KeepPod keeps of a pod what it asks for and what decides where it may be: all pods of a management cluster are in the cache, and
// those of thousands of hosted clusters are many. Containers become one with the sum.
func KeepPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, DeletionTimestamp: pod.DeletionTimestamp,
			CreationTimestamp: pod.CreationTimestamp,
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if name, ok := pod.Labels[component.ControlPlaneComponentLabel]; ok {
		out.Labels = map[string]string{component.ControlPlaneComponentLabel: name}
	} else if pod.Labels[connectorLabel] == packagepod.ConnectorName {
		// It is no component, but room is kept for it as for one: see connectorOf.
		out.Labels = map[string]string{component.ControlPlaneComponentLabel: packagepod.ConnectorName}
	}
	if text, ok := pod.Annotations[machine.WaitingForRoomAnnotation]; ok {
		out.Annotations = map[string]string{machine.WaitingForRoomAnnotation: text}
	}
	out.Spec.NodeName = pod.Spec.NodeName
	out.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})}}}
	if pod.Spec.NodeName == "" {
		out.Spec.NodeSelector, out.Spec.Tolerations, out.Spec.SchedulingGates = pod.Spec.NodeSelector, pod.Spec.Tolerations, pod.Spec.SchedulingGates
		if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			out.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			}}
		}
	}
	return out, nil
}

// KeepNode keeps of a node what pods are placed by.
func KeepNode(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	out := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels, DeletionTimestamp: node.DeletionTimestamp},
		Spec:       corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable, PodCIDR: node.Spec.PodCIDR, PodCIDRs: node.Spec.PodCIDRs},
		Status:     corev1.NodeStatus{Allocatable: node.Status.Allocatable},
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return out, nil
}

// RoomChanged passes what may make room: pods that end, and nodes that change at all, of which caches hold what counts.
func RoomChanged() predicate.Predicate {
	ended := func(obj client.Object) bool { pod, ok := obj.(*corev1.Pod); return ok && terminal(pod) }
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { _, node := e.Object.(*corev1.Node); return node },
		UpdateFunc: func(e event.UpdateEvent) bool {
			if _, node := e.ObjectNew.(*corev1.Node); node {
				return nodeChanged(e.ObjectOld, e.ObjectNew)
			}
			return ended(e.ObjectNew) && !ended(e.ObjectOld)
		},
	}
}

func nodeChanged(before, after client.Object) bool {
	a, ok1 := before.(*corev1.Node)
	b, ok2 := after.(*corev1.Node)
	return ok1 && ok2 && (takesPods(a) != takesPods(b) || !maps.Equal(a.Labels, b.Labels) || !maps.Equal(simulate.AmountsOf(a.Status.Allocatable), simulate.AmountsOf(b.Status.Allocatable)) ||
		!slices.EqualFunc(a.Spec.Taints, b.Spec.Taints, func(x, y corev1.Taint) bool { return x.Key == y.Key && x.Value == y.Value && x.Effect == y.Effect }))
}

func terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func takesPods(n *corev1.Node) bool {
	return !n.Spec.Unschedulable && n.DeletionTimestamp.IsZero() && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// world reads everything that a decision about a HostedCluster looks at. own are the pods of its control plane.
func (q *Queue) world(ctx context.Context, one Candidate) (w capacity.World, own []capacity.Group, _ error) {
	w, started, t, err := q.room(ctx)
	if err != nil {
		return w, nil, err
	}
	for _, m := range t.gated { // what runs may grow before something new starts
		w.Others = append(w.Others, m.Groups...)
	}
	hcs := &hyperv1.HostedClusterList{}
	if err := q.Reader.List(ctx, hcs, client.UnsafeDisableDeepCopy); err != nil {
		return w, nil, fmt.Errorf("listing HostedClusters: %w", err)
	}
	now := q.Clock.Now()
	for i := range hcs.Items {
		hc := &hcs.Items[i]
		if hc.UID == one.HostedCluster.UID || started[client.ObjectKeyFromObject(hc)] || !q.queued(hc, now) {
			continue
		}
		groups, spare, err := q.Demands(ctx, q.Render(hc), nil)
		if err != nil {
			continue // the pass over it says so
		}
		w.Queue = append(w.Queue, capacity.Candidate{Name: names.BackReference(hc), Created: hc.CreationTimestamp.Time, Groups: groups, Spare: spare})
	}
	groups, spare, err := q.Demands(ctx, one.ControlPlane, one.Release)
	if err != nil {
		return w, nil, fmt.Errorf("%w: %w", errNoDemand, err)
	}
	w.Queue = append(w.Queue, capacity.Candidate{Name: names.BackReference(one.HostedCluster), Created: one.HostedCluster.CreationTimestamp.Time, Groups: groups, Spare: spare})
	return w, groups, nil
}

// room reads what there is room for, without a queue. started are the HostedClusters that have a HostedControlPlane.
func (q *Queue) room(ctx context.Context) (w capacity.World, started map[types.NamespacedName]bool, _ *tally, _ error) {
	hcps := &hyperv1.HostedControlPlaneList{}
	pods, nodes := &corev1.PodList{}, &corev1.NodeList{}
	for _, list := range []client.ObjectList{hcps, pods, nodes} {
		if err := q.Reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return w, nil, nil, fmt.Errorf("listing %T: %w", list, err)
		}
	}
	hosted := map[string]bool{}
	for i := range hcps.Items {
		hosted[hcps.Items[i].Namespace] = true
	}
	for _, g := range q.granted {
		hosted[g.namespace] = true
	}
	t := tallyOf(pods.Items, hosted)
	w.Nodes, w.Closed = t.nodes(nodes.Items)
	w.Others = t.pending
	started = map[types.NamespacedName]bool{}
	for i := range hcps.Items {
		hcp := &hcps.Items[i]
		if !hcp.DeletionTimestamp.IsZero() {
			continue
		}
		if key, ok := names.ParseBackReference(hcp.Annotations[hyperv1.HostedClusterAnnotation]); ok {
			started[key] = true
		}
		groups, _, err := q.Demands(ctx, hcp, nil)
		if err != nil {
			continue // its control-plane-operator says what is wrong with it, and it takes no pods for that
		}
		w.Reserved = append(w.Reserved, t.missing(hcp.Namespace, groups)...)
	}
	for _, g := range q.granted {
		if !slices.ContainsFunc(hcps.Items, func(hcp hyperv1.HostedControlPlane) bool { return hcp.Namespace == g.namespace }) {
			w.Reserved = append(w.Reserved, t.missing(g.namespace, g.groups)...)
		}
	}
	return w, started, t, nil
}

// tally is pods counted.
type tally struct {
	used    map[string]simulate.Amounts // by node
	foreign map[string]simulate.Amounts // by node: those of no hosted cluster
	// scheduled are the nodes of a component's pods, by namespace and component.
	scheduled map[[2]string][]string
	pending   []capacity.Group
	gated     []capacity.Candidate // machines that wait for room
	places    map[string]*corev1.Node
}

func tallyOf(pods []corev1.Pod, hosted map[string]bool) *tally {
	t := &tally{used: map[string]simulate.Amounts{}, foreign: map[string]simulate.Amounts{}, scheduled: map[[2]string][]string{}}
	count := func(to map[string]simulate.Amounts, node string, requests corev1.ResourceList) {
		if to[node] == nil {
			to[node] = simulate.Amounts{}
		}
		for name, n := range simulate.AmountsOf(requests) {
			to[node][name] += n
		}
		to[node][corev1.ResourcePods]++
	}
	for i := range pods {
		pod := &pods[i]
		name, ours := pod.Labels[component.ControlPlaneComponentLabel]
		ours = ours && hosted[pod.Namespace]
		switch {
		case terminal(pod):
		case pod.Spec.NodeName != "":
			requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
			count(t.used, pod.Spec.NodeName, requests)
			if !hosted[pod.Namespace] {
				count(t.foreign, pod.Spec.NodeName, requests)
			}
			if ours && pod.DeletionTimestamp.IsZero() {
				key := [2]string{pod.Namespace, name}
				t.scheduled[key] = append(t.scheduled[key], pod.Spec.NodeName)
			}
		case gatedMachine(pod):
			t.gated = append(t.gated, capacity.Candidate{Name: pod.Namespace + "/" + pod.Name, Created: pod.CreationTimestamp.Time,
				Groups: []capacity.Group{{Component: "the machine", Pod: simulate.Analyse(pod), Count: 1}}})
		case !ours && pod.DeletionTimestamp.IsZero() && len(pod.Spec.SchedulingGates) == 0:
			t.pending = append(t.pending, capacity.Group{Component: pod.Namespace + "/" + pod.Name, Pod: simulate.Analyse(pod), Count: 1})
		}
	}
	return t
}

// nodes are those that take pods; closed is how many don't.
func (t *tally) nodes(list []corev1.Node) (out []capacity.Node, closed int) {
	t.places = map[string]*corev1.Node{}
	for i := range list {
		n := &list[i]
		t.places[n.Name] = n
		if !takesPods(n) {
			closed++
			continue
		}
		node := capacity.Node{Object: n, Free: simulate.AmountsOf(n.Status.Allocatable), Base: simulate.AmountsOf(n.Status.Allocatable)}
		for name, used := range t.used[n.Name] {
			node.Free[name] -= used
		}
		for name, used := range t.foreign[n.Name] {
			node.Base[name] -= used
		}
		out = append(out, node)
	}
	return out, closed
}

// missing are the pods of a control plane that have no place yet.
func (t *tally) missing(namespace string, groups []capacity.Group) []capacity.Group {
	var out []capacity.Group
	for _, g := range groups {
		on := t.scheduled[[2]string{namespace, g.Component}]
		if g.Count -= len(on); g.Count <= 0 {
			continue
		}
		for _, name := range on {
			if n := t.places[name]; n != nil && g.Apart != "" {
				g.Places = append(slices.Clone(g.Places), n.Labels[g.Apart])
			}
		}
		g.Component += " of " + namespace
		out = append(out, g)
	}
	return out
}

// Room is what there is room for now, without a queue, for those who want to know what would fit.
func (q *Queue) Room(ctx context.Context) (capacity.World, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w, _, t, err := q.room(ctx)
	if err != nil {
		return w, err
	}
	for _, m := range t.gated {
		w.Others = append(w.Others, m.Groups...)
	}
	return w, nil
}
