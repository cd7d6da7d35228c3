package hostedcluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/adoption"
	"hcp.internal/platform/internal/hostedcluster/comeback"
	"hcp.internal/platform/internal/hostedcluster/metrics"
	"hcp.internal/platform/internal/hostedcluster/status"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/platform"
)

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.outcomes.Pass(ctx, r, req, r.next)
}

// next makes the pass that the state of the HostedCluster calls for.
func (r *Reconciler) next(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hc := &hyperv1.HostedCluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, hc); apierrors.IsNotFound(err) {
		metrics.Forget(req.Namespace, req.Name)
		r.Admission.ForgetKey(req.NamespacedName)
		r.elsewhere.Forget(req.NamespacedName)
		return r.removeVanished(ctx, req.NamespacedName)
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if settled, err := r.storage().Settle(ctx, hc); !settled || err != nil {
		return ctrl.Result{}, err
	}
	if !hc.DeletionTimestamp.IsZero() {
		r.Admission.Freed(hc.UID)
		return r.finalize(ctx, hc)
	}
	if err := r.adopt(ctx, hc); err != nil {
		return ctrl.Result{}, err
	}
	return r.reconcile(ctx, hc)
}

// adopt stores our finalizer, before the first object exists that a crash could leak, and the IDs that everything else is named after. The
// patch carries the resourceVersion: with an old object in the cache, a second set of IDs would be refused and not written.
func (r *Reconciler) adopt(ctx context.Context, hc *hyperv1.HostedCluster) error {
	before := hc.DeepCopy()
	changed := controllerutil.AddFinalizer(hc, hyperv1.HostedClusterFinalizer)
	if r.PrivateCAPI && hc.Annotations[hyperv1.PrivateCAPITypesAnnotation] != "true" {
		metav1.SetMetaDataAnnotation(&hc.ObjectMeta, hyperv1.PrivateCAPITypesAnnotation, "true")
		changed = true
	}
	if !pause.At(hc.Spec.PausedUntil, r.Clock.Now()).Active {
		if hc.Spec.InfraID == "" {
			hc.Spec.InfraID, changed = adoption.InfraIDFor(hc.Name, r.RandomID(adoption.InfraIDSuffix)), true
		}
		if hc.Spec.ClusterID == "" {
			hc.Spec.ClusterID, changed = r.UUID(), true
		}
		if p, err := r.Platforms.For(hc.Spec.Platform.Type); err == nil { // else a condition says so
			if d, ok := p.(platform.Defaulter); ok && d.Default(hc) {
				changed = true
			}
		}
	}
	if !changed {
		return nil
	}
	if err := r.Client.Patch(ctx, hc, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("adding finalizer and IDs to HostedCluster %s: %w", names.BackReference(hc), err)
	}
	r.adopted.Add(hc, r.Clock.Now())
	ctrl.LoggerFrom(ctx).Info("took on a hosted cluster", "infraID", hc.Spec.InfraID, "clusterID", hc.Spec.ClusterID)
	return nil
}

func (r *Reconciler) reconcile(ctx context.Context, hc *hyperv1.HostedCluster) (ctrl.Result, error) {
	returned := comeback.StandIn(hc)
	if returned == nil {
		if err := comeback.Forget(ctx, r.Client, hc, r.Clock.Now()); err != nil {
			return ctrl.Result{}, err
		}
	}
	obs, err := r.observe(ctx, hc)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observing %s: %w", names.BackReference(hc), err)
	}
	obs.Returned = returned
	if isPending(obs.ReleaseErr) {
		return r.awaitRelease(ctx, hc, obs.ReleaseErr)
	}
	if err := r.findDomain(ctx, &obs); err != nil {
		return ctrl.Result{}, err
	}
	before := hc.DeepCopy()
	now := r.Clock.Now()
	if err := r.admit(ctx, &obs, now); err != nil {
		return ctrl.Result{}, err
	}
	again := r.elsewhere.Keep(ctx, r.Live, &obs, now)
	g := status.Set(&obs, now)
	back := comeback.Of(&obs, g, now).Decide()
	if back.Note != nil {
		return ctrl.Result{}, comeback.GoBack(ctx, r.Client, hc, *back.Note)
	}
	comeback.Report(hc, back, now)
	metrics.ObserveProxyCA(hc, status.ProxyCAExpiry(&obs))
	p := planFor(&obs, g, now, options{clusterMonitoring: r.ClusterMonitoring, operators: r.operatorSettings()})
	if obs.DomainErr != nil && p.recheckAfter == 0 {
		p.recheckAfter = domainRecheck
	}
	if len(obs.TakenNames) > 0 && p.recheckAfter == 0 {
		p.recheckAfter = namesRecheck
	}
	if again > 0 && (p.recheckAfter == 0 || p.recheckAfter > again) {
		p.recheckAfter = again
	}
	if back.Left > 0 && (p.recheckAfter == 0 || p.recheckAfter > back.Left) {
		p.recheckAfter = back.Left + time.Second // times of conditions have whole seconds
	}
	err = errors.Join(p.err, r.apply(ctx, hc, p.steps))
	if !outcome.IsConflict(err) { // a conflict is no failure, only a reason to look again
		conditions.Set(&hc.Status.Conditions, now, status.ReconciliationSucceeded(err, hc.Generation))
	}
	status.RollUp(hc, now)
	return ctrl.Result{RequeueAfter: p.recheckAfter}, errors.Join(err, r.report(ctx, before, hc))
}

// pendingRecheck is when to look again after a lookup whose end was not heard of.
const pendingRecheck = time.Minute

// awaitRelease ends a pass that can't go on before a registry has answered. It says so when nothing is known of the release yet.
func (r *Reconciler) awaitRelease(ctx context.Context, hc *hyperv1.HostedCluster, reason error) (ctrl.Result, error) {
	before := hc.DeepCopy()
	if conditions.Current(hc.Status.Conditions, hyperv1.ValidReleaseImage, hc.Generation) == nil {
		conditions.Set(&hc.Status.Conditions, r.Clock.Now(), metav1.Condition{
			Type: hyperv1.ValidReleaseImage, Status: metav1.ConditionUnknown, Reason: hyperv1.StatusUnknownReason, Message: reason.Error(),
			ObservedGeneration: hc.Generation,
		})
	}
	return ctrl.Result{RequeueAfter: pendingRecheck}, patch.Status(ctx, r.Client, before, hc)
}
