package nodepool

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/kube/events"
	"hcp.internal/platform/internal/kube/journal"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/release"
)

// Reconciler reconciles NodePools. It is the only writer of their status and of the objects that bear their annotation, except for what
// the ignition server and Cluster API write into these.
type Reconciler struct {
	Client client.Client // reads from caches that hold only what is ours, writes
	Live   client.Reader // uncached: users' objects, and where a stale read would destroy something
	Clock  clock.PassiveClock
	// Releases is usually a *release.Registry.
	Releases releases
	// NewToken gives a token for machines: an RFC 4122 UUID of random bits.
	NewToken func() string
	// ClusterAPI: its kinds are served.
	ClusterAPI bool
	// Indexed: Client has the indexes that SetupWithManager makes.
	Indexed bool
	// Scope restricts the operator to HostedClusters with this value of annotation hypershift.openshift.io/scope; nil: all.
	Scope *string
	// PrivateCAPI: the operator is one for hosted clusters whose objects of Cluster API are stored in HyperShift's own groups.
	PrivateCAPI bool
	// Platforms are those that machines may be made on here.
	Platforms platform.Enabled
	// Events tells users what became of their pool; nil: nobody is told.
	Events events.Recorder
	// Journal keeps what became of conditions; nil: nobody does.
	Journal *journal.Book

	toldDeletions events.Limiter
	outcomes      outcome.Outcomes
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.outcomes.Pass(ctx, r, req, r.reconcile)
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	pool := &hyperv1.NodePool{}
	if err := r.Client.Get(ctx, req.NamespacedName, pool); err != nil {
		if apierrors.IsNotFound(err) {
			return ctrl.Result{}, r.sweepOrphans(ctx, req.NamespacedName)
		}
		return ctrl.Result{}, err
	}
	hc, err := r.hostedCluster(ctx, pool)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !r.owns(pool, hc) {
		return ctrl.Result{}, r.acknowledge(ctx, pool, hc)
	}
	if !pool.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, pool, hc)
	}
	if hc == nil || !hc.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.reportMissingCluster(ctx, pool, hc)
	}
	if err := r.adopt(ctx, pool, hc); err != nil {
		return ctrl.Result{}, err
	}
	return r.work(ctx, pool, hc)
}

// owns tells whether a pool is this operator's. It is when its HostedCluster is: not before the HostedCluster says in which API groups its machines are
// stored, and the change that says so causes a pass. A pool whose HostedCluster is gone says it by its own annotation and finalizer.
func (r *Reconciler) owns(pool *hyperv1.NodePool, hc *hyperv1.HostedCluster) bool {
	if hc != nil {
		return scope.Identity{PrivateCAPI: r.PrivateCAPI, Scope: r.Scope}.Owns(hc.Annotations) == scope.Ours
	}
	private := pool.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true"
	return private == r.PrivateCAPI || !private && !slices.Contains(pool.Finalizers, Finalizer)
}

// acknowledge says once that no pass of ours is under way about a pool whose HostedCluster is locked.
func (r *Reconciler) acknowledge(ctx context.Context, pool *hyperv1.NodePool, hc *hyperv1.HostedCluster) error {
	if hc == nil {
		return nil
	}
	lock := scope.Identity{PrivateCAPI: r.PrivateCAPI, Scope: r.Scope}.Acknowledges(hc.Annotations)
	if lock == "" || pool.Annotations[hyperv1.PrivateCAPIMigrationAckAnnotation] == lock {
		return nil
	}
	if err := r.Client.Patch(ctx, pool, patch.Annotation(hyperv1.PrivateCAPIMigrationAckAnnotation, &lock)); err != nil {
		return fmt.Errorf("acknowledging the lock on NodePool %s: %w", keyOf(pool), err)
	}
	return nil
}

func (r *Reconciler) hostedCluster(ctx context.Context, pool *hyperv1.NodePool) (*hyperv1.HostedCluster, error) {
	hc := &hyperv1.HostedCluster{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: pool.Namespace, Name: pool.Spec.ClusterName}, hc)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the HostedCluster of NodePool %s: %w", keyOf(pool), err)
	}
	return hc, nil
}

// adopt stores our finalizer, before the first object exists that a crash could leak, and the HostedCluster as an owner, so that the pool
// goes with it.
func (r *Reconciler) adopt(ctx context.Context, pool *hyperv1.NodePool, hc *hyperv1.HostedCluster) error {
	before := pool.DeepCopy()
	changed := controllerutil.AddFinalizer(pool, Finalizer)
	if r.PrivateCAPI && pool.Annotations[hyperv1.PrivateCAPITypesAnnotation] != "true" {
		metav1.SetMetaDataAnnotation(&pool.ObjectMeta, hyperv1.PrivateCAPITypesAnnotation, "true")
		changed = true
	}
	owner := metav1.OwnerReference{APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedCluster", Name: hc.Name, UID: hc.UID}
	if !slices.ContainsFunc(pool.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == hc.UID }) {
		pool.OwnerReferences, changed = append(pool.OwnerReferences, owner), true
	}
	if !changed {
		return nil
	}
	// With the resourceVersion, because both are lists that others write, too.
	if err := r.Client.Patch(ctx, pool, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("adding finalizer and owner to NodePool %s: %w", keyOf(pool), err)
	}
	return nil
}

// awaitRelease ends a pass that can't go on before a registry has answered.
func (r *Reconciler) awaitRelease(ctx context.Context, obs *observed) (ctrl.Result, error) {
	now := r.Clock.Now()
	p := pendingPlan(obs, now)
	if err := r.apply(ctx, obs, &p); err != nil {
		return ctrl.Result{}, err
	}
	pool, before := obs.pool, obs.pool.DeepCopy()
	for _, c := range p.conditions {
		setCondition(&pool.Status.Conditions, c, pool.Generation, now)
	}
	if err := patch.Status(ctx, r.Client, before, pool); err != nil {
		return ctrl.Result{}, err
	}
	tellChanges(r.Events, before, pool)
	return ctrl.Result{RequeueAfter: p.recheckAfter}, nil
}

func (r *Reconciler) work(ctx context.Context, pool *hyperv1.NodePool, hc *hyperv1.HostedCluster) (ctrl.Result, error) {
	obs, err := r.observe(ctx, pool, hc)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observing NodePool %s: %w", keyOf(pool), err)
	}
	if errors.Is(obs.releaseErr, release.ErrPending) {
		return r.awaitRelease(ctx, obs)
	}
	now := r.Clock.Now()
	p := planFor(obs, now, r.NewToken())
	err = r.apply(ctx, obs, &p)
	if c := refused(err); c != nil {
		p.conditions = append(p.conditions, *c)
		p.removed = slices.DeleteFunc(p.removed, func(t string) bool { return t == c.Type })
		p.recheckAfter, err = retryRefused, nil
	}
	return ctrl.Result{RequeueAfter: p.recheckAfter}, errors.Join(p.err, err, r.report(ctx, pool, &p, err == nil, now))
}
