package packagecontroller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	manifests "hcp.internal/api/packages/manifests/v1alpha1"
	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/desk"
	"hcp.internal/platform/internal/kube/journal"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/packages/author/gotemplate"
	"hcp.internal/platform/internal/packages/author/images"
	"hcp.internal/platform/internal/packages/author/violation"
	"hcp.internal/platform/internal/packages/control/environment"
	"hcp.internal/platform/internal/packages/control/metrics"
	"hcp.internal/platform/internal/packages/engine/scope"
	"hcp.internal/platform/internal/packages/engine/slice"
	"hcp.internal/platform/internal/packages/engine/status"
)

// Puller gets a package image for a Package, or desk.ErrPending, and asks for it again later.
type Puller interface {
	Ask(ctx context.Context, asker types.NamespacedName, image string) (images.Pulled, error)
}

// Environments knows what templates see of the cluster.
type Environments interface {
	Get(ctx context.Context, namespace string) (manifests.PackageEnvironment, error)
}

// Reconciler keeps the ObjectDeployments of the Packages of one scope. It is the only writer of the Packages' status, and of the template and
// the pause of these deployments.
type Reconciler struct {
	Scope scope.Scope
	// Client is of that scope; it reads from a cache, and writes. What it reads is not changed.
	Client client.Client
	// Live is of that scope and reads without a cache.
	Live         client.Reader
	Mapper       meta.RESTMapper
	Clock        clock.PassiveClock
	Puller       Puller
	Environments Environments
	Rewrite      images.Rewrite
	// HashModifier, when it changes, unpacks all packages again.
	HashModifier int32
	Metrics      *metrics.Recorder
	// Share bounds the time that renderings of a namespace may take; nil for no bound.
	Share *gotemplate.Share
	// Status writes the status of Packages.
	Status *status.Writer
	// Deployments notes what was written to ObjectDeployments, so that a cache that is behind isn't believed.
	Deployments *status.Writer

	// Journal keeps what became of conditions; nil: nobody does.
	Journal *journal.Book

	attempts attempts
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	read := &v1alpha1.Package{}
	if err := r.Client.Get(ctx, req.NamespacedName, read); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if wait := r.Status.Wait(read); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	p := read.DeepCopy()
	if !p.DeletionTimestamp.IsZero() {
		// The garbage collector deletes the deployment.
		r.Metrics.ForgetPackage(req.NamespacedName)
		r.Journal.Forget(p.UID)
		return ctrl.Result{}, client.IgnoreNotFound(patch.RemoveFinalizer(ctx, r.Client, p, v1alpha1.MetricsFinalizer))
	}
	if _, err := patch.EnsureFinalizer(ctx, r.Client, p, v1alpha1.MetricsFinalizer); err != nil {
		return ctrl.Result{}, fmt.Errorf("adding the finalizer to %s: %w", req, err)
	}
	od, err := r.deployment(ctx, p)
	if err != nil {
		return ctrl.Result{}, err
	}
	if od != nil {
		if wait := r.Deployments.Wait(od); wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
	}
	again, err := r.advance(ctx, p, od, &read.Status)
	status.RollUp(&p.Status.Conditions, r.Clock.Now(), p.Generation)
	r.Metrics.Package(p)
	written := r.Status.Patch(ctx, p, read.Status, p.Status)
	if written == nil {
		if err := r.Journal.Record(ctx, p, p.Status.Conditions); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "keeping the journal; the next pass tries again")
		}
	}
	return ctrl.Result{RequeueAfter: again}, errors.Join(err, written)
}

func (r *Reconciler) forget(key client.ObjectKey) {
	r.Metrics.ForgetPackage(key)
	r.Status.Forget(key)
	r.Deployments.Forget(key)
	r.attempts.forget(key)
}

// advance does what is to be done, sets p's status accordingly, and says when to look again. known is the status that the API server has.
func (r *Reconciler) advance(ctx context.Context, p *v1alpha1.Package, od *v1alpha1.ObjectDeployment, known *v1alpha1.PackageStatus) (again time.Duration, err error) {
	if od != nil && od.Spec.Paused != p.Spec.Paused {
		if od, err = r.pause(ctx, od, p.Spec.Paused); err != nil {
			return 0, err
		}
	}
	if !p.Spec.Paused {
		var deployed *v1alpha1.ObjectDeployment
		if deployed, again, err = r.install(ctx, p, od, known); deployed != nil {
			od = deployed
		}
	}
	if p.Spec.Paused && od != nil {
		if err := r.stampPaused(p); err != nil {
			return 0, err
		}
	}
	set, remove := said(p, od)
	conditions.Remove(&p.Status.Conditions, remove...)
	r.set(p, set...)
	if od != nil {
		p.Status.Revision = od.Status.Revision
	}
	return again, err
}

func (r *Reconciler) pause(ctx context.Context, od *v1alpha1.ObjectDeployment, paused bool) (*v1alpha1.ObjectDeployment, error) {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": od.UID}, "spec": map[string]any{"paused": paused}})
	if err != nil {
		return nil, fmt.Errorf("encoding a patch: %w", err)
	}
	out := od.DeepCopy()
	if err := r.Client.Patch(ctx, out, client.RawPatch(types.MergePatchType, data), client.FieldOwner(v1alpha1.FieldOwner)); err != nil {
		return nil, fmt.Errorf("setting the pause of the deployment: %w", err)
	}
	r.Deployments.Wrote(out, out.ResourceVersion)
	return out, nil
}

