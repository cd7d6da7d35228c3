package privatelink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/platform/beside"
	"hcp.internal/platform/internal/platform/privatelinks"
)

// karpenterSubnets is a ConfigMap in the control plane's namespace, whose key subnetIDs holds a JSON list.
const karpenterSubnets = "karpenter-subnets"

// Services is the hypershift-operator's part: it makes VPC endpoint services, says who may connect to them, and removes them. It writes spec.subnetIDs,
// status.endpointServiceName, condition AWSEndpointServiceAvailable and its finalizer.
type Services struct {
	Client client.Client
	// Live is uncached; with it is read what is needed rarely.
	Live     client.Reader
	Clock    clock.PassiveClock
	Identity scope.Identity
	// Region is that of the management cluster. Load balancers are there, and so endpoint services.
	Region string
	// Open makes the client of AWS; it is called until it succeeds, and again when Credentials changes.
	Open func(ctx context.Context, region string) (*Provider, error)
	// Credentials is the file that Open reads; empty: none.
	Credentials string

	clients  beside.Clients[struct{}, *Provider]
	patience patience
	outcomes outcome.Outcomes
}

// SetupWithManager registers the controller.
func (r *Services) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("aws-endpoint-services").
		For(&hyperv1.AWSEndpointService{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, privatelinks.FinalizersChanged()))).
		Watches(&hyperv1.HostedCluster{}, privatelinks.LinksOf(hyperv1.AWSPlatform, balancers), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&hyperv1.NodePool{}, handler.EnqueueRequestsFromMapFunc(ofPool), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(process.Workers(4, time.Second, 30*time.Second)).Complete(r)
}

func ofPool(_ context.Context, obj client.Object) []reconcile.Request {
	pool, ok := obj.(*hyperv1.NodePool)
	if !ok || pool.Spec.Platform.Type != hyperv1.AWSPlatform {
		return nil
	}
	return privatelinks.Requests(names.ControlPlaneNamespace(pool.Namespace, pool.Spec.ClusterName), balancers)
}

func (r *Services) open(ctx context.Context) (*Provider, error) {
	return r.clients.Get(struct{}{}, r.Credentials, func() (*Provider, error) { return r.Open(ctx, r.Region) })
}

// Reconcile does one pass.
func (r *Services) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.outcomes.Pass(ctx, r, req, r.next)
}

func (r *Services) next(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj, err := read.Optional(ctx, r.Client, req.NamespacedName, &hyperv1.AWSEndpointService{})
	if err != nil || obj == nil {
		r.patience.forget(req.NamespacedName)
		return ctrl.Result{}, err
	}
	hc, err := r.clusterOf(ctx, obj)
	if err != nil {
		return ctrl.Result{}, err
	}
	switch {
	case hc != nil && r.Identity.Owns(hc.Annotations) != scope.Ours:
		return ctrl.Result{}, nil
	case !obj.DeletionTimestamp.IsZero():
		return r.remove(ctx, obj)
	case hc == nil || !hc.DeletionTimestamp.IsZero() || hc.Spec.Platform.AWS == nil:
		return ctrl.Result{}, nil // its deletion comes from who made it
	}
	if p := pause.At(hc.Spec.PausedUntil, r.Clock.Now()); p.Active {
		return ctrl.Result{RequeueAfter: p.Left(r.Clock.Now())}, nil
	}
	// Stored before the first call, so that nothing is left behind.
	if _, err := patch.EnsureFinalizer(ctx, r.Client, obj, hyperv1.AWSEndpointServiceHOFinalizer); err != nil {
		return ctrl.Result{}, err
	}
	excess, err := r.complete(ctx, obj, hc)
	if err != nil {
		return ctrl.Result{}, err
	}
	before := obj.DeepCopy()
	failed := r.serve(ctx, obj, hc)
	if failed == nil {
		failed = excess
	}
	return r.report(ctx, before, obj, failed)
}

// clusterOf is the HostedCluster of an AWSEndpointService, nil without: by the annotation, or by the HostedControlPlane beside it.
func (r *Services) clusterOf(ctx context.Context, obj *hyperv1.AWSEndpointService) (*hyperv1.HostedCluster, error) {
	key, ok := names.ParseBackReference(obj.Annotations[hyperv1.HostedClusterAnnotation])
	if !ok {
		list := &hyperv1.HostedControlPlaneList{}
		if err := r.Client.List(ctx, list, client.InNamespace(obj.Namespace)); err != nil {
			return nil, fmt.Errorf("looking for the HostedControlPlane of namespace %s: %w", obj.Namespace, err)
		}
		for i := range list.Items {
			key, ok = names.ParseBackReference(list.Items[i].Annotations[hyperv1.HostedClusterAnnotation])
		}
	}
	if !ok || names.ControlPlaneNamespace(key.Namespace, key.Name) != obj.Namespace {
		return nil, nil
	}
	return read.Optional(ctx, r.Client, key, &hyperv1.HostedCluster{})
}

