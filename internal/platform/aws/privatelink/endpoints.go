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
const externalNamesLabel = "hypershift.openshift.io/external-private-service"

// Endpoints is the control-plane-operator's part: it makes security groups, VPC endpoints and DNS records in the hosted cluster's account, and removes them.
// It writes status.endpointID, dnsNames, dnsZoneID and securityGroupID, condition AWSEndpointAvailable and its finalizer.
type Endpoints struct {
	Client  client.Client
	Applier *apply.Applier
	Clock   clock.PassiveClock
	// Open makes the client of AWS for a cluster; it is called until it succeeds, and again for other roles, and when Credentials changes.
	Open func(ctx context.Context, as Account) (*Consumer, error)
	// Credentials is the file that Open reads; empty: none.
	Credentials string

	clients  beside.Clients[Account, *Consumer]
	patience patience
	outcomes outcome.Outcomes
}

// SetupWithManager registers the controller.
func (r *Endpoints) SetupWithManager(mgr ctrl.Manager) error {
	noted := changes.Of(func(obj client.Object) any {
		if link, ok := obj.(*hyperv1.AWSEndpointService); ok {
			return link.Status.EndpointServiceName
		}
		return nil
	})
	return ctrl.NewControllerManagedBy(mgr).Named("aws-endpoints").
		For(&hyperv1.AWSEndpointService{}, builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, privatelinks.FinalizersChanged(), noted))).
		Watches(&hyperv1.HostedControlPlane{}, privatelinks.LinksBeside(balancers), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(process.Workers(2, time.Second, 30*time.Second)).Complete(r)
}

// accountOf says as whom a cluster's VPC and its zone are worked on.
func accountOf(hcp *hyperv1.HostedControlPlane) Account {
	a := Account{Region: hcp.Spec.Platform.AWS.Region}
	if shared := hcp.Spec.Platform.AWS.SharedVPC; shared != nil {
		a.VPCRole, a.ZoneRole = shared.RolesRef.ControlPlaneARN, shared.RolesRef.IngressARN
	}
	return a
}

func (r *Endpoints) open(ctx context.Context, hcp *hyperv1.HostedControlPlane) (*Consumer, error) {
	as := accountOf(hcp)
	c, err := r.clients.Get(as, r.Credentials, func() (*Consumer, error) { return r.Open(ctx, as) })
	if err != nil {
		return nil, errors.New("the credentials for AWS in Secret control-plane-operator-creds can't be read: spec.platform.aws.rolesRef.controlPlaneOperatorARN of the HostedCluster names the role")
	}
	return c, nil
}

// Reconcile does one pass.
func (r *Endpoints) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.outcomes.Pass(ctx, r, req, r.next)
}

func (r *Endpoints) next(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj, err := read.Optional(ctx, r.Client, req.NamespacedName, &hyperv1.AWSEndpointService{})
	if err != nil || obj == nil {
		r.patience.forget(req.NamespacedName)
		return ctrl.Result{}, err
	}
	hcp, err := privatelinks.ControlPlane(ctx, r.Client, req.Namespace)
	if err != nil || hcp == nil || hcp.Spec.Platform.AWS == nil {
		return ctrl.Result{}, err
	}
	if !obj.DeletionTimestamp.IsZero() {
		return r.remove(ctx, obj, hcp)
	}
	if p := pause.At(hcp.Spec.PausedUntil, r.Clock.Now()); p.Active {
		return ctrl.Result{RequeueAfter: p.Left(r.Clock.Now())}, nil
	}
	if obj.Status.EndpointServiceName == "" || !hcp.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // its name comes as a change of the object
	}
	// Stored before the first call, so that nothing is left behind.
	if _, err := patch.EnsureFinalizer(ctx, r.Client, obj, hyperv1.AWSEndpointServiceCPOFinalizer); err != nil {
		return ctrl.Result{}, err
	}
	before := obj.DeepCopy()
	host, failed := r.connect(ctx, obj, hcp)
	var refused error
	if failed == nil && obj.Name == balancers[1] {
		refused = privatelinks.PublishNames(ctx, r.Client, r.Applier, hcp, externalNamesLabel, host)
	}
	setCondition(r.Clock, obj, hyperv1.AWSEndpointAvailable, failed)
	if err := errors.Join(patch.Status(ctx, r.Client, before, obj), refused); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: pauseAfter(ctx, &r.patience, obj, failed)}, nil
}

// connect brings group, endpoint and records to what is asked for, notes them in the status as soon as they are there, and gives the endpoint's own name.
func (r *Endpoints) connect(ctx context.Context, obj *hyperv1.AWSEndpointService, hcp *hyperv1.HostedControlPlane) (host string, _ error) {
	if c := hcp.Spec.Platform.AWS.CloudProviderConfig; c == nil || c.VPC == "" {
		return "", errors.New("spec.platform.aws.cloudProviderConfig.vpc is missing: name the VPC of the machines")
	}
	if len(hcp.Spec.Networking.MachineNetwork) == 0 {
		return "", errors.New("spec.networking.machineNetwork is empty: name the networks of the machines")
	}
	if len(obj.Spec.SubnetIDs) == 0 {
		return "", errors.New("no NodePool names its subnet by ID, so there is none for the endpoint: name one by spec.platform.aws.subnet.id of a NodePool")
	}
	c, err := r.open(ctx, hcp)
	if err != nil {
		return "", err
	}
	if obj.Status.SecurityGroupID, err = c.ensureGroup(ctx, obj, hcp); err != nil {
		return "", err
	}
	e, err := c.ensureEndpoint(ctx, obj, hcp)
	if err != nil {
		return "", err
	}
	if len(e.DnsEntries) == 0 || e.DnsEntries[0].DnsName == nil {
		return "", waitFor("VPC endpoint %s has no name yet", obj.Status.EndpointID)
	}
	host = *e.DnsEntries[0].DnsName
	return host, c.ensureRecords(ctx, obj, hcp, host)
}

// remove deletes what was made, and lets the object go.
func (r *Endpoints) remove(ctx context.Context, obj *hyperv1.AWSEndpointService, hcp *hyperv1.HostedControlPlane) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(obj, hyperv1.AWSEndpointServiceCPOFinalizer) {
		return ctrl.Result{}, nil
	}
	before := obj.DeepCopy()
	c, err := r.open(ctx, hcp)
	if err == nil {
		err = c.remove(ctx, obj, hcp)
	}
	if err != nil {
		setCondition(r.Clock, obj, hyperv1.AWSEndpointAvailable, err)
		return ctrl.Result{RequeueAfter: pauseAfter(ctx, &r.patience, obj, err)}, patch.Status(ctx, r.Client, before, obj)
	}
	ctrl.LoggerFrom(ctx).Info("removed the VPC endpoint and what belongs to it", "endpoint", obj.Status.EndpointID)
	r.patience.forget(client.ObjectKeyFromObject(obj))
	return ctrl.Result{}, patch.RemoveFinalizer(ctx, r.Client, obj, hyperv1.AWSEndpointServiceCPOFinalizer)
}
