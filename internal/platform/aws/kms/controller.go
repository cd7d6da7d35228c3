package kms

import (
	"context"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/aws/fault"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/kube/read"
)

// How often the key is tried: after it worked, and after it did not; half of it more for some.
const (
	tryAgain, trySoon = 5 * time.Minute, 30 * time.Second
	// callTimeout bounds one pass.
	callTimeout = time.Minute
)

// Reconciler keeps condition ValidAWSKMSConfig of a HostedControlPlane.
type Reconciler struct {
	Client client.Client
	Clock  clock.PassiveClock
	// Token makes a token of the hosted cluster for the plugin's service account.
	Token func(ctx context.Context, hcp *hyperv1.HostedControlPlane) (string, error)

	outcomes outcome.Outcomes
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("aws-kms").
		For(&hyperv1.HostedControlPlane{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(process.Workers(1, time.Second, 30*time.Second)).Complete(r)
}

// Reconcile does one pass.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.outcomes.Pass(ctx, r, req, r.next)
}

func (r *Reconciler) next(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hcp, err := read.Optional(ctx, r.Client, req.NamespacedName, &hyperv1.HostedControlPlane{})
	if err != nil || hcp == nil || hcp.Spec.Platform.AWS == nil || !hcp.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, err
	}
	before := hcp.DeepCopy()
	c := r.condition(ctx, hcp)
	c.ObservedGeneration = hcp.Generation
	conditions.Set(&hcp.Status.Conditions, r.Clock.Now(), c)
	if err := patch.Status(ctx, r.Client, before, hcp); err != nil {
		return ctrl.Result{}, err
	}
	switch {
	case specOf(hcp) == nil:
		return ctrl.Result{}, nil // a change of the spec tells
	case c.Status == metav1.ConditionTrue:
		return ctrl.Result{RequeueAfter: tryAgain + rand.N(tryAgain/2)}, nil
	}
	return ctrl.Result{RequeueAfter: trySoon + rand.N(trySoon/2)}, nil
}

// specOf is the key of a hosted cluster; nil: its secrets are encrypted otherwise.
func specOf(hcp *hyperv1.HostedControlPlane) *hyperv1.AWSKMSSpec {
	if e := hcp.Spec.SecretEncryption; e != nil && e.KMS != nil && e.KMS.AWS != nil && e.KMS.AWS.ActiveKey.ARN != "" {
		return e.KMS.AWS
	}
	return nil
}

// condition tries the key.
func (r *Reconciler) condition(ctx context.Context, hcp *hyperv1.HostedControlPlane) metav1.Condition {
	const t = hyperv1.ValidAWSKMSConfig
	spec := specOf(hcp)
	switch {
	case spec == nil:
		return conditions.Unknown(t, hyperv1.StatusUnknownReason, "AWS KMS is not configured")
	case !conditions.IsTrue(hcp.Status.Conditions, hyperv1.KubeAPIServerAvailable):
		return conditions.Unknown(t, hyperv1.StatusUnknownReason, "Cannot validate the AWS KMS configuration while KubeAPIServer is not available")
	}
	token, err := r.Token(ctx, hcp)
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("no token for the KMS plugin", "error", err.Error())
		return conditions.Unknown(t, hyperv1.StatusUnknownReason, "The hosted cluster gives no token for service account kube-system/kms-provider yet")
	}
	keys, err := open(ctx, spec, token)
	if err != nil {
		return conditions.Unknown(t, hyperv1.StatusUnknownReason, "The KMS client can't be made: "+err.Error())
	}
	// In two steps, so that it is known which of them is refused.
	if err := keys.assume(ctx); err != nil {
		return refusal(hyperv1.InvalidIAMRoleReason, "failed to take on role "+spec.Auth.AWSKMSRoleARN, err)
	}
	if err := keys.encrypt(ctx, spec.ActiveKey.ARN); err != nil {
		return refusal(hyperv1.AWSErrorReason, "failed to encrypt with key "+spec.ActiveKey.ARN, err)
	}
	return conditions.True(t, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage)
}

// refusal is False for what AWS answered. What passes by itself doesn't make a configuration wrong.
func refusal(reason, what string, err error) metav1.Condition {
	const t = hyperv1.ValidAWSKMSConfig
	text := fault.Told(what, err).Error()
	if fault.Code(err) == "" || fault.Passing(err) {
		return conditions.Unknown(t, hyperv1.StatusUnknownReason, text)
	}
	return conditions.False(t, reason, text)
}
