package hostedcluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hcp.internal/platform/internal/hostedcluster/sources"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/kubeapiserver"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/platform"
)

// Reasons of condition HostedClusterDestroyed besides those of the API.
const (
	// ReasonWaitingForDependents: the message says what is still there, since when, and what may be done about it.
	ReasonWaitingForDependents = "WaitingForDependents"
)

// The control-plane-operator has a finalizer on the HostedControlPlane, so that it can remove what lies outside the namespace. On platforms
// whose clusters lie in their namespace altogether (platform.Contained) there is nothing of the kind, and the finalizer must not hold up the
// deletion when nobody is there to remove it: these are the times after which we do.
const (
	// operatorGone: without a Deployment nothing will ever remove it. A moment, because our cache may be behind.
	operatorGone = 2 * time.Second
	// operatorDown: a pod that is just restarting needs some seconds.
	operatorDown = 5 * time.Second
	// operatorStuck: it runs, and removing a finalizer takes it milliseconds.
	operatorStuck = 20 * time.Second
)

// podGrace is how long a pod of a destroyed control plane may take to end, in seconds. Its own grace period, 135 s for kube-apiserver, is there
// for clients, and there are none any more.
const podGrace = 1

// deletionPoll is how often the remaining objects are looked at when no event comes.
const deletionPoll = 5 * time.Second

// teardown is the next move of a deletion. The zero value means that nothing is left.
type teardown struct {
	delete []client.Object
	// hurry are pods to end within podGrace.
	hurry []client.Object
	// empty: delete workloads and what they use, so that pods end and none comes again.
	empty bool
	// annotateCleanup passes the wish to clean up cloud resources on to the HostedControlPlane.
	annotateCleanup bool
	// stripFinalizers of the HostedControlPlane: nobody else will.
	stripFinalizers bool
	// orphans: nobody removes the finalizers of machines that are being deleted.
	orphans bool
	// unpauseCluster lets Cluster API remove what belongs to the Cluster.
	unpauseCluster bool
	// stripCluster: nobody else will remove the finalizer of the Cluster.
	stripCluster bool
	waiting      []string // what is waited for, for people
	recheckAfter time.Duration
}

func (t teardown) done() bool { return len(t.waiting) == 0 }

// planTeardown decides the next move. The order is such that what cleans up outlives what it cleans up: NodePools, HostedControlPlane, and the
// namespace, in which the operators run, last.
func planTeardown(r remains, now time.Time) teardown {
	t := teardown{recheckAfter: deletionPoll}
	// Also while NodePools are waited for: their machines are of the paused cluster.
	t.unpauseCluster = r.cluster != nil && ptr.Deref(r.cluster.Spec.Paused, false)
	for i := range r.pools {
		np := &r.pools[i]
		if np.DeletionTimestamp.IsZero() {
			t.delete = append(t.delete, np)
		}
		t.waiting = append(t.waiting, waitingFor("NodePool", np, "its controller removes the machines first"))
	}
	if len(r.pools) > 0 {
		// Machines of a cluster that is being deleted are not drained: there is nowhere for their pods to go, and a disruption budget
		// would hold the last one for ever. Cluster API deletes the HostedControlPlane after the last machine.
		if r.cluster != nil && r.cluster.DeletionTimestamp.IsZero() {
			t.delete = append(t.delete, r.cluster)
		}
		t.orphans = orphaned(r, now)
		return t
	}
	if r.cluster != nil {
		planCluster(r, now, &t)
	}
	if r.hcp != nil {
		planControlPlane(r, now, &t)
	}
	if len(t.waiting) > 0 {
		return t
	}
	if r.namespace == nil || r.hc.Annotations[hyperv1.SkipControlPlaneNamespaceDeletionAnnotation] == "true" {
		return teardown{}
	}
	if r.namespace.Annotations[hyperv1.HostedClusterAnnotation] != names.BackReference(r.hc) {
		return teardown{} // it was never ours
	}
	if r.namespace.DeletionTimestamp.IsZero() {
		// A namespace controller that finds a pod waits for half of the time that the pod may take to end, 68 s for kube-apiserver, before
		// it looks again. It shall find none. On the way there, everything that would make new ones goes.
		t.empty = true
		t.recheckAfter = emptyPoll
		if endingFor(r.pods, now) < emptyLongest {
			t.hurry = inHurry(r)
			t.waiting = []string{waitingForPods(r.pods)}
			return t
		}
		t.delete = []client.Object{r.namespace}
		t.recheckAfter = time.Second
	}
	// Whoever would have removed finalizers in it ends with it.
	t.orphans = r.contained && !r.namespace.DeletionTimestamp.IsZero()
	t.hurry = inHurry(r)
	t.waiting = []string{waitingFor("Namespace", r.namespace, namespaceHint(r.namespace))}
	return t
}

