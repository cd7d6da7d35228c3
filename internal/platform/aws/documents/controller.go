package documents

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/aws/fault"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/platform/beside"
)

// PublishedAnnotation on a HostedCluster holds a hash of the documents that were written last, and of where they are.
const PublishedAnnotation = "hypershift.openshift.io/oidc-documents"

// publicKeyKey of Secret names.ServiceAccountKey holds the public halves of the keys that tokens are signed by.
const publicKeyKey = "service-account.pub"

const (
	// compareEvery is how often what is published is looked at; half of it more for some, so that clusters don't do so at once.
	compareEvery = 10 * time.Minute
	// tryAgain is after AWS refused, waitForPlane while the control plane has no key yet, or isn't gone yet.
	tryAgain, waitForPlane = 30 * time.Second, 5 * time.Second
	// callTimeout bounds one pass.
	callTimeout = time.Minute
)

// Bounds of retries after the management cluster refused.
const firstRetry, lastRetry = time.Second, 30 * time.Second

// Reconciler publishes the documents of HostedClusters on AWS. It is the only writer of condition ValidOIDCConfiguration and of the finalizer
// hypershift.io/aws-oidc-discovery, which holds a HostedCluster until its documents are removed.
type Reconciler struct {
	Client client.Client
	// Live is uncached: by it the end of a control plane is seen, after which nobody needs its documents.
	Live     client.Reader
	Clock    clock.PassiveClock
	Location Location
	Identity scope.Identity
	// Open makes the client of the bucket; it is called until it succeeds, and again when the credentials of Location change.
	Open func(ctx context.Context) (Bucket, error)

	buckets  beside.Clients[struct{}, Bucket]
	outcomes outcome.Outcomes
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	ofPlane := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		if key, ok := names.ParseBackReference(obj.GetAnnotations()[hyperv1.HostedClusterAnnotation]); ok {
			return []reconcile.Request{{NamespacedName: key}}
		}
		return nil
	})
	return ctrl.NewControllerManagedBy(mgr).Named("aws-oidc-documents").
		For(&hyperv1.HostedCluster{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&hyperv1.HostedControlPlane{}, ofPlane).
		WithOptions(process.Workers(2, firstRetry, lastRetry)).Complete(r)
}

func (r *Reconciler) open(ctx context.Context) (Bucket, error) {
	return r.buckets.Get(struct{}{}, r.Location.Credentials, func() (Bucket, error) { return r.Open(ctx) })
}

// Reconcile does one pass.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.outcomes.Pass(ctx, r, req, r.next)
}

func (r *Reconciler) next(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hc := &hyperv1.HostedCluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, hc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	switch {
	case hc.Spec.Platform.Type != hyperv1.AWSPlatform || r.Identity.Owns(hc.Annotations) != scope.Ours:
		return ctrl.Result{}, nil
	case !hc.DeletionTimestamp.IsZero():
		return r.remove(ctx, hc)
	case hc.Spec.ServiceAccountSigningKey != nil && hc.Spec.ServiceAccountSigningKey.Name != "":
		return ctrl.Result{}, nil // whoever brings the key publishes it
	}
	raw, err := r.keys(ctx, hc)
	if raw == nil || err != nil {
		return ctrl.Result{RequeueAfter: waitForPlane}, err
	}
	other, err := r.rival(ctx, hc)
	if err != nil {
		return ctrl.Result{}, err
	}
	if other != "" {
		before := hc.DeepCopy()
		c := conditions.False(hyperv1.ValidOIDCConfiguration, hyperv1.InfraIDTakenReason, fmt.Sprintf("spec.infraID %s is that of HostedCluster %s, whose OIDC documents would be replaced: "+
			"create this HostedCluster anew with another infraID, and its roles with it", hc.Spec.InfraID, other))
		c.ObservedGeneration = hc.Generation
		conditions.Set(&hc.Status.Conditions, r.Clock.Now(), c)
		return ctrl.Result{RequeueAfter: tryAgain + rand.N(tryAgain/2)}, patch.Status(ctx, r.Client, before, hc)
	}
	// Stored before the first document, so that none is left behind.
	if added, err := patch.EnsureFinalizer(ctx, r.Client, hc, hyperv1.AWSOIDCDiscoveryFinalizer); added || err != nil {
		return ctrl.Result{RequeueAfter: time.Millisecond}, err
	}
	before := hc.DeepCopy()
	hash, failed := r.publish(ctx, hc, raw)
	c := condition(failed, r.Location)
	c.ObservedGeneration = hc.Generation
	conditions.Set(&hc.Status.Conditions, r.Clock.Now(), c)
	if err := patch.Status(ctx, r.Client, before, hc); err != nil {
		return ctrl.Result{}, err
	}
	if failed != nil {
		return ctrl.Result{RequeueAfter: tryAgain + rand.N(tryAgain/2)}, nil
	}
	if hc.Annotations[PublishedAnnotation] != hash {
		if err := r.Client.Patch(ctx, hc, patch.Annotation(PublishedAnnotation, &hash)); err != nil {
			return ctrl.Result{}, fmt.Errorf("noting what is published on HostedCluster %s: %w", req.NamespacedName, err)
		}
	}
	return ctrl.Result{RequeueAfter: compareEvery + rand.N(compareEvery/2)}, nil
}