// install unpacks and deploys a package unless that was done already, or is to be tried later. It returns what it wrote, if anything.
func (r *Reconciler) install(ctx context.Context, p *v1alpha1.Package, od *v1alpha1.ObjectDeployment, known *v1alpha1.PackageStatus) (*v1alpha1.ObjectDeployment, time.Duration, error) {
	env, err := r.Environments.Get(ctx, p.Namespace)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the environment: %w", err)
	}
	envHash, err := environmentHash(env)
	if err != nil {
		return nil, 0, err
	}
	want, err := r.originOf(p, envHash)
	if err != nil {
		return nil, 0, err
	}
	had := installedFrom(p)
	if od != nil && had.satisfies(want) {
		conditions.Remove(&p.Status.Conditions, v1alpha1.ConditionInvalid, v1alpha1.ConditionEnvironmentOutdated)
		r.set(p, unpacked(p.Status.Conditions, true)...)
		r.attempts.forget(client.ObjectKeyFromObject(p))
		return nil, 0, nil
	}
	rerender := od != nil && had.outdated(want)
	if rerender && inTurn(p) && p.Annotations[v1alpha1.RolloutEnvironmentAnnotation] != envHash {
		r.set(p, append(unpacked(p.Status.Conditions, true), environment.Outdated(envHash))...)
		return nil, 0, nil
	}
	key, target := client.ObjectKeyFromObject(p), had.target(want).String()
	if wait, known := r.attempts.wait(key, target, r.Clock.Now()); known {
		r.set(p, stillSo(p.Status.Conditions)...)
		return nil, wait, nil
	}
	started := r.Clock.Now()
	image := r.Rewrite.Prefix(p.Spec.Image)
	if rerender {
		image = r.installed(p, od, image)
	}
	got, failed := r.unpack(ctx, p, image, env)
	if failed == nil {
		deployed, err := r.deploy(ctx, p, got, known)
		switch {
		case err == nil:
			r.succeeded(p, got, want, deployed, started)
			if conditions.Current(deployed.Status.Conditions, v1alpha1.ConditionProgressing, deployed.Generation) == nil {
				// It has said nothing of what it was given, and what it said of the revision before would be taken for this one.
				message := newRevision
				if rerender {
					message = had.rerendered(want)
				}
				r.set(p, begun(message))
			}
			return deployed, 0, nil
		case !errors.Is(err, ErrForeign) && !errors.Is(err, slice.ErrStrategy) && !refused(err):
			return nil, 0, err // of the API server
		}
		failed = &failure{v1alpha1.ConditionInvalid, v1alpha1.ReasonLoadError, false, err}
	}
	if ctx.Err() != nil {
		return nil, 0, ctx.Err() // the process ends
	}
	if again := notNow(failed.err); again > 0 {
		return nil, again, nil
	}
	if failed.condition == v1alpha1.ConditionUnpacked {
		conditions.Remove(&p.Status.Conditions, v1alpha1.ConditionInvalid)
	}
	r.set(p, afterFailure(failed)...)
	ctrl.LoggerFrom(ctx).V(1).Info("package can't be installed", "reason", failed.reason, "error", failed.err.Error())
	return nil, r.attempts.failed(key, target, failed.final, r.Clock.Now()), nil
}

// installed is the image that a deployment was unpacked from. A tag that has moved since then is nothing that anybody asked for who changed the environment alone.
func (r *Reconciler) installed(p *v1alpha1.Package, od *v1alpha1.ObjectDeployment, image string) string {
	digest := od.Annotations[v1alpha1.PackageSourceDigestAnnotation]
	if digest == "" || od.Annotations[v1alpha1.PackageSourceImageAnnotation] != image {
		return image // an operator of before deployed it
	}
	pinned, err := r.Rewrite.Pinned(p.Spec.Image, digest)
	if err != nil {
		return image // whoever pulls it says what is wrong
	}
	return pinned
}

// inTurn tells that a rollout says when the environment may change a Package.
func inTurn(p *v1alpha1.Package) bool {
	c := metav1.GetControllerOfNoCopy(p)
	return c != nil && c.Kind == "HostedClusterPackage" && strings.HasPrefix(c.APIVersion, v1alpha1.GroupVersion.Group+"/")
}

// pendingRecheck is when to look again after a pull whose end was not heard of.
const pendingRecheck = time.Minute

// notNow says when to try again what did not fail but has to wait: for a registry, whose answer is an event, or for its share of the time. 0: it failed.
func notNow(err error) time.Duration {
	if busy, ok := errors.AsType[*gotemplate.BusyError](err); ok {
		return busy.After
	}
	if errors.Is(err, desk.ErrPending) {
		return pendingRecheck
	}
	return 0
}

func isViolation(err error) bool {
	_, ok := errors.AsType[*violation.Error](err)
	return ok
}