const (
	// emptyPoll is how often the pods of a namespace are looked at that is about to be deleted.
	emptyPoll = time.Second
	// emptyLongest is how long pods that were told to end are waited for before the namespace is deleted all the same: their node may be
	// gone. It is many times what they take on a busy one.
	emptyLongest = 20 * time.Second
)

// endingFor is how long every pod there is has been told to end, or longer; emptyLongest without pods, and 0 when one has not been told.
func endingFor(pods []metav1.PartialObjectMetadata, now time.Time) time.Duration {
	least := emptyLongest
	for i := range pods {
		deleted := pods[i].DeletionTimestamp
		if deleted.IsZero() {
			return 0
		}
		// The timestamp is when the grace period ends.
		told := deleted.Add(-time.Duration(ptr.Deref(pods[i].DeletionGracePeriodSeconds, 0)) * time.Second)
		least = min(least, now.Sub(told))
	}
	return least
}

// inHurry are the pods that are to end within podGrace. A namespace that is being deleted takes no new pods, and one that is emptied has
// nobody who makes them.
func inHurry(r remains) []client.Object {
	var pods []client.Object
	for i := range r.pods {
		if pod := &r.pods[i]; r.contained && (pod.DeletionGracePeriodSeconds == nil || *pod.DeletionGracePeriodSeconds > podGrace) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// maxNamed bounds how many pods a message names.
const maxNamed = 8

func waitingForPods(pods []metav1.PartialObjectMetadata) string {
	var names []string
	for i := range pods {
		names = append(names, pods[i].Name)
	}
	slices.Sort(names)
	text := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("pods %s to end", text)
}

func planControlPlane(r remains, now time.Time, t *teardown) {
	t.annotateCleanup = r.hc.Annotations[hyperv1.CleanupCloudResourcesAnnotation] == "true" && r.hcp.Annotations[hyperv1.CleanupCloudResourcesAnnotation] != "true"
	if r.hcp.DeletionTimestamp.IsZero() {
		t.delete = append(t.delete, r.hcp)
		t.waiting = append(t.waiting, waitingFor("HostedControlPlane", r.hcp, "the control-plane-operator cleans up first"))
		return
	}
	hint := "the control-plane-operator removes its finalizer when it has cleaned up"
	if r.contained {
		allowance := operatorStuck
		switch {
		case r.operator == nil:
			allowance, hint = operatorGone, "the control-plane-operator is gone, so its finalizer is removed soon"
		case r.operator.Status.AvailableReplicas == 0:
			allowance, hint = operatorDown, "the control-plane-operator does not run, so its finalizer is removed soon"
		}
		left := r.hcp.DeletionTimestamp.Add(allowance).Sub(now)
		t.stripFinalizers = left <= 0
		t.recheckAfter = min(t.recheckAfter, max(left, time.Second))
	} else if c := conditions.Get(r.hcp.Status.Conditions, hyperv1.CloudResourcesDestroyed); c != nil && c.Status != metav1.ConditionTrue {
		hint = c.Message
	}
	t.waiting = append(t.waiting, waitingFor("HostedControlPlane", r.hcp, hint))
}

// waitingFor says which object is still there, since when, and why.
func waitingFor(kind string, obj client.Object, hint string) string {
	name := client.ObjectKeyFromObject(obj).String()
	if obj.GetNamespace() == "" {
		name = obj.GetName()
	}
	if deleted := obj.GetDeletionTimestamp(); !deleted.IsZero() {
		return fmt.Sprintf("%s %s, being deleted since %s (%s)", kind, name, deleted.UTC().Format(time.RFC3339), hint)
	}
	return fmt.Sprintf("%s %s (%s)", kind, name, hint)
}

// namespaceHint repeats what the namespace controller says is left.
func namespaceHint(ns *corev1.Namespace) string {
	var left []string
	for _, c := range ns.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Message != "" {
			left = append(left, c.Message)
		}
	}
	if len(left) == 0 {
		return "its pods and other objects go first"
	}
	return strings.Join(left, "; ")
}

// finalize makes the next move of a deletion, and removes our finalizer when nothing is left.
func (r *Reconciler) finalize(ctx context.Context, hc *hyperv1.HostedCluster) (_ ctrl.Result, err error) {
	if !hasFinalizer(hc) {
		return ctrl.Result{}, nil
	}
	before := hc.DeepCopy()
	left, err := r.remains(ctx, hc)
	if err != nil {
		return ctrl.Result{}, err
	}
	next := planTeardown(left, r.Clock.Now())
	if !next.done() {
		conditions.Set(&hc.Status.Conditions, r.Clock.Now(), destroying(hc, metav1.ConditionFalse, ReasonWaitingForDependents, "Waiting for "+strings.Join(next.waiting, ", ")))
		err := errors.Join(r.teardown(ctx, left, next), patch.Status(ctx, r.Client, before, hc))
		r.tellSlowDeletion(hc, next.waiting)
		return ctrl.Result{RequeueAfter: next.recheckAfter}, err
	}
	if err := r.sweep(ctx, hc); err != nil {
		return ctrl.Result{}, err
	}
	if wait := r.gracePeriod(hc); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, patch.Status(ctx, r.Client, before, hc)
	}
	r.uids.Forget(names.NamespaceOf(hc))
	r.adopted.forget(client.ObjectKeyFromObject(hc))
	ctrl.LoggerFrom(ctx).Info("removed the hosted cluster", "since", hc.DeletionTimestamp)
	// An optimistic lock: somebody else may have added a finalizer since.
	return ctrl.Result{}, patch.RemoveFinalizer(ctx, r.Client, hc, hyperv1.HostedClusterFinalizer)
}

