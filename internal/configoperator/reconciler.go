package configoperator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/hold"
	"hcp.internal/platform/internal/configoperator/openshift"
	"hcp.internal/platform/internal/contract/removal"
)

const (
	// objectTimeout bounds reading and writing one object. A healthy API server needs milliseconds; one whose webhooks time out
	// needs up to 30 s, which is the tenant's to repair.
	objectTimeout = 10 * time.Second
	// passTimeout bounds a pass over all objects, so that a slow hosted API is reported and doesn't look like a dead operator.
	passTimeout = time.Minute
	// resyncJitter spreads the passes of many operators that started together.
	resyncJitter = 0.1
)

// Reconciler keeps the objects of one hosted cluster.
type Reconciler struct {
	// Management reads the HostedControlPlane, not from a cache: the decision whether to write its condition needs what we wrote
	// last.
	Management client.Client
	// Hosted reads and writes objects of the hosted cluster, not through a cache either.
	Hosted client.Client
	Clock  clock.PassiveClock
	// OperatesOn is the release image that this process belongs to; empty: any. See hold.
	OperatesOn string
	// Images of what runs on nodes, by tag of the release.
	Images map[string]string
	// TunnelHost and TunnelPort are where nodes reach the tunnel's servers; without a host there is no tunnel.
	TunnelHost string
	TunnelPort int32
	// Watch is told the kinds that are applied, so that changes of them call for a pass; may be nil.
	Watch func(schema.GroupVersionKind)
	// Payload is set when the release is an OpenShift payload; nil: it is one of Kubernetes.
	Payload *Payload

	// cleared is true once leftovers of older releases have been removed.
	cleared  atomic.Bool
	once     sync.Once
	executor *openshift.Executor
	// silentSince is since when the hosted API gives no answer while a hosted cluster is being removed, silences how often.
	silentSince time.Time
	silences    int
}

// Reconcile makes one pass for the HostedControlPlane of the request.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hcp := &hyperv1.HostedControlPlane{}
	if err := r.Management.Get(ctx, req.NamespacedName, hcp); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("reading HostedControlPlane %s: %w", req, err))
	}
	if r.Payload != nil && removal.Asked(hcp) {
		return r.reconcileRemoval(ctx, hcp)
	}
	// Decided once, before anything is read of the hosted cluster: a pass that began is carried out, also when a pause begins meanwhile.
	if reason, after := hold.Why(hcp, r.OperatesOn, r.Clock.Now()); reason != "" {
		ctrl.LoggerFrom(ctx).V(1).Info("holding", "hostedControlPlane", klog.KObj(hcp), "reason", reason)
		return ctrl.Result{RequeueAfter: after}, nil
	}
	if r.Payload != nil {
		return r.reconcilePayload(ctx, hcp)
	}
	tunnel, err := r.observeTunnel(ctx, req.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	obs := Observed{HCP: hcp, Images: r.Images, Tunnel: tunnel}
	var failures []Failure
	var plan Plan
	if obs.Nodes, err = r.countNodes(ctx); err != nil {
		// Nothing else would be answered either.
		failures = []Failure{{Object: "Nodes", Err: err}}
	} else {
		plan = planFor(obs)
		failures = r.apply(ctx, plan.Objects)
	}
	if len(failures) == 0 {
		var after time.Duration
		if after, err = r.spreadDNS(ctx, obs.Nodes); err != nil {
			failures = append(failures, Failure{Object: "cluster DNS", Err: err})
		}
		if after > 0 {
			plan.RecheckAfter = min(plan.RecheckAfter, after)
		}
	}
	restored, again, more := r.withRecovery(ctx, hcp, len(failures) == 0, plan.RecheckAfter)
	failures = append(failures, more...)
	err = r.report(ctx, hcp, append(restored, succeeded(hcp.Generation, plan.Missing, failures))...)
	for _, f := range failures {
		err = errors.Join(err, f)
	}
	if err = errors.Join(plan.Missing, err); err != nil {
		return ctrl.Result{}, err // tried again with increasing pauses
	}
	return ctrl.Result{RequeueAfter: wait.Jitter(again, resyncJitter)}, nil
}