// complete writes what the endpoint's side has to know: the subnets of machines, and whose it is. excess tells that there are more than fit.
func (r *Services) complete(ctx context.Context, obj *hyperv1.AWSEndpointService, hc *hyperv1.HostedCluster) (excess, _ error) {
	pools := &hyperv1.NodePoolList{}
	if err := r.Client.List(ctx, pools, client.InNamespace(hc.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the NodePools of namespace %s: %w", hc.Namespace, err)
	}
	config, err := read.Optional(ctx, r.Live, client.ObjectKey{Namespace: obj.Namespace, Name: karpenterSubnets}, &corev1.ConfigMap{})
	if err != nil {
		return nil, err
	}
	karpenter := ""
	if config != nil {
		karpenter = config.Data["subnetIDs"]
	}
	subnets, excess := subnetsOf(pools.Items, hc, karpenter)
	before := obj.DeepCopy()
	metav1.SetMetaDataAnnotation(&obj.ObjectMeta, hyperv1.HostedClusterAnnotation, names.BackReference(hc))
	obj.Spec.SubnetIDs = subnets
	if slices.Equal(before.Spec.SubnetIDs, subnets) && before.Annotations[hyperv1.HostedClusterAnnotation] == names.BackReference(hc) {
		return excess, nil
	}
	status := obj.Status.DeepCopy()
	if err := r.Client.Patch(ctx, obj, client.MergeFrom(before)); err != nil {
		return excess, fmt.Errorf("writing the subnets of AWSEndpointService %s: %w", client.ObjectKeyFromObject(obj), err)
	}
	obj.Status = *status
	return excess, nil
}

// serve brings the endpoint service to what is asked for, and notes its name in the status.
func (r *Services) serve(ctx context.Context, obj *hyperv1.AWSEndpointService, hc *hyperv1.HostedCluster) error {
	p, err := r.open(ctx)
	if err != nil {
		return errors.New("the operator's credentials for AWS can't be read: install with --aws-private-creds, -secret or -role-arn")
	}
	infrastructure, err := r.managementName(ctx)
	if err != nil {
		return err
	}
	name, err := p.ensure(ctx, wish{
		recorded: obj.Status.EndpointServiceName, balancer: obj.Spec.NetworkLoadBalancerName, tags: serviceTags(obj, infrastructure), principals: principals(hc.Spec.Platform.AWS),
	})
	obj.Status.EndpointServiceName = name
	return err
}

// infrastructureKind is OpenShift's.
var infrastructureKind = schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Infrastructure"}

// managementName is how a management cluster of OpenShift marks what is its own in AWS; empty for others.
func (r *Services) managementName(ctx context.Context) (string, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(infrastructureKind)
	err := r.Live.Get(ctx, client.ObjectKey{Name: "cluster"}, u)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading Infrastructure cluster of the management cluster: %w", err)
	}
	name, _, _ := unstructured.NestedString(u.Object, "status", "infrastructureName")
	return name, nil
}

// report writes the status and says when to look again.
func (r *Services) report(ctx context.Context, before, obj *hyperv1.AWSEndpointService, failed error) (ctrl.Result, error) {
	setCondition(r.Clock, obj, hyperv1.AWSEndpointServiceAvailable, failed)
	if err := patch.Status(ctx, r.Client, before, obj); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: pauseAfter(ctx, &r.patience, obj, failed)}, nil
}

func setCondition(c clock.PassiveClock, obj *hyperv1.AWSEndpointService, t string, failed error) {
	condition := conditions.True(t, hyperv1.AWSSuccessReason, hyperv1.AllIsWellMessage)
	if failed != nil {
		condition = conditions.False(t, hyperv1.AWSErrorReason, failed.Error())
	}
	condition.ObservedGeneration = obj.Generation
	conditions.Set(&obj.Status.Conditions, c.Now(), condition)
}

func pauseAfter(ctx context.Context, p *patience, obj *hyperv1.AWSEndpointService, failed error) time.Duration {
	var w *waiting
	if errors.As(failed, &w) {
		return goesOn
	}
	if failed != nil {
		ctrl.LoggerFrom(ctx).Info("AWS refuses; it is tried again", "error", failed.Error())
	}
	return p.after(client.ObjectKeyFromObject(obj), failed)
}

// remove deletes the endpoint service once the endpoint's side is through, and lets the object go.
func (r *Services) remove(ctx context.Context, obj *hyperv1.AWSEndpointService) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(obj, hyperv1.AWSEndpointServiceHOFinalizer) || controllerutil.ContainsFinalizer(obj, hyperv1.AWSEndpointServiceCPOFinalizer) {
		return ctrl.Result{}, nil
	}
	before := obj.DeepCopy()
	p, err := r.open(ctx)
	if err != nil {
		err = errors.New("the operator's credentials for AWS can't be read: install with --aws-private-creds, -secret or -role-arn")
	} else {
		err = p.remove(ctx, obj.Status.EndpointServiceName, obj.Spec.NetworkLoadBalancerName)
	}
	if err != nil {
		return r.report(ctx, before, obj, err)
	}
	ctrl.LoggerFrom(ctx).Info("removed the VPC endpoint service", "service", obj.Status.EndpointServiceName)
	r.patience.forget(client.ObjectKeyFromObject(obj))
	return ctrl.Result{}, patch.RemoveFinalizer(ctx, r.Client, obj, hyperv1.AWSEndpointServiceHOFinalizer)
}
