package configoperator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/hcpconditions"
	"hcp.internal/platform/internal/configoperator/openshift"
	"hcp.internal/platform/internal/configoperator/resources"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/pki"
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
	if r.Payload != nil && removes(hcp) {
		return r.reconcileRemoval(ctx, hcp)
	}
	// Decided once, before anything is read of the hosted cluster: a pass that began is carried out, also when a pause begins meanwhile.
	if reason, after := hold(hcp, r.OperatesOn, r.Clock.Now()); reason != "" {
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

// observeTunnel reads what agents on nodes need. What is missing is left empty, for the plan to report.
func (r *Reconciler) observeTunnel(ctx context.Context, namespace string) (resources.Tunnel, error) {
	tunnel := resources.Tunnel{Host: r.TunnelHost, Port: r.TunnelPort}
	if r.TunnelHost == "" {
		return tunnel, nil
	}
	secret, bundle := &corev1.Secret{}, &corev1.ConfigMap{}
	if err := r.Management.Get(ctx, client.ObjectKey{Namespace: namespace, Name: pki.KonnectivityAgent}, secret); client.IgnoreNotFound(err) != nil {
		return tunnel, fmt.Errorf("reading Secret %s/%s: %w", namespace, pki.KonnectivityAgent, err)
	}
	if err := r.Management.Get(ctx, client.ObjectKey{Namespace: namespace, Name: pki.KonnectivityCABundle}, bundle); client.IgnoreNotFound(err) != nil {
		return tunnel, fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, pki.KonnectivityCABundle, err)
	}
	tunnel.Cert, tunnel.Key, tunnel.CA = secret.Data[pki.TLSCertKey], secret.Data[pki.TLSKeyKey], []byte(bundle.Data[pki.CACertKey])
	return tunnel, nil
}

// apply applies all objects and returns the failures. When the hosted API gives no answer at all the rest isn't tried.
func (r *Reconciler) apply(ctx context.Context, objects []client.Object) []Failure {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	applier := apply.New(r.Hosted, names.ConfigOperator)
	var failures []Failure
	for _, obj := range objects {
		gvk, err := apiutil.GVKForObject(obj, r.Hosted.Scheme())
		if err != nil {
			panic(err) // a resource of ours whose type the scheme lacks
		}
		if err := applyOne(ctx, applier, obj); err != nil {
			failures = append(failures, Failure{Object: gvk.Kind + " " + obj.GetName(), Err: err})
			if !errors.As(err, new(apierrors.APIStatus)) {
				break
			}
			continue
		}
		if r.Watch != nil {
			r.Watch(gvk)
		}
	}
	return failures
}

func applyOne(ctx context.Context, applier *apply.Applier, obj client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, objectTimeout)
	defer cancel()
	err := applier.Apply(ctx, obj)
	if apierrors.IsInvalid(err) && replaceable(obj) {
		// A field that can't be changed (the role of a binding, the address family of a slice) differs: somebody made the object
		// before us, or the cluster's addresses changed. The object has no other state, so it is made anew.
		if err := applier.Delete(ctx, obj); err != nil {
			return err
		}
		err = applier.Apply(ctx, obj)
	}
	return err
}

func replaceable(obj client.Object) bool {
	switch obj.(type) {
	case *rbacv1.ClusterRoleBinding, *rbacv1.RoleBinding, *discoveryv1.EndpointSlice:
		return true
	default:
		return false
	}
}

// report writes our conditions, when one differs.
func (r *Reconciler) report(ctx context.Context, hcp *hyperv1.HostedControlPlane, want ...metav1.Condition) error {
	changed, err := hcpconditions.Apply(ctx, r.Management, names.ConfigOperator, r.Clock.Now(), hcp, want)
	for _, c := range changed {
		if old := conditions.Get(hcp.Status.Conditions, c.Type); c.Status != metav1.ConditionTrue || old != nil && old.Status != c.Status {
			ctrl.LoggerFrom(ctx).Info("reported", "hostedControlPlane", klog.KObj(hcp), "condition", c.Type, "status", c.Status, "message", c.Message)
		}
	}
	return err
}
