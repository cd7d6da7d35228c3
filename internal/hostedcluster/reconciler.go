package hostedcluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/cpo"
	"hcp.internal/platform/internal/hostedcluster/admission"
	"hcp.internal/platform/internal/hostedcluster/capi"
	"hcp.internal/platform/internal/hostedcluster/management"
	"hcp.internal/platform/internal/hostedcluster/metrics"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/events"
	"hcp.internal/platform/internal/kube/journal"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/platform"
)

// Reconciler reconciles HostedClusters. All fields are required unless they say otherwise.
type Reconciler struct {
	Client client.Client // reads from caches that hold only what is ours, writes
	Live   client.Reader // uncached: the user's objects, and where a stale read would destroy something
	Clock  clock.PassiveClock
	// Releases is usually a *release.Registry.
	Releases releases
	// ControlPlaneOperator is what operators of control planes are told of the installation.
	ControlPlaneOperator cpo.Options
	// Environment is what this process was told, which components take over.
	Environment component.Environment
	// OperatorImage is our own image, from which control-plane-operators run when nothing names another.
	OperatorImage string
	Capabilities  operator.Capabilities
	Management    *management.Cluster
	// Mirrors are those of the management cluster, which control planes are told of; nil: none.
	Mirrors *management.Mirrors
	// RandomID gives n characters of [a-z0-9], and UUID an RFC 4122 UUID.
	RandomID func(n int) string
	UUID     func() string
	// Scope restricts the operator to HostedClusters with this value of annotation hypershift.openshift.io/scope; nil: all.
	Scope *string
	// AuditLogs: AuditLogPersistenceConfig cluster is heeded.
	AuditLogs bool
	// Documents: the program beside this one publishes OIDC documents.
	Documents bool
	// PrivateLink: the program beside this one makes VPC endpoint services on AWS.
	PrivateLink bool
	// PrivateCAPI: the objects of Cluster API are stored in HyperShift's own groups; Client and Live reach them under the standard ones.
	PrivateCAPI bool
	// Direct reaches the management cluster under the names that are stored there, uncached; nil: nobody looks at these.
	Direct client.Reader
	// Platforms are those that hosted clusters may be on here.
	Platforms platform.Enabled
	// CAPIProxyImage is the image of the proxies beside programs that speak Cluster API; empty: OperatorImage.
	CAPIProxyImage string

	// Admission decides when control planes may start; nil: at once.
	Admission *admission.Queue

	// EtcdRecovery: a member of etcd that can't start any more is replaced.
	EtcdRecovery bool

	// EnableCIDebugOutput, MetricsSet, RegistryOverrides and ClusterMonitoring are handed on.
	EnableCIDebugOutput bool
	MetricsSet          string
	RegistryOverrides   string
	ClusterMonitoring   bool

	// Events tells users what became of their cluster; nil: nobody is told.
	Events events.Recorder
	// Journal keeps what became of conditions; nil: nobody does.
	Journal *journal.Book

	uids          management.UIDs
	adopted       adoptions
	toldDeletions events.Limiter
	outcomes      outcome.Outcomes
	elsewhere     memory
}

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
		r.elsewhere.forget(req.NamespacedName)
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

func (r *Reconciler) operator() scope.Identity {
	return scope.Identity{PrivateCAPI: r.PrivateCAPI, Scope: r.Scope}
}

// storage knows where objects of Cluster API are stored.
func (r *Reconciler) storage() capi.Storage {
	return capi.Storage{Client: r.Client, Live: r.Live, Direct: r.Direct, Clock: r.Clock, Operator: r.operator()}
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
			hc.Spec.InfraID, changed = infraIDFor(hc.Name, r.RandomID(infraIDSuffix)), true
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
	r.adopted.add(hc, r.Clock.Now())
	ctrl.LoggerFrom(ctx).Info("took on a hosted cluster", "infraID", hc.Spec.InfraID, "clusterID", hc.Spec.ClusterID)
	return nil
}

func (r *Reconciler) reconcile(ctx context.Context, hc *hyperv1.HostedCluster) (ctrl.Result, error) {
	returned := standIn(hc)
	if returned == nil {
		if err := r.forgetReturn(ctx, hc); err != nil {
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
	again := r.keepPolicyElsewhere(ctx, &obs, now)
	g := setStatus(&obs, now)
	back := comebackOf(&obs, g, now).decide()
	if back.note != nil {
		return ctrl.Result{}, r.goBack(ctx, hc, *back.note)
	}
	setComeback(hc, back, now)
	metrics.ObserveProxyCA(hc, proxyCAExpiry(&obs))
	p := planFor(&obs, g, now, options{clusterMonitoring: r.ClusterMonitoring, operators: r.operatorSettings()})
	if obs.DomainErr != nil && p.recheckAfter == 0 {
		p.recheckAfter = domainRecheck
	}
	if again > 0 && (p.recheckAfter == 0 || p.recheckAfter > again) {
		p.recheckAfter = again
	}
	if back.left > 0 && (p.recheckAfter == 0 || p.recheckAfter > back.left) {
		p.recheckAfter = back.left + time.Second // times of conditions have whole seconds
	}
	err = errors.Join(p.err, runSteps(ctx, newWriter(r.Client, hc, r.Clock), p.steps))
	if !outcome.IsConflict(err) { // a conflict is no failure, only a reason to look again
		conditions.Set(&hc.Status.Conditions, now, reconciliationSucceeded(err, hc.Generation))
	}
	rollUp(hc, now)
	return ctrl.Result{RequeueAfter: p.recheckAfter}, errors.Join(err, r.report(ctx, before, hc))
}

// parseLabels reads "k=v,k2=v2"; what is no pair is left out.
func parseLabels(s string) map[string]string {
	labels := map[string]string{}
	for pair := range strings.SplitSeq(s, ",") {
		if k, v, ok := strings.Cut(strings.TrimSpace(pair), "="); ok && k != "" {
			labels[k] = v
		}
	}
	return labels
}
