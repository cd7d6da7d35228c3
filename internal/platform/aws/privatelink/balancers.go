package privatelink

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/platform/privatelinks"

	"k8s.io/utils/clock"
)

// Balancers makes an AWSEndpointService for each private load balancer of a control plane. It writes spec.networkLoadBalancerName and spec.resourceTags.
// It doesn't look at AWSEndpointServices when they go: the hypershift-operator deletes them before the control plane goes.
type Balancers struct {
	Client   client.Client
	Applier  *apply.Applier
	Clock    clock.PassiveClock
	outcomes outcome.Outcomes
}

// SetupWithManager registers the controller.
func (r *Balancers) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("aws-private-load-balancers").
		For(&hyperv1.HostedControlPlane{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Service{}, privatelinks.ControlPlanesBeside(r.Client), builder.WithPredicates(balancersChanged())).
		WithOptions(process.Workers(1, time.Second, 30*time.Second)).Complete(r)
}

// balancersChanged passes Services that get another load balancer.
func balancersChanged() predicate.Funcs {
	one := func(obj client.Object) bool { return slices.Contains(balancers, obj.GetName()) }
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return one(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return one(e.ObjectNew) && hostOf(e.ObjectOld) != hostOf(e.ObjectNew) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

func hostOf(obj client.Object) string {
	if svc, ok := obj.(*corev1.Service); ok && len(svc.Status.LoadBalancer.Ingress) > 0 {
		return svc.Status.LoadBalancer.Ingress[0].Hostname
	}
	return ""
}

// Reconcile does one pass.
func (r *Balancers) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.outcomes.Pass(ctx, r, req, r.next)
}

func (r *Balancers) next(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hcp, err := read.Optional(ctx, r.Client, req.NamespacedName, &hyperv1.HostedControlPlane{})
	if err != nil || hcp == nil || !hcp.DeletionTimestamp.IsZero() || hcp.Spec.Platform.AWS == nil || !payload.Private(hcp) {
		return ctrl.Result{}, err
	}
	if p := pause.At(hcp.Spec.PausedUntil, r.Clock.Now()); p.Active {
		return ctrl.Result{RequeueAfter: p.Left(r.Clock.Now())}, nil
	}
	for _, name := range balancers {
		svc, err := read.Optional(ctx, r.Client, client.ObjectKey{Namespace: hcp.Namespace, Name: name}, &corev1.Service{})
		if err != nil {
			return ctrl.Result{}, err
		}
		if svc == nil || !svc.DeletionTimestamp.IsZero() || hostOf(svc) == "" {
			continue
		}
		balancer := loadBalancerName(hostOf(svc))
		if balancer == "" {
			ctrl.LoggerFrom(ctx).Info("the load balancer of a private Service is none of AWS's, so no endpoint can lead to it", "service", name, "host", hostOf(svc))
			continue
		}
		if err := r.apply(ctx, endpointService(hcp, name, balancer)); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: again()}, nil
}

// apply writes an AWSEndpointService, and leaves one alone that is being deleted.
func (r *Balancers) apply(ctx context.Context, obj *hyperv1.AWSEndpointService) error {
	live, err := read.Optional(ctx, r.Client, client.ObjectKeyFromObject(obj), &hyperv1.AWSEndpointService{})
	if err != nil || live != nil && (!live.DeletionTimestamp.IsZero() || live.Spec.NetworkLoadBalancerName == obj.Spec.NetworkLoadBalancerName &&
		equality.Semantic.DeepEqual(live.Spec.ResourceTags, obj.Spec.ResourceTags)) {
		return err
	}
	if err := r.Applier.Apply(ctx, obj); err != nil {
		return fmt.Errorf("applying AWSEndpointService %s: %w", client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// endpointService is what asks for an endpoint of a load balancer.
func endpointService(hcp *hyperv1.HostedControlPlane, name, balancer string) *hyperv1.AWSEndpointService {
	obj := &hyperv1.AWSEndpointService{ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: name}}
	if back := hcp.Annotations[hyperv1.HostedClusterAnnotation]; back != "" {
		obj.Annotations = map[string]string{hyperv1.HostedClusterAnnotation: back}
	}
	obj.Spec.NetworkLoadBalancerName = balancer
	for _, t := range hcp.Spec.Platform.AWS.ResourceTags {
		obj.Spec.ResourceTags = append(obj.Spec.ResourceTags, t.AWSResourceTag)
	}
	return obj
}
