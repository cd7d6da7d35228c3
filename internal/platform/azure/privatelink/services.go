package privatelink

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v6"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

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

// Reasons of conditions besides AzureSuccess and AzureError.
const (
	// ReasonILBLookupFailed: no internal load balancer is known by the address, or Azure can't be asked.
	ReasonILBLookupFailed = "ILBLookupFailed"
	// ReasonNATSubnetCreationFailed: there is no subnet for address translation.
	ReasonNATSubnetCreationFailed = "NATSubnetCreationFailed"
	// ReasonPLSCreationFailed: the Private Link service isn't made, changed or deleted.
	ReasonPLSCreationFailed = "PLSCreationFailed"
	// ReasonConnectionNotApproved: the private endpoint isn't let through to the control plane.
	ReasonConnectionNotApproved = "PrivateEndpointConnectionNotApproved"
)

// Services is the hypershift-operator's part: it makes Private Link services and says who may connect to them. It writes status.internalLoadBalancerID,
// privateLinkServiceID and privateLinkServiceAlias, conditions AzureInternalLoadBalancerAvailable and AzurePLSCreated, an annotation and its finalizer.
type Services struct {
	Client client.Client
	// Live is uncached; with it is read what is needed rarely.
	Live     client.Reader
	Clock    clock.PassiveClock
	Identity scope.Identity
	// Open makes the client of a cloud; it is called until it succeeds, and again when Credentials changes.
	Open func(cloudName string) (*Provider, error)
	// Credentials is the file that Open reads; empty: none.
	Credentials string

	clients  beside.Clients[string, *Provider]
	outcomes outcome.Outcomes
}

// SetupWithManager registers the controller.
func (r *Services) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("azure-private-link-services").
		For(&hyperv1.AzurePrivateLinkService{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, privatelinks.FinalizersChanged()))).
		Watches(&hyperv1.HostedCluster{}, privatelinks.LinksOf(hyperv1.AzurePlatform, privatelinks.AzureBalancers), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(process.Workers(4, 3*time.Second, 30*time.Second)).Complete(r)
}

func (r *Services) open(hc *hyperv1.HostedCluster) (*Provider, error) {
	cloudName := ""
	if hc != nil && hc.Spec.Platform.Azure != nil {
		cloudName = hc.Spec.Platform.Azure.Cloud
	}
	return r.clients.Get(cloudName, r.Credentials, func() (*Provider, error) { return r.Open(cloudName) })
}

// Reconcile does one pass.
func (r *Services) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	return r.outcomes.Pass(ctx, r, req, r.next)
}

func (r *Services) next(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj, err := read.Optional(ctx, r.Client, req.NamespacedName, &hyperv1.AzurePrivateLinkService{})
	if err != nil || obj == nil {
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
		return r.remove(ctx, obj, hc)
	case hc == nil || !hc.DeletionTimestamp.IsZero() || hc.Spec.Platform.Azure == nil || obj.Spec.LoadBalancerIP == "":
		return ctrl.Result{}, nil // its deletion comes from who made it, and the address as a change of the object
	}
	if p := pause.At(hc.Spec.PausedUntil, r.Clock.Now()); p.Active {
		return ctrl.Result{RequeueAfter: p.Left(r.Clock.Now())}, nil
	}
	// Stored before the first call, so that nothing is left behind.
	if _, err := patch.EnsureFinalizer(ctx, r.Client, obj, privatelinks.AzureServiceFinalizer); err != nil {
		return ctrl.Result{}, err
	}
	before := obj.DeepCopy()
	failed := r.serve(ctx, obj, hc)
	if status := apierrors.APIStatus(nil); errors.As(failed, &status) {
		return ctrl.Result{}, failed // it isn't about Azure
	}
	before.Annotations, before.ResourceVersion = obj.Annotations, obj.ResourceVersion // the subnet's is stored already
	if err := patch.Status(ctx, r.Client, before, obj); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: pauseAfter(ctx, failed)}, nil
}

// clusterOf is the HostedCluster of a link by its annotation, nil without.
func (r *Services) clusterOf(ctx context.Context, obj *hyperv1.AzurePrivateLinkService) (*hyperv1.HostedCluster, error) {
	key, ok := names.ParseBackReference(obj.Annotations[hyperv1.HostedClusterAnnotation])
	if !ok || names.ControlPlaneNamespace(key.Namespace, key.Name) != obj.Namespace {
		return nil, nil
	}
	return read.Optional(ctx, r.Client, key, &hyperv1.HostedCluster{})
}