func hasFinalizer(hc *hyperv1.HostedCluster) bool {
	for _, f := range hc.Finalizers {
		if f == hyperv1.HostedClusterFinalizer {
			return true
		}
	}
	return false
}

func destroying(hc *hyperv1.HostedCluster, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	c := conditions.New(hyperv1.HostedClusterDestroyed, status, reason, message)
	c.ObservedGeneration = hc.Generation
	return c
}

// teardown carries a move out.
func (r *Reconciler) teardown(ctx context.Context, left remains, next teardown) error {
	var errs []error
	if next.annotateCleanup {
		before := left.hcp.DeepCopy()
		left.hcp.Annotations[hyperv1.CleanupCloudResourcesAnnotation] = "true"
		if err := r.Client.Patch(ctx, left.hcp, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("asking HostedControlPlane %s to clean up cloud resources: %w", client.ObjectKeyFromObject(left.hcp), err)
		}
	}
	if next.unpauseCluster {
		if err := unpause(ctx, r.Client, left.cluster); err != nil {
			return err
		}
	}
	remove := func(obj client.Object, opts ...client.DeleteOption) {
		// The UID keeps us from deleting a successor of the same name.
		uid := obj.GetUID()
		err := r.Client.Delete(ctx, obj, append(opts, client.Preconditions{UID: &uid})...)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("deleting %T %s: %w", obj, client.ObjectKeyFromObject(obj), err))
		}
	}
	if next.empty {
		errs = append(errs, r.empty(ctx, left.namespace.Name, left.contained))
	}
	for _, obj := range next.delete {
		remove(obj)
	}
	for _, pod := range next.hurry {
		remove(pod, client.GracePeriodSeconds(podGrace))
	}
	if next.stripFinalizers {
		if err := kubeapiserver.End(ctx, r.Client, left.hcp.Namespace); err != nil { // as the control-plane-operator would have
			ctrl.LoggerFrom(ctx).Error(err, "the control plane takes longer to go")
		}
		ctrl.LoggerFrom(ctx).Info("removing the finalizers of a HostedControlPlane that its operator does not remove", "finalizers", left.hcp.Finalizers)
		errs = append(errs, patch.RemoveFinalizer(ctx, r.Client, left.hcp, hyperv1.HostedControlPlaneFinalizer))
	}
	if next.orphans {
		errs = append(errs, r.deleteOrphans(ctx, left.hc))
	}
	if next.stripCluster {
		ctrl.LoggerFrom(ctx).Info("removing the finalizer of a Cluster that its manager does not remove")
		errs = append(errs, patch.RemoveFinalizer(ctx, r.Client, left.cluster, clusterv1.ClusterFinalizer))
	}
	return errors.Join(errs...)
}

