package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/aws/ec2values"
	"hcp.internal/platform/internal/aws/fault"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/kube/process"
	platformaws "hcp.internal/platform/internal/platform/aws"
	"hcp.internal/platform/internal/platform/beside"
)

// How often AWS is asked whether it takes tokens: after it did, and after it did not.
const (
	checkAgain = 5 * time.Minute
	checkSoon  = 30 * time.Second
	// removalRecheck is how often a cluster that goes is looked at.
	removalRecheck = 10 * time.Second
)

// Bounds of retries.
const (
	firstRetry = 3 * time.Second
	lastRetry  = 30 * time.Second
	// callTimeout bounds one pass.
	callTimeout = 2 * time.Minute
)

// Reconciler keeps conditions ValidAWSIdentityProvider and AWSDefaultSecurityGroupCreated of a HostedControlPlane, the security group, and its ID in
// status.platform.
type Reconciler struct {
	Client client.Client
	Clock  clock.PassiveClock
	// NewAPI makes a client for a region; it is called until it succeeds, and again when Credentials changes.
	NewAPI func(ctx context.Context, region string) (API, error)
	// Credentials is the file that NewAPI reads; empty: none.
	Credentials string

	clients  beside.Clients[struct{}, API]
	outcomes outcome.Outcomes
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("aws-workers").
		For(&hyperv1.HostedControlPlane{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WithOptions(process.Workers(1, firstRetry, lastRetry)).Complete(r)
}

// client is that of EC2.
func (r *Reconciler) client(ctx context.Context, hcp *hyperv1.HostedControlPlane) (API, error) {
	return r.clients.Get(struct{}{}, r.Credentials, func() (API, error) { return r.NewAPI(ctx, hcp.Spec.Platform.AWS.Region) })
}

// Reconcile does one pass.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.outcomes.Pass(ctx, r, req, r.next)
}

func (r *Reconciler) next(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hcp := &hyperv1.HostedControlPlane{}
	if err := r.Client.Get(ctx, req.NamespacedName, hcp); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if hcp.Spec.Platform.AWS == nil {
		return ctrl.Result{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	before := hcp.DeepCopy()
	identity := r.identity(ctx, hcp)
	set := []metav1.Condition{identity}
	if hcp.DeletionTimestamp.IsZero() {
		if c, err := r.group(ctx, hcp, identity.Status == metav1.ConditionTrue); err != nil {
			return ctrl.Result{}, err
		} else if c != nil {
			set = append(set, *c)
		}
	} else if c := r.remove(ctx, hcp); c != nil {
		set = append(set, *c)
	}
	for i := range set {
		set[i].ObservedGeneration = hcp.Generation
	}
	conditions.Set(&hcp.Status.Conditions, r.Clock.Now(), set...)
	if err := patch.Status(ctx, r.Client, before, hcp); err != nil {
		return ctrl.Result{}, err
	}
	if !hcp.DeletionTimestamp.IsZero() {
		return ctrl.Result{RequeueAfter: removalRecheck}, nil
	}
	for _, c := range set {
		if c.Status != metav1.ConditionTrue {
			return ctrl.Result{RequeueAfter: checkSoon}, nil
		}
	}
	return ctrl.Result{RequeueAfter: checkAgain}, nil
}

// refusals are codes that say that AWS does not take the tokens of this hosted cluster: the provider is gone or another's, or the role doesn't trust it.
var refusals = []string{"WebIdentityErr", "InvalidIdentityToken", "AccessDenied", "IDPRejectedClaim"}

// identity asks AWS something harmless.
func (r *Reconciler) identity(ctx context.Context, hcp *hyperv1.HostedControlPlane) metav1.Condition {
	const t = hyperv1.ValidAWSIdentityProvider
	if !conditions.IsTrue(hcp.Status.Conditions, hyperv1.KubeAPIServerAvailable) {
		return conditions.Unknown(t, hyperv1.StatusUnknownReason, "Cannot validate AWS identity provider while KubeAPIServer is not available")
	}
	api, err := r.client(ctx, hcp)
	if err != nil {
		return conditions.Unknown(t, hyperv1.StatusUnknownReason, "AWS EC2 client is not available")
	}
	api.Renew() // credentials are good for an hour, whatever AWS thinks of the next token meanwhile
	_, err = api.DescribeVpcEndpoints(ctx, &ec2.DescribeVpcEndpointsInput{})
	return identityCondition(err)
}

func identityCondition(err error) metav1.Condition {
	const t = hyperv1.ValidAWSIdentityProvider
	code := fault.Code(err)
	switch {
	case err == nil:
		return conditions.True(t, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage)
	case fault.Is(err, refusals...):
		return conditions.False(t, hyperv1.InvalidIdentityProviderReason, code)
	case code != "":
		return conditions.Unknown(t, hyperv1.AWSErrorReason, code)
	}
	return conditions.Unknown(t, hyperv1.StatusUnknownReason, "AWS could not be asked")
}

// group keeps the security group. nil: nothing is known yet. The error is that of the API server of the management cluster.
func (r *Reconciler) group(ctx context.Context, hcp *hyperv1.HostedControlPlane, trusted bool) (*metav1.Condition, error) {
	const t = hyperv1.AWSDefaultSecurityGroupCreated
	id := groupOf(hcp)
	if id == "" && !trusted {
		return nil, nil
	}
	api, err := r.client(ctx, hcp)
	if err != nil {
		return nil, nil //nolint:nilerr // because ValidAWSIdentityProvider says it
	}
	if id == "" {
		if id, err = ensure(ctx, api, hcp); err != nil {
			c := conditions.False(t, hyperv1.AWSErrorReason, err.Error())
			return &c, nil
		}
		if hcp.Status.Platform == nil {
			hcp.Status.Platform = &hyperv1.PlatformStatus{}
		}
		hcp.Status.Platform.AWS = &hyperv1.AWSPlatformStatus{DefaultWorkerSecurityGroupID: id}
	}
	if err := r.tag(ctx, api, hcp, id); err != nil {
		return nil, err
	}
	c := conditions.True(t, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage)
	return &c, nil
}

func groupOf(hcp *hyperv1.HostedControlPlane) string {
	if p := hcp.Status.Platform; p != nil && p.AWS != nil {
		return p.AWS.DefaultWorkerSecurityGroupID
	}
	return ""
}

// tag brings the group's tags up to the spec, and remembers them. What AWS refuses is logged: machines do without.
func (r *Reconciler) tag(ctx context.Context, api API, hcp *hyperv1.HostedControlPlane, id string) error {
	want := wantedTags(hcp)
	before, known := applied(hcp)
	if !known {
		out, err := api.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{id}})
		if err != nil || len(out.SecurityGroups) == 0 {
			ctrl.LoggerFrom(ctx).Info("could not read the tags of the default security group", "group", id, "code", fault.Code(err))
			return nil
		}
		// Only what is wanted is ours: nothing is removed that we don't know of.
		before = ec2values.Set(out.SecurityGroups[0].Tags)
		for key := range before {
			if _, ours := want[key]; !ours {
				delete(before, key)
			}
		}
	}
	text, err := encode(want)
	if err != nil || hcp.Annotations[AppliedTagsAnnotation] == text {
		return err
	}
	if err := retag(ctx, api, id, before, want); err != nil {
		ctrl.LoggerFrom(ctx).Info("could not change the tags of the default security group", "group", id, "error", err.Error())
		return nil
	}
	if err := r.Client.Patch(ctx, hcp.DeepCopy(), patch.Annotation(AppliedTagsAnnotation, &text)); err != nil {
		return fmt.Errorf("noting the tags of the security group on HostedControlPlane %s: %w", client.ObjectKeyFromObject(hcp), err)
	}
	return outcome.ErrStale // the status is to be written over the new version
}

// remove deletes the security group of a HostedControlPlane that goes, when its turn has come. nil: it hasn't, or AWS is to be asked again.
func (r *Reconciler) remove(ctx context.Context, hcp *hyperv1.HostedControlPlane) *metav1.Condition {
	if platformaws.Removing(hcp, r.Clock.Now()) != hyperv1.AWSDefaultSecurityGroupDeleted {
		return nil
	}
	api, err := r.client(ctx, hcp)
	if err == nil {
		err = remove(ctx, api, hcp.Spec.InfraID)
	}
	if err != nil && !fault.Is(err, hopeless...) {
		ctrl.LoggerFrom(ctx).Info("could not remove the default security group; it is tried again", "error", err.Error())
		return nil
	}
	c := deletedCondition(err)
	return &c
}

// hopeless are codes after which a deletion goes on without.
var hopeless = []string{"UnauthorizedOperation", "InvalidIdentityToken", "DependencyViolation"}

// deletedCondition says what became of the group. What depends on it is named: somebody has to remove that.
func deletedCondition(err error) metav1.Condition {
	const t = hyperv1.AWSDefaultSecurityGroupDeleted
	var api smithy.APIError
	switch {
	case err == nil:
		return conditions.True(t, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage)
	case fault.Is(err, "DependencyViolation") && errors.As(err, &api):
		return conditions.False(t, hyperv1.AWSErrorReason, api.ErrorMessage())
	}
	return conditions.False(t, hyperv1.AWSErrorReason, err.Error())
}
