package privatelink

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/changes"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/platform/beside"
	"hcp.internal/platform/internal/platform/privatelinks"
)

// externalNamesLabel is on the Services by which external-dns learns the names of a private control plane.
const externalNamesLabel = "hypershift.openshift.io/azure-pls-external-private-svc"

// Endpoints is the control-plane-operator's part: it makes private endpoints, zones and records in the hosted cluster's subscription, and removes them. It
// writes what the status says of these, conditions AzurePrivateEndpointAvailable, AzurePrivateDNSAvailable and AzurePrivateLinkServiceAvailable, and its
// finalizer.
type Endpoints struct {
	Client  client.Client
	Applier *apply.Applier
	Clock   clock.PassiveClock
	// Open makes the client of a subscription in a cloud; it is called until it succeeds.
	Open func(cloudName, subscription string) (*Consumer, error)

	clients  beside.Clients[[2]string, *Consumer]
	outcomes outcome.Outcomes
}

// SetupWithManager registers the controller.
func (r *Endpoints) SetupWithManager(mgr ctrl.Manager) error {
	noted := changes.Of(func(obj client.Object) any {
		if link, ok := obj.(*hyperv1.AzurePrivateLinkService); ok {
			return link.Status.PrivateLinkServiceAlias
		}
		return nil
	})
	return ctrl.NewControllerManagedBy(mgr).Named("azure-private-endpoints").
		For(&hyperv1.AzurePrivateLinkService{}, builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, privatelinks.FinalizersChanged(), noted))).
		Watches(&hyperv1.HostedControlPlane{}, privatelinks.LinksBeside(privatelinks.AzureBalancers), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(process.Workers(2, 3*time.Second, 30*time.Second)).Complete(r)
}

func (r *Endpoints) open(obj *hyperv1.AzurePrivateLinkService, hcp *hyperv1.HostedControlPlane) (*Consumer, error) {
	cloudName, subscription := hcp.Spec.Platform.Azure.Cloud, string(obj.Spec.SubscriptionID)
	return r.clients.Get([2]string{cloudName, subscription}, "", func() (*Consumer, error) { return r.Open(cloudName, subscription) })
}

// Reconcile does one pass.
func (r *Endpoints) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, endpointTimeout)
	defer cancel()
	return r.outcomes.Pass(ctx, r, req, r.next)
}

func (r *Endpoints) next(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj, err := read.Optional(ctx, r.Client, req.NamespacedName, &hyperv1.AzurePrivateLinkService{})
	if err != nil || obj == nil {
		return ctrl.Result{}, err
	}
	hcp, err := privatelinks.ControlPlane(ctx, r.Client, req.Namespace)
	if err != nil || hcp == nil || hcp.Spec.Platform.Azure == nil {
		return ctrl.Result{}, err
	}
	if !obj.DeletionTimestamp.IsZero() {
		return r.remove(ctx, obj, hcp)
	}
	if p := pause.At(hcp.Spec.PausedUntil, r.Clock.Now()); p.Active {
		return ctrl.Result{RequeueAfter: p.Left(r.Clock.Now())}, nil
	}
	if obj.Status.PrivateLinkServiceAlias == "" && obj.Status.PrivateEndpointID == "" || !hcp.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the alias comes as a change of the object
	}
	// Stored before the first call, so that nothing is left behind.
	if _, err := patch.EnsureFinalizer(ctx, r.Client, obj, privatelinks.AzureEndpointFinalizer); err != nil {
		return ctrl.Result{}, err
	}
	before := obj.DeepCopy()
	failed := r.connect(ctx, obj, hcp)
	var unpublished error
	if failed == nil && obj.Name == endpoints.PrivateRouterServiceName {
		unpublished = privatelinks.PublishNames(ctx, r.Client, r.Applier, hcp, externalNamesLabel, string(obj.Status.PrivateEndpointIP))
	}
	if err := errors.Join(patch.Status(ctx, r.Client, before, obj), unpublished); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: pauseAfter(ctx, failed)}, nil
}

// connect brings endpoint, zones and records to what is asked for, and notes in the status how far they are.
func (r *Endpoints) connect(ctx context.Context, obj *hyperv1.AzurePrivateLinkService, hcp *hyperv1.HostedControlPlane) (failed error) {
	defer func() { set(r.Clock, obj, hyperv1.AzurePrivateLinkServiceAvailable, hyperv1.AzureErrorReason, failed) }()
	if obj.Status.PrivateLinkServiceAlias == "" {
		err := waitFor("The Private Link service is gone; it is made anew")
		set(r.Clock, obj, hyperv1.AzurePrivateEndpointAvailable, hyperv1.AzureErrorReason, err)
		return err
	}
	c, err := r.open(obj, hcp)
	if err == nil {
		err = c.ensureEndpoint(ctx, obj, hcp)
	}
	reason := hyperv1.AzureErrorReason
	if pending := new(errNotApproved); errors.As(err, &pending) {
		reason, err = ReasonConnectionNotApproved, &pending.waiting
	}
	set(r.Clock, obj, hyperv1.AzurePrivateEndpointAvailable, reason, err)
	if err != nil {
		return err
	}
	err = c.ensureNames(ctx, obj, hcp)
	set(r.Clock, obj, hyperv1.AzurePrivateDNSAvailable, hyperv1.AzureErrorReason, err)
	return err
}

// remove deletes what was made, and lets the object go.
func (r *Endpoints) remove(ctx context.Context, obj *hyperv1.AzurePrivateLinkService, hcp *hyperv1.HostedControlPlane) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(obj, privatelinks.AzureEndpointFinalizer) {
		return ctrl.Result{}, nil
	}
	before := obj.DeepCopy()
	c, err := r.open(obj, hcp)
	if err == nil {
		err = c.remove(ctx, obj, hcp)
	}
	if err != nil {
		set(r.Clock, obj, hyperv1.AzurePrivateEndpointAvailable, hyperv1.AzureErrorReason, err)
		return ctrl.Result{RequeueAfter: pauseAfter(ctx, err)}, patch.Status(ctx, r.Client, before, obj)
	}
	ctrl.LoggerFrom(ctx).Info("removed the private endpoint and what belongs to it", "endpoint", obj.Status.PrivateEndpointID)
	return ctrl.Result{}, patch.RemoveFinalizer(ctx, r.Client, obj, privatelinks.AzureEndpointFinalizer)
}
