package inplace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/hold"
)

// eventDrainTimeout is on a Node that is changed with pods on it.
const eventDrainTimeout = "DrainTimeout"

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
		more, err := d.drain(ctx, request{node: name, target: target, held: held, timeout: drainTimeout(set)})
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
	// timeout is how long the drain may last; 0: for ever.
	timeout time.Duration
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
	if err := d.begin(ctx, node, drain); err != nil {
		return true, err
	}
	if drain {
		left, refused, err := d.evict(ctx, node)
		over := req.timeout > 0 && d.Clock.Since(since(node.Annotations, d.Clock.Now())) >= req.timeout
		switch {
		case err == nil && left == 0:
		case left == 0 || !over:
			return true, errors.Join(err, d.noteBlocked(ctx, node, refused))
		default:
			d.tellOver(ctx, node, left, req.timeout)
		}
	}
	before := node.DeepCopy()
	delete(node.Annotations, drainBlocked)
	delete(node.Annotations, drainStarted)
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, lastAppliedDrain, node.Annotations[desiredDrain])
	if err := d.Hosted.Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return true, fmt.Errorf("noting the drain of Node %s: %w", name, err)
	}
	ctrl.LoggerFrom(ctx).Info("drained or opened a node", "node", name, "drained", drain)
	return finishing, nil
}

// begin closes a node to new pods and notes since when it drains, or opens it.
func (d *Drainer) begin(ctx context.Context, node *corev1.Node, drain bool) error {
	note := node.Annotations[drainStarted]
	if drain {
		note = since(node.Annotations, d.Clock.Now()).UTC().Format(time.RFC3339) + " " + node.Annotations[desiredDrain]
	}
	if node.Spec.Unschedulable == drain && node.Annotations[drainStarted] == note {
		return nil
	}
	before := node.DeepCopy()
	node.Spec.Unschedulable = drain
	if drain {
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, drainStarted, note)
	}
	if err := d.Hosted.Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cordoning Node %s: %w", node.Name, err)
	}
	return nil
}

// since is when the drain that a node asks for began: now, unless its note tells. The note of another drain tells nothing, nor does one of the future.
func since(annotations map[string]string, now time.Time) time.Time {
	when, what, _ := strings.Cut(annotations[drainStarted], " ")
	began, err := time.Parse(time.RFC3339, when)
	if err != nil || what != annotations[desiredDrain] || began.After(now) {
		return now
	}
	return began
}

// drainTimeout is spec.nodeDrainTimeout of the NodePool; 0: none.
func drainTimeout(set *clusterv1.MachineSet) time.Duration {
	return time.Duration(ptr.Deref(set.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds, 0)) * time.Second
}

// tellOver says that a node is changed with pods on it. The drain doesn't fail where that can't be written: nobody could repeat it afterwards.
func (d *Drainer) tellOver(ctx context.Context, node *corev1.Node, left int, timeout time.Duration) {
	log := ctrl.LoggerFrom(ctx)
	log.Info("ended a drain that lasted too long", "node", node.Name, "timeout", timeout, "pods", left)
	now := metav1.NewTime(d.Clock.Now())
	id := sha256.Sum256([]byte(string(node.UID) + "/" + node.Annotations[drainStarted])) // so that a process that starts anew doesn't write it again
	err := d.Hosted.Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("drain-%x", id[:16])},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
		Type:           corev1.EventTypeWarning, Reason: eventDrainTimeout, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Message: fmt.Sprintf("the drain has lasted for %s (spec.nodeDrainTimeout of the NodePool): the node is changed with %d of its pods still there", timeout, left),
		Source:  corev1.EventSource{Component: DrainController}, ReportingController: DrainController,
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		log.Error(err, "writing the event about a drain that lasted too long", "node", node.Name)
	}
}

// refusal is a pod that may not be evicted, and why in few words; empty: a budget keeps it, or nobody knows.
type refusal struct {
	pod *corev1.Pod
	why string
}

// evict asks every pod to go that has to, by the eviction API, which keeps disruption budgets. It returns how many are left, and which of
// them may not go.
func (d *Drainer) evict(ctx context.Context, node *corev1.Node) (left int, refused []refusal, err error) {
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
				if no != nil {
					mu.Lock()
					defer mu.Unlock()
					refused = append(refused, *no)
				}
				return err
			})
		}
	}
	err = group.Wait()
	return left, refused, err
}

// noteBlocked writes on the node what its drain waits for, when that changes. Nothing does when pods are just ending.
func (d *Drainer) noteBlocked(ctx context.Context, node *corev1.Node, refused []refusal) error {
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
func (d *Drainer) whyBlocked(ctx context.Context, refused []refusal) (string, error) {
	slices.SortFunc(refused, func(a, b refusal) int {
		return cmp.Or(cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	var parts []string
	for _, r := range refused[:min(len(refused), maxNamed)] {
		budgets := &policyv1.PodDisruptionBudgetList{}
		if err := d.Hosted.List(ctx, budgets, client.InNamespace(r.pod.Namespace), client.Limit(maxPods)); err != nil {
			return "", fmt.Errorf("listing the disruption budgets of namespace %s: %w", r.pod.Namespace, err)
		}
		parts = append(parts, fmt.Sprintf("pod %s/%s may not be evicted%s", r.pod.Namespace, r.pod.Name, r.because(budgets.Items)))
	}
	if more := len(refused) - maxNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", "), nil
}

// because names the budgets that keep the pod, or what else the API said. The API refuses to evict a pod that several budgets select, whatever they allow.
func (r refusal) because(budgets []policyv1.PodDisruptionBudget) string {
	var all []string
	spent := false
	for _, b := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(r.pod.Labels)) {
			continue
		}
		all = append(all, b.Name)
		spent = spent || b.Status.DisruptionsAllowed < 1
	}
	switch {
	case len(all) > 1:
		return " because several PodDisruptionBudgets select it: " + strings.Join(all[:min(len(all), maxNamed)], ", ")
	case r.why != "":
		return " because " + r.why
	case spent:
		return " because of PodDisruptionBudget " + all[0]
	}
	return ""
}

// evictOne asks one pod to go. Where a disruption budget forbids it for now, the API server names a time after which the
// client would ask again by itself; it isn't waited for, as the next pass asks anyway.
func (d *Drainer) evictOne(ctx context.Context, pod *corev1.Pod) (*refusal, error) {
	bounded, cancel := context.WithTimeout(ctx, evictionTimeout)
	defer cancel()
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	}
	err := d.Hosted.SubResource("eviction").Create(bounded, pod, eviction)
	answer := apierrors.APIStatus(nil)
	switch {
	case apierrors.IsTooManyRequests(err) || ctx.Err() == nil && errors.Is(bounded.Err(), context.DeadlineExceeded):
		return &refusal{pod: pod}, nil
	case err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err): // one that has gone or was replaced is another pod
		return nil, nil
	case errors.As(err, &answer):
		// Other evictions go on, and this one is tried again. What a webhook says isn't repeated: its words are the tenant's.
		code := int(answer.Status().Code)
		return &refusal{pod, fmt.Sprintf("the hosted cluster's API refuses it (%d %s)", code, http.StatusText(code))}, nil
	}
	return nil, fmt.Errorf("evicting pod %s/%s: %w", pod.Namespace, pod.Name, err)
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
