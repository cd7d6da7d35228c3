package privatelinks

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/pause"
)

// lookAgain is how often links are compared with load balancers although nothing tells of a change.
const lookAgain = 5 * time.Minute

// Balancers makes a link of each internal load balancer of a control plane. It writes metadata and spec, but for what Google has found out. It doesn't look at
// links when they go: the hypershift-operator deletes them before the control plane goes.
type Balancers struct {
	Client   client.Client
	Applier  *apply.Applier
	Clock    clock.PassiveClock
	cloud    cloud
	outcomes outcome.Outcomes
}

// Setup registers the controller in a process that was given an identity in Azure or a project of GCP, where the management cluster has such links; elsewhere
// it costs nothing.
func Setup(mgr manager.Manager, applier *apply.Applier, clk clock.PassiveClock, getenv func(string) string) error {
	r := &Balancers{Client: mgr.GetClient(), Applier: applier, Clock: clk}
	switch {
	case getenv("AZURE_CLIENT_ID") != "":
		r.cloud = azure
	case getenv("GOOGLE_CLOUD_PROJECT") != "":
		r.cloud = google
	default:
		return nil
	}
	if _, err := mgr.GetRESTMapper().RESTMapping(r.cloud.kind.GroupKind(), r.cloud.kind.Version); meta.IsNoMatchError(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("looking for kind %s: %w", r.cloud.kind.Kind, err)
	}
	return ctrl.NewControllerManagedBy(mgr).Named("private-links").
		For(&hyperv1.HostedControlPlane{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Service{}, ControlPlanesBeside(r.Client), builder.WithPredicates(addressChanged())).
		WithOptions(process.Workers(1, 3*time.Second, 30*time.Second)).Complete(r)
}

// addressChanged passes Services whose internal load balancer is elsewhere than before.
func addressChanged() predicate.Funcs {
	of := func(obj client.Object) string {
		svc, ok := obj.(*corev1.Service)
		if !ok {
			return ""
		}
		return addressOf(svc)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return of(e.Object) != "" },
		UpdateFunc: func(e event.UpdateEvent) bool { return of(e.ObjectOld) != of(e.ObjectNew) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// Reconcile does one pass.
func (r *Balancers) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.outcomes.Pass(ctx, r, req, r.next)
}

func (r *Balancers) next(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hcp, err := read.Optional(ctx, r.Client, req.NamespacedName, &hyperv1.HostedControlPlane{})
	if err != nil || hcp == nil || !hcp.DeletionTimestamp.IsZero() || !r.cloud.linked(hcp) {
		return ctrl.Result{}, err
	}
	if p := pause.At(hcp.Spec.PausedUntil, r.Clock.Now()); p.Active {
		return ctrl.Result{RequeueAfter: p.Left(r.Clock.Now())}, nil
	}
	for _, name := range r.cloud.balancers {
		svc, err := read.Optional(ctx, r.Client, client.ObjectKey{Namespace: hcp.Namespace, Name: name}, &corev1.Service{})
		if err != nil {
			return ctrl.Result{}, err
		}
		// An address comes as a change of the Service.
		if address := addressOf(svc); address != "" {
			if err := r.ensure(ctx, hcp, name, address); err != nil {
				return ctrl.Result{}, err
			}
		}
	}
	return ctrl.Result{RequeueAfter: lookAgain}, nil
}

// ensure writes a link, and leaves one alone that is being deleted.
func (r *Balancers) ensure(ctx context.Context, hcp *hyperv1.HostedControlPlane, service, address string) error {
	live, err := read.Optional(ctx, r.Client, client.ObjectKey{Namespace: hcp.Namespace, Name: service}, r.cloud.empty())
	if err != nil || live != nil && !live.GetDeletionTimestamp().IsZero() {
		return err
	}
	obj := r.cloud.link(hcp, service, address, live)
	if err := r.Applier.Apply(ctx, obj); err != nil {
		return fmt.Errorf("asking for a private link to the load balancer of Service %s: %w", service, err)
	}
	return nil
}