// keys are the public keys of a control plane, as PEM; nil: it has none yet.
func (r *Reconciler) keys(ctx context.Context, hc *hyperv1.HostedCluster) ([]byte, error) {
	ns := names.NamespaceOf(hc)
	hcp := &hyperv1.HostedControlPlane{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: ns, Name: hc.Name}, hcp); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if hcp.Status.KubeConfig == nil || hcp.Annotations[hyperv1.HostedClusterAnnotation] != names.BackReference(hc) {
		return nil, nil
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: ns, Name: names.ServiceAccountKey}
	if err := r.Live.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return secret.Data[publicKeyKey], nil
}

// failure is why documents aren't published: what is told of it.
type failure struct{ text string }

// rival is the HostedCluster that has the documents of hc's infraID, as names.BackReference; empty: they are hc's. AWS takes tokens that are signed with the
// published keys for those of the cluster, and any author of a HostedCluster chooses its infraID: whoever published first keeps them.
func (r *Reconciler) rival(ctx context.Context, hc *hyperv1.HostedCluster) (string, error) {
	all := &hyperv1.HostedClusterList{}
	if err := r.Client.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil { // they are only read
		return "", fmt.Errorf("listing HostedClusters, to see whose infraID %s is: %w", hc.Spec.InfraID, err)
	}
	for i := range all.Items {
		other := &all.Items[i]
		if other.UID != hc.UID && other.Spec.InfraID == hc.Spec.InfraID && other.Spec.Platform.Type == hyperv1.AWSPlatform && precedes(other, hc) {
			return names.BackReference(other), nil
		}
	}
	return "", nil
}

// precedes says whether documents are a's and not b's. What the status says counts before age: it is not their authors who write that, and an infraID can be
// added to a HostedCluster that has been waiting without one.
func precedes(a, b *hyperv1.HostedCluster) bool {
	published := func(hc *hyperv1.HostedCluster) bool {
		c := conditions.Get(hc.Status.Conditions, hyperv1.ValidOIDCConfiguration)
		return c != nil && c.Reason != hyperv1.InfraIDTakenReason
	}
	if published(a) != published(b) {
		return published(a)
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID)) < 0
}

// publish writes the documents that differ from what is there. What can't be read, since the role may only write, is compared with what was written last.
func (r *Reconciler) publish(ctx context.Context, hc *hyperv1.HostedCluster, raw []byte) (hash string, _ *failure) {
	docs, err := Of(hc.Spec.InfraID, hc.Spec.IssuerURL, raw)
	if err != nil {
		return "", &failure{"the OIDC documents can't be made: " + err.Error()}
	}
	hash = docs.Hash(r.Location.Bucket)
	b, err := r.open(ctx)
	if err != nil {
		return "", &failure{"the credentials of the bucket of OIDC documents can't be read: install with --oidc-storage-provider-s3-credentials, -secret or -role-arn"}
	}
	for _, name := range Names(hc.Spec.InfraID) {
		there, err := b.Get(ctx, name)
		unread := fault.Is(err, "AccessDenied", "Forbidden")
		switch {
		case err != nil && !unread:
			return "", r.refused(ctx, "reading "+name, err)
		case unread && hc.Annotations[PublishedAnnotation] == hash, err == nil && bytes.Equal(there, docs[name]):
			continue
		}
		if err := b.Put(ctx, name, docs[name]); err != nil {
			return "", r.refused(ctx, "writing "+name, err)
		}
		ctrl.LoggerFrom(ctx).Info("published an OIDC document", "bucket", r.Location.Bucket, "name", name)
	}
	return hash, nil
}

