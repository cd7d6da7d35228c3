package hostedcluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/teardown"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/events"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/platform"
)

// Reasons of condition HostedClusterDestroyed besides those of the API.
const (
	// ReasonWaitingForDependents: the message says what is still there, since when, and what may be done about it.
	ReasonWaitingForDependents = "WaitingForDependents"
)

// eventDeletionBlocked is the reason of an event that is no reason of a condition.
const eventDeletionBlocked = "DeletionBlocked"

// documentsRecheck is how often it is looked whether the OIDC documents of a hosted cluster are gone; their finalizer tells it, too.
const documentsRecheck = 10 * time.Second

// remover takes away what was made for HostedClusters.
func (r *Reconciler) remover() teardown.Remover {
	return teardown.Remover{Client: r.Client, Live: r.Live, ClusterAPI: r.Capabilities.ClusterAPI}
}

// finalize makes the next move of a deletion, and removes our finalizer when nothing is left.
func (r *Reconciler) finalize(ctx context.Context, hc *hyperv1.HostedCluster) (_ ctrl.Result, err error) {
	if !hasFinalizer(hc) {
		return ctrl.Result{}, nil
	}
	before := hc.DeepCopy()
	remover := r.remover()
	left, err := remover.Observe(ctx, hc)
	if err != nil {
		return ctrl.Result{}, err
	}
	conditions.Set(&hc.Status.Conditions, r.Clock.Now(), repeated(hc, left.HostedControlPlane())...)
	next := teardown.PlanFor(left, r.Clock.Now())
	if next.Done() {
		next = documentsLeft(hc)
	}
	if !next.Done() {
		conditions.Set(&hc.Status.Conditions, r.Clock.Now(), destroying(hc, metav1.ConditionFalse, ReasonWaitingForDependents, "Waiting for "+strings.Join(next.Waiting, ", ")))
		err := errors.Join(remover.Apply(ctx, left, next), patch.Status(ctx, r.Client, before, hc))
		r.tellSlowDeletion(hc, next.Waiting)
		return ctrl.Result{RequeueAfter: next.RecheckAfter}, err
	}
	if err := remover.Sweep(ctx, hc); err != nil {
		return ctrl.Result{}, err
	}
	if wait := r.gracePeriod(hc); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, patch.Status(ctx, r.Client, before, hc)
	}
	r.Journal.Forget(hc.UID)
	r.uids.Forget(names.NamespaceOf(hc))
	r.adopted.Forget(client.ObjectKeyFromObject(hc))
	ctrl.LoggerFrom(ctx).Info("removed the hosted cluster", "since", hc.DeletionTimestamp)
	// An optimistic lock: somebody else may have added a finalizer since.
	return ctrl.Result{}, patch.RemoveFinalizer(ctx, r.Client, hc, hyperv1.HostedClusterFinalizer)
}

// repeated are conditions of the control plane that a HostedCluster which goes has, too; none once the control plane is gone.
func repeated(hc *hyperv1.HostedCluster, hcp *hyperv1.HostedControlPlane) []metav1.Condition {
	if hcp == nil {
		return nil
	}
	var list []metav1.Condition
	if c := conditions.Get(hcp.Status.Conditions, hyperv1.CloudResourcesDestroyed); c != nil {
		list = append(list, conditions.New(c.Type, c.Status, c.Reason, c.Message))
	}
	p, err := platform.For(hc.Spec.Platform.Type)
	if err != nil {
		return list // it was refused, and has made nothing
	}
	if reporter, ok := p.(platform.DeletionReporter); ok {
		list = append(list, reporter.DeletionConditions(hcp)...)
	}
	for i := range list {
		list[i].ObservedGeneration = hc.Generation
	}
	return list
}

// documentsLeft waits for the program that published OIDC documents to remove them, which is the last that a hosted cluster has outside.
func documentsLeft(hc *hyperv1.HostedCluster) teardown.Plan {
	if !slices.Contains(hc.Finalizers, hyperv1.AWSOIDCDiscoveryFinalizer) {
		return teardown.Plan{}
	}
	why := "hcp-cloud removes them from the bucket"
	if c := conditions.Get(hc.Status.Conditions, hyperv1.ValidOIDCConfiguration); c != nil && c.Status == metav1.ConditionFalse {
		why = c.Message
	}
	return teardown.Plan{RecheckAfter: documentsRecheck, Waiting: []string{fmt.Sprintf("its OIDC documents (%s; an operator without --oidc-storage-provider-s3-bucket-name never does: "+
		"install it with the bucket, or delete the documents by hand and remove finalizer %s)", why, hyperv1.AWSOIDCDiscoveryFinalizer)}}
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

// Deletions end within a minute as a rule. What takes longer is told, and again while it lasts.
const (
	deletionSlow  = 3 * time.Minute
	deletionAgain = 10 * time.Minute
)

// tellSlowDeletion says what a deletion waits for that takes longer than it should.
func (r *Reconciler) tellSlowDeletion(hc *hyperv1.HostedCluster, waiting []string) {
	now := r.Clock.Now()
	age := now.Sub(hc.DeletionTimestamp.Time)
	if r.Events == nil || age < deletionSlow || len(waiting) == 0 || !r.toldDeletions.Allow(string(hc.UID), now, deletionAgain) {
		return
	}
	events.Event(r.Events, hc, true, eventDeletionBlocked, "Delete", fmt.Sprintf("After %s, waiting for %s", age.Truncate(time.Second), strings.Join(waiting, ", ")))
}

// removeVanished makes the next move of removing what is left of a HostedCluster that was deleted in the moment in which it was taken on.
func (r *Reconciler) removeVanished(ctx context.Context, key types.NamespacedName) (ctrl.Result, error) {
	hc := r.adopted.Get(key, r.Clock.Now())
	if hc == nil {
		return ctrl.Result{}, nil // gone as it should be
	}
	// The cache may be behind: the object, or another of the same name, may exist. Its own passes do the rest then.
	live, err := read.Optional(ctx, r.Live, key, &hyperv1.HostedCluster{})
	if err != nil {
		return ctrl.Result{}, err
	}
	if live != nil {
		return ctrl.Result{}, outcome.ErrStale
	}
	r.adopted.Keep(key)
	remover := r.remover()
	left, err := remover.Observe(ctx, hc)
	if err != nil {
		return ctrl.Result{}, err
	}
	if next := teardown.PlanFor(left, r.Clock.Now()); !next.Done() {
		return ctrl.Result{RequeueAfter: next.RecheckAfter}, remover.Apply(ctx, left, next)
	}
	if err := remover.Sweep(ctx, hc); err != nil {
		return ctrl.Result{}, err
	}
	r.uids.Forget(names.NamespaceOf(hc))
	r.adopted.Forget(key)
	ctrl.LoggerFrom(ctx).Info("removed what was left of a hosted cluster that was deleted as soon as it was created")
	return ctrl.Result{}, nil
}
