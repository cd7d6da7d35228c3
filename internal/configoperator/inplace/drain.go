package inplace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/hold"
)

// Drainer empties nodes that ask for it, and lets pods in again. It looks at nodes of sets that are being changed in place
// and at no others.
type Drainer struct {
	Management client.Reader // uncached
	Hosted     client.Client // uncached
	Clock      clock.PassiveClock
	// Hold says why no other drain is to be begun, if so.
	Hold hold.Func
}

// Reconcile makes one pass over the nodes of the MachineSet of the request. It doesn't wait for pods to end: it looks again.
func (d *Drainer) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	set := &clusterv1.MachineSet{}
	if err := d.Management.Get(ctx, req.NamespacedName, set); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("reading MachineSet %s: %w", req, err))
	}
	target := set.Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation]
	if target == "" || !set.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	list := &clusterv1.MachineList{}
	if err := d.Management.List(ctx, list, client.InNamespace(set.Namespace), client.MatchingLabels(set.Spec.Selector.MatchLabels)); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the Machines of MachineSet %s: %w", req, err)
	}
	held, after, err := whyHeld(ctx, d.Management, set, d.Hold, d.Clock.Now())
	if err != nil {
		return ctrl.Result{}, err
	}
	var errs []error
	waiting := held == "" && target != set.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation]
	for i := range list.Items {
		name := list.Items[i].Status.NodeRef.Name
		if owner := metav1.GetControllerOf(&list.Items[i]); name == "" || owner == nil || owner.UID != set.UID {
			continue
		}
		more, err := d.drain(ctx, request{node: name, target: target, held: held})
		waiting = waiting || more
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return ctrl.Result{}, err
	}
	if waiting && after > 0 {
		return ctrl.Result{RequeueAfter: min(drainPoll, after)}, nil
	}
	if waiting {
		return ctrl.Result{RequeueAfter: drainPoll}, nil
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// request is what a node may ask for.
type request struct {
	node, target string
	// held says why no drain may begin but those of nodes under way; empty: nothing holds.
	held string
}

// drain does what one node asks for, as far as it gets. more tells that something is left, or may be asked for at any time although something holds.
func (d *Drainer) drain(ctx context.Context, req request) (more bool, err error) {
	name, node := req.node, &corev1.Node{}
	if err := d.Hosted.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("reading Node %s: %w", name, err))
	}
	said := Machine{Node: name}
	said.hear(node)
	finishing := req.held != "" && said.underWay(req.target)
	drain, ok := drainOf(node.Annotations)
	if !ok {
		return finishing, nil
	}
	if drain && req.held != "" && !finishing {
		ctrl.LoggerFrom(ctx).V(1).Info("no drain is begun while something holds", "node", name, "reason", req.held)
		return false, nil
	}
	if err := d.cordon(ctx, node, drain); err != nil {
		return true, err
	}
	if drain {
		left, refused, err := d.evict(ctx, node)
		if err != nil || left > 0 {
			return true, errors.Join(err, d.noteBlocked(ctx, node, refused))
		}
	}
	before := node.DeepCopy()
	delete(node.Annotations, drainBlocked)
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, lastAppliedDrain, node.Annotations[desiredDrain])
	if err := d.Hosted.Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return true, fmt.Errorf("noting the drain of Node %s: %w", name, err)
	}
	ctrl.LoggerFrom(ctx).Info("drained or opened a node", "node", name, "drained", drain)
	return finishing, nil
}

func (d *Drainer) cordon(ctx context.Context, node *corev1.Node, closed bool) error {
	if node.Spec.Unschedulable == closed {
		return nil
	}
	before := node.DeepCopy()
	node.Spec.Unschedulable = closed
	if err := d.Hosted.Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cordoning Node %s: %w", node.Name, err)
	}
	return nil
}

// evict asks every pod to go that has to, by the eviction API, which keeps disruption budgets. It returns how many are left, and which of
// them a budget keeps.
func (d *Drainer) evict(ctx context.Context, node *corev1.Node) (left int, refused []*corev1.Pod, err error) {
	pods := &corev1.PodList{}
	if err := d.Hosted.List(ctx, pods, client.MatchingFields{"spec.nodeName": node.Name}, client.Limit(maxPods)); err != nil {
		return 0, nil, fmt.Errorf("listing the pods of Node %s: %w", node.Name, err)
	}
	var mu sync.Mutex
	ready := answers(node)
	var group errgroup.Group
	group.SetLimit(maxEvictions)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !evictable(pod, node.Name, ready, d.Clock.Now()) {
			continue
		}
		left++
		if pod.DeletionTimestamp.IsZero() {
			group.Go(func() error {
				no, err := d.evictOne(ctx, pod)
				if no {
					mu.Lock()
					defer mu.Unlock()
					refused = append(refused, pod)
				}
				return err
			})
		}
	}
	err = group.Wait()
	return left, refused, err
}

// noteBlocked writes on the node what its drain waits for, when that changes. Nothing does when pods are just ending.
func (d *Drainer) noteBlocked(ctx context.Context, node *corev1.Node, refused []*corev1.Pod) error {
	why, err := d.whyBlocked(ctx, refused)
	if err != nil || why == node.Annotations[drainBlocked] {
		return err
	}
	before := node.DeepCopy()
	if why == "" {
		delete(node.Annotations, drainBlocked)
	} else {
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, drainBlocked, why)
	}
	if err := d.Hosted.Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("noting what the drain of Node %s waits for: %w", node.Name, err)
	}
	return nil
}

// whyBlocked names pods and the budgets that keep them.
func (d *Drainer) whyBlocked(ctx context.Context, refused []*corev1.Pod) (string, error) {
	slices.SortFunc(refused, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var parts []string
	for _, pod := range refused[:min(len(refused), maxNamed)] {
		budgets := &policyv1.PodDisruptionBudgetList{}
		if err := d.Hosted.List(ctx, budgets, client.InNamespace(pod.Namespace), client.Limit(maxPods)); err != nil {
			return "", fmt.Errorf("listing the disruption budgets of namespace %s: %w", pod.Namespace, err)
		}
		part := fmt.Sprintf("pod %s/%s may not be evicted", pod.Namespace, pod.Name)
		for i := range budgets.Items {
			b := &budgets.Items[i]
			selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
			if err == nil && selector.Matches(labels.Set(pod.Labels)) && b.Status.DisruptionsAllowed < 1 {
				part += " because of PodDisruptionBudget " + b.Name
			}
		}
		parts = append(parts, part)
	}
	if more := len(refused) - maxNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", "), nil
}

// evictOne asks one pod to go. Where a disruption budget forbids it for now, the API server names a time after which the
// client would ask again by itself; it isn't waited for, as the next pass asks anyway.
func (d *Drainer) evictOne(ctx context.Context, pod *corev1.Pod) (refused bool, err error) {
	bounded, cancel := context.WithTimeout(ctx, evictionTimeout)
	defer cancel()
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	}
	err = d.Hosted.SubResource("eviction").Create(bounded, pod, eviction)
	notYet := apierrors.IsTooManyRequests(err) || ctx.Err() == nil && errors.Is(bounded.Err(), context.DeadlineExceeded)
	// One that has gone or was replaced is another pod.
	if err == nil || notYet || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return notYet, nil
	}
	return false, fmt.Errorf("evicting pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

// answers reports whether the node's kubelet is heard of.
func answers(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