// refused logs an answer of AWS, and says the part of it that doesn't change with each request.
func (r *Reconciler) refused(ctx context.Context, what string, err error) *failure {
	ctrl.LoggerFrom(ctx).Info("the bucket of OIDC documents refuses", "call", what, "error", fault.Explain(err).Error())
	where := fmt.Sprintf("bucket %s in %s", r.Location.Bucket, r.Location.Region)
	switch {
	case fault.Is(err, "NoSuchBucket"):
		return &failure{where + " does not exist: make it, or install with another --oidc-storage-provider-s3-bucket-name"}
	case fault.Is(err, "AccessDenied"):
		return &failure{where + ": AccessDenied: let the credentials of --oidc-storage-provider-s3-… put and delete objects in it"}
	}
	if code := fault.Code(err); code != "" {
		text := where + ": aws returned an error, code: " + code
		if remedy := fault.Remedy(code); remedy != "" {
			text += " (" + remedy + ")"
		}
		return &failure{text}
	}
	return &failure{where + ": aws returned an error"}
}

func condition(failed *failure, l Location) metav1.Condition {
	const t = hyperv1.ValidOIDCConfiguration
	switch {
	case failed != nil:
		return conditions.False(t, hyperv1.OIDCConfigurationInvalidReason, failed.text)
	default:
		return conditions.True(t, hyperv1.AsExpectedReason, "The OIDC documents are in bucket "+l.Bucket)
	}
}

// remove deletes the documents once nothing of the cluster asks AWS for anything any more, and lets the HostedCluster go.
func (r *Reconciler) remove(ctx context.Context, hc *hyperv1.HostedCluster) (ctrl.Result, error) {
	if !slices.Contains(hc.Finalizers, hyperv1.AWSOIDCDiscoveryFinalizer) {
		return ctrl.Result{}, nil
	}
	hcp := &metav1.PartialObjectMetadata{}
	hcp.SetGroupVersionKind(hyperv1.GroupVersion.WithKind("HostedControlPlane"))
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: names.NamespaceOf(hc), Name: hc.Name}, hcp); err == nil {
		if hcp.Annotations[hyperv1.HostedClusterAnnotation] == names.BackReference(hc) {
			return ctrl.Result{RequeueAfter: waitForPlane}, nil
		}
	} else if !apierrors.IsNotFound(err) {
		return ctrl.Result{}, fmt.Errorf("looking for the HostedControlPlane of %s: %w", client.ObjectKeyFromObject(hc), err)
	}
	if other, err := r.rival(ctx, hc); err != nil {
		return ctrl.Result{}, err
	} else if other != "" { // they are that one's
		return ctrl.Result{}, patch.RemoveFinalizer(ctx, r.Client, hc, hyperv1.AWSOIDCDiscoveryFinalizer)
	}
	b, err := r.open(ctx)
	if err == nil {
		err = b.Delete(ctx, Names(hc.Spec.InfraID))
	}
	if err != nil {
		before := hc.DeepCopy()
		c := condition(r.refused(ctx, "deleting documents", err), r.Location)
		c.ObservedGeneration = hc.Generation
		conditions.Set(&hc.Status.Conditions, r.Clock.Now(), c)
		return ctrl.Result{RequeueAfter: tryAgain}, patch.Status(ctx, r.Client, before, hc)
	}
	ctrl.LoggerFrom(ctx).Info("removed the OIDC documents", "bucket", r.Location.Bucket)
	return ctrl.Result{}, patch.RemoveFinalizer(ctx, r.Client, hc, hyperv1.AWSOIDCDiscoveryFinalizer)
}