// set writes a condition: True without failed, which is what is wrong otherwise.
func set(c clock.PassiveClock, obj *hyperv1.AzurePrivateLinkService, t, reason string, failed error) {
	condition := conditions.True(t, hyperv1.AzureSuccessReason, hyperv1.AllIsWellMessage)
	if failed != nil {
		condition = conditions.False(t, reason, failed.Error())
	}
	condition.ObservedGeneration = obj.Generation
	conditions.Set(&obj.Status.Conditions, c.Now(), condition)
}

// serve brings the Private Link service to what is asked for, and notes in the status how far it is.
func (r *Services) serve(ctx context.Context, obj *hyperv1.AzurePrivateLinkService, hc *hyperv1.HostedCluster) error {
	p, err := r.open(hc)
	if err == nil && hc.Spec.ClusterID == "" {
		err = waitFor("spec.clusterID of the HostedCluster isn't known yet")
	}
	var front *frontend
	if err == nil {
		front, err = p.frontend(ctx, string(obj.Spec.LoadBalancerIP))
	}
	set(r.Clock, obj, hyperv1.AzureInternalLoadBalancerAvailable, ReasonILBLookupFailed, err)
	if err != nil {
		return err
	}
	obj.Status.InternalLoadBalancerID = front.balancer
	reason, err := r.ensure(ctx, p, front, obj, hc)
	set(r.Clock, obj, hyperv1.AzurePLSCreated, reason, err)
	return err
}

// ensure makes what is missing. It may be interrupted anywhere.
func (r *Services) ensure(ctx context.Context, p *Provider, front *frontend, obj *hyperv1.AzurePrivateLinkService, hc *hyperv1.HostedCluster) (reason string, _ error) {
	name := lastOf(obj.Status.PrivateLinkServiceID, serviceName(obj.Name, hc.Spec.ClusterID))
	live, err := p.service(ctx, name)
	if err != nil {
		return ReasonPLSCreationFailed, err
	}
	if live != nil && obj.Status.PrivateLinkServiceID == "" && foreign(live, hc) {
		return ReasonPLSCreationFailed, fmt.Errorf("Private Link service %s is that of another hosted cluster, whose spec.clusterID this one has: create this HostedCluster anew without a clusterID", name)
	}
	if live == nil || !leadsTo(live, front.id) {
		// What was noted is gone, or is about to: endpoints wait for another alias.
		obj.Status.PrivateLinkServiceID, obj.Status.PrivateLinkServiceAlias = "", ""
	}
	if live != nil && !leadsTo(live, front.id) {
		if err := p.remove(ctx, name); err != nil {
			return ReasonPLSCreationFailed, err
		}
		live, name = nil, serviceName(obj.Name, hc.Spec.ClusterID)
	}
	w := wish{
		location: obj.Spec.Location, frontend: front.id, subscriptions: allowed(obj.Spec),
		tags: map[string]*string{clusterTag + hc.Name: to.Ptr(owned), typeTag: to.Ptr(typeService), hostedClusterTag: to.Ptr(names.BackReference(hc))},
	}
	switch {
	case live != nil && comesOrGoes(live.Properties.ProvisioningState):
		return ReasonPLSCreationFailed, waitFor("Azure is at work on Private Link service %s", name)
	case live == nil:
		if w.subnet, err = r.natSubnet(ctx, p, front, obj, hc); err != nil {
			return ReasonNATSubnetCreationFailed, err
		}
		live, err = p.put(ctx, name, w.made())
	case !open(live, w.subscriptions):
		live.Properties.Visibility = &armnetwork.PrivateLinkServicePropertiesVisibility{Subscriptions: to.SliceOfPtrs(w.subscriptions...)}
		live.Properties.AutoApproval = &armnetwork.PrivateLinkServicePropertiesAutoApproval{Subscriptions: to.SliceOfPtrs(w.subscriptions...)}
		live, err = p.put(ctx, name, *live)
	case value(live.Properties.ProvisioningState) == armnetwork.ProvisioningStateFailed:
		live, err = p.put(ctx, name, *live)
	}
	if err != nil {
		return ReasonPLSCreationFailed, err
	}
	alias := value(live.Properties.Alias)
	if alias == "" {
		return ReasonPLSCreationFailed, waitFor("Private Link service %s has no alias yet", name)
	}
	obj.Status.PrivateLinkServiceID, obj.Status.PrivateLinkServiceAlias = idOf(p.Subscription, p.Group, "privateLinkServices", name), alias
	return "", nil
}