// empty deletes what makes pods in a namespace, and what takes a while to go: volumes, load balancers. Whoever makes them anew is gone, or
// goes with it.
//
// Where nobody is served any more (contained), pods are told first, and how little time they have: once a kubelet waits for the 135 s of a
// kube-apiserver, which the collector of garbage would tell it, it hears of no shorter time. What a workload makes meanwhile is told after
// it.
func (r *Reconciler) empty(ctx context.Context, namespace string, contained bool) error {
	var errs []error
	all := func(kind client.Object, opts ...client.DeleteAllOfOption) {
		opts = append(opts, client.InNamespace(namespace), client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err := r.Client.DeleteAllOf(ctx, kind, opts...); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("deleting every %T of namespace %s: %w", kind, namespace, err))
		}
	}
	// Somebody may make workloads for ever: the operator of packages does, for an add-on beside the control plane.
	if err := r.Client.Create(ctx, noPods(namespace)); err != nil && !apierrors.IsAlreadyExists(err) {
		errs = append(errs, fmt.Errorf("closing namespace %s for new pods: %w", namespace, err))
	}
	var soon []client.DeleteAllOfOption
	if contained {
		soon = append(soon, client.GracePeriodSeconds(podGrace))
		all(&corev1.Pod{}, soon...)
	}
	for _, kind := range []client.Object{&appsv1.Deployment{}, &appsv1.StatefulSet{}, &batchv1.CronJob{}, &batchv1.Job{}, &appsv1.ReplicaSet{}} {
		all(kind)
	}
	all(&corev1.Pod{}, soon...)
	all(&corev1.Service{})
	all(&corev1.PersistentVolumeClaim{})
	return errors.Join(errs...)
}

// noPods is a quota that no new pod passes.
func noPods(namespace string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "no-pods-while-destroyed"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}
}

// sweep removes what the namespace does not take with it: cluster-scoped objects, things of the platform, and our annotations on the user's
// objects.
func (r *Reconciler) sweep(ctx context.Context, hc *hyperv1.HostedCluster) error {
	var errs []error
	if p, err := platform.For(hc.Spec.Platform.Type); err == nil {
		errs = append(errs, p.DeleteCredentials(ctx, r.Client, hc, names.NamespaceOf(hc)))
	}
	owned := client.MatchingLabels{OwnerNamespaceLabel: hc.Namespace, OwnerNameLabel: hc.Name}
	for _, obj := range []client.Object{&rbacv1.ClusterRoleBinding{}, &rbacv1.ClusterRole{}} {
		errs = append(errs, r.deleteOwned(ctx, obj, owned))
	}
	return errors.Join(append(errs, sources.Unmark(ctx, r.Client, r.Live, hc))...)
}

// deleteOwned deletes all objects of a kind with the labels, one by one: install grants no right to delete collections.
func (r *Reconciler) deleteOwned(ctx context.Context, obj client.Object, labels client.MatchingLabels) error {
	gvk, err := r.Client.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk)
	if err := r.Live.List(ctx, list, labels); err != nil {
		return fmt.Errorf("listing %ss of %v: %w", gvk.Kind, labels, err)
	}
	var errs []error
	for i := range list.Items {
		item := &list.Items[i]
		if err := r.Client.Delete(ctx, item, client.Preconditions{UID: &item.UID}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("deleting %s %s: %w", gvk.Kind, item.Name, err))
		}
	}
	return errors.Join(errs...)
}

// gracePeriod is how long the HostedCluster has to stay although everything is gone. It starts with the condition that says so.
func (r *Reconciler) gracePeriod(hc *hyperv1.HostedCluster) time.Duration {
	grace, err := time.ParseDuration(hc.Annotations[hyperv1.HCDestroyGracePeriodAnnotation])
	if err != nil || grace <= 0 {
		return 0
	}
	now := r.Clock.Now()
	conditions.Set(&hc.Status.Conditions, now, destroying(hc, metav1.ConditionTrue, hyperv1.WaitingForGracePeriodReason,
		fmt.Sprintf("Everything is removed; the object stays for %s (annotation %s)", grace, hyperv1.HCDestroyGracePeriodAnnotation)))
	since := conditions.Get(hc.Status.Conditions, hyperv1.HostedClusterDestroyed).LastTransitionTime
	return max(since.Add(grace).Sub(now), 0)
}
