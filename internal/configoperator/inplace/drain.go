package inplace

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Drainer empties nodes that ask for it, and lets pods in again. It looks at nodes of sets that are being changed in place
// and at no others.
type Drainer struct {
	Management client.Reader // uncached
	Hosted     client.Client // uncached
	Clock      clock.PassiveClock
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
	var errs []error
	waiting := target != set.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation]
	for i := range list.Items {
		name := list.Items[i].Status.NodeRef.Name
		if owner := metav1.GetControllerOf(&list.Items[i]); name == "" || owner == nil || owner.UID != set.UID {
			continue
		}
		more, err := d.drain(ctx, name)
		waiting = waiting || more
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return ctrl.Result{}, err
	}
	if waiting {
		return ctrl.Result{RequeueAfter: drainPoll}, nil
	}
	return ctrl.Result{}, nil
}

// drain does what one node asks for, as far as it gets. more tells that something is left.
func (d *Drainer) drain(ctx context.Context, name string) (more bool, err error) {
	node := &corev1.Node{}
	if err := d.Hosted.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("reading Node %s: %w", name, err))
	}
	drain, ok := drainOf(node.Annotations)
	if !ok {
		return false, nil
	}
	if err := d.cordon(ctx, node, drain); err != nil {
		return true, err
	}
	if drain {
		left, err := d.evict(ctx, node)
		if err != nil || left > 0 {
			return true, err
		}
	}
	before := node.DeepCopy()
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, lastAppliedDrain, node.Annotations[desiredDrain])
	if err := d.Hosted.Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return true, fmt.Errorf("noting the drain of Node %s: %w", name, err)
	}
	ctrl.LoggerFrom(ctx).Info("drained or opened a node", "node", name, "drained", drain)
	return false, nil
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

// evict asks every pod to go that has to, by the eviction API, which keeps disruption budgets. It returns how many are left.
func (d *Drainer) evict(ctx context.Context, node *corev1.Node) (left int, err error) {
	pods := &corev1.PodList{}
	if err := d.Hosted.List(ctx, pods, client.MatchingFields{"spec.nodeName": node.Name}, client.Limit(maxPods)); err != nil {
		return 0, fmt.Errorf("listing the pods of Node %s: %w", node.Name, err)
	}
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
			group.Go(func() error { return d.evictOne(ctx, pod) })
		}
	}
	return left, group.Wait()
}

// evictOne asks one pod to go. Where a disruption budget forbids it for now, the API server names a time after which the
// client would ask again by itself; it isn't waited for, as the next pass asks anyway.
func (d *Drainer) evictOne(ctx context.Context, pod *corev1.Pod) error {
	bounded, cancel := context.WithTimeout(ctx, evictionTimeout)
	defer cancel()
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	}
	err := d.Hosted.SubResource("eviction").Create(bounded, pod, eviction)
	notYet := apierrors.IsTooManyRequests(err) || ctx.Err() == nil && errors.Is(bounded.Err(), context.DeadlineExceeded)
	// One that has gone or was replaced is another pod.
	if err == nil || notYet || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("evicting pod %s/%s: %w", pod.Namespace, pod.Name, err)
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