// natSubnet is the ID of the subnet for address translation: the user's, or one that is made in the load balancer's virtual network. That one is noted
// before it is made, so that it goes with the service.
func (r *Services) natSubnet(ctx context.Context, p *Provider, front *frontend, obj *hyperv1.AzurePrivateLinkService, hc *hyperv1.HostedCluster) (string, error) {
	if id := string(obj.Spec.NATSubnetID); id != "" {
		return id, nil
	}
	group, network, _, err := networkOf(front.subnet)
	if err != nil {
		return "", err
	}
	id := idOf(p.Subscription, group, "virtualNetworks", network) + "/subnets/" + natSubnetName(hc.Spec.InfraID)
	if obj.Annotations[natSubnetAnnotation] != id {
		before, status := obj.DeepCopy(), obj.Status.DeepCopy()
		metav1.SetMetaDataAnnotation(&obj.ObjectMeta, natSubnetAnnotation, id)
		// The lock is for the status: what others wrote into it since would be undone by what follows.
		if err := r.Client.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return "", fmt.Errorf("noting the subnet of AzurePrivateLinkService %s: %w", client.ObjectKeyFromObject(obj), err)
		}
		obj.Status = *status
	}
	return id, p.ensureSubnet(ctx, id)
}

// remove deletes the Private Link service and its subnet once the endpoint's side is through, and lets the object go.
func (r *Services) remove(ctx context.Context, obj *hyperv1.AzurePrivateLinkService, hc *hyperv1.HostedCluster) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(obj, privatelinks.AzureServiceFinalizer) || controllerutil.ContainsFinalizer(obj, privatelinks.AzureEndpointFinalizer) {
		return ctrl.Result{}, nil
	}
	before := obj.DeepCopy()
	p, err := r.open(hc)
	if err == nil {
		err = r.dismantle(ctx, p, obj, hc)
	}
	if err != nil {
		set(r.Clock, obj, hyperv1.AzurePLSCreated, ReasonPLSCreationFailed, err)
		return ctrl.Result{RequeueAfter: pauseAfter(ctx, err)}, patch.Status(ctx, r.Client, before, obj)
	}
	ctrl.LoggerFrom(ctx).Info("removed the Private Link service", "service", obj.Status.PrivateLinkServiceID)
	return ctrl.Result{}, patch.RemoveFinalizer(ctx, r.Client, obj, privatelinks.AzureServiceFinalizer)
}

// dismantle says by nil that nothing is left. A service whose maker died before it noted it is found by its name.
func (r *Services) dismantle(ctx context.Context, p *Provider, obj *hyperv1.AzurePrivateLinkService, hc *hyperv1.HostedCluster) error {
	name, err := lastOf(obj.Status.PrivateLinkServiceID, ""), error(nil)
	if name == "" && hc != nil && hc.Spec.ClusterID != "" {
		name, err = p.unnoted(ctx, obj.Name, hc)
	}
	if err == nil && name != "" {
		err = p.remove(ctx, name)
	}
	if err != nil {
		var r *refusal
		if errors.As(err, &r) && r.status == http.StatusForbidden && obj.Status.PrivateLinkServiceID == "" {
			return nil // with this identity none was made
		}
		return err
	}
	subnet := obj.Annotations[natSubnetAnnotation]
	if subnet == "" {
		return nil
	}
	err = p.removeSubnet(ctx, subnet)
	if !errors.Is(err, errInUse) {
		return err
	}
	// The control plane's other link may be in it, which deletes it when it goes.
	list := &hyperv1.AzurePrivateLinkServiceList{}
	if err := r.Live.List(ctx, list, client.InNamespace(obj.Namespace)); err != nil {
		return fmt.Errorf("listing the AzurePrivateLinkServices of namespace %s: %w", obj.Namespace, err)
	}
	for i := range list.Items {
		if other := &list.Items[i]; other.Name != obj.Name && other.DeletionTimestamp.IsZero() && other.Annotations[natSubnetAnnotation] == subnet {
			return nil
		}
	}
	return waitFor("Something is in subnet %s still", lastOf(subnet, subnet))
}
