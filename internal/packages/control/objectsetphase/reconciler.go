// Package objectsetphase rolls out phases that have a class.
//
// The same code serves the class "default", whose objects live beside the ObjectSetPhases, and any other class in a process that has a
// client for the cluster of the phases and another one for the cluster of their objects.
package objectsetphase

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/packages/engine/owner"
	"hcp.internal/platform/internal/packages/engine/phase"
	"hcp.internal/platform/internal/packages/engine/probe"
	"hcp.internal/platform/internal/packages/engine/scope"
	"hcp.internal/platform/internal/packages/engine/status"
	"hcp.internal/platform/internal/packages/engine/watch"
)

// retryRefused is how long it takes until objects that were refused are looked at again: what stood in the way is not watched.
const retryRefused = 30 * time.Second

// Reconciler rolls out ObjectSetPhases of one scope and class. It is the only writer of their status and of their objects.
type Reconciler struct {
	Scope scope.Scope
	// Class of the phases; others are ignored.
	Class string
	// Client reads ObjectSetPhases and ObjectSets from a cache, and writes ObjectSetPhases. What it reads is not changed.
	Client client.Client
	// Engine reads and writes objects, in whatever cluster they live.
	Engine *phase.Engine
	Clock  clock.PassiveClock
	// Status writes the status of this scope's ObjectSetPhases.
	Status *status.Writer

	uids sync.Map
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	read := &v1alpha1.ObjectSetPhase{}
	if err := r.Client.Get(ctx, req.NamespacedName, read); err != nil {
		r.Status.Forget(req.NamespacedName)
		if uid, ok := r.uids.LoadAndDelete(req.NamespacedName); ok && apierrors.IsNotFound(err) {
			return ctrl.Result{}, r.Engine.Forget(ctx, uid.(types.UID))
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if read.Labels[v1alpha1.PhaseClassLabel] != r.Class {
		return ctrl.Result{}, nil
	}
	if wait := r.Status.Wait(read); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	r.uids.Store(req.NamespacedName, read.UID)
	// The spec is the cache's, and only read. The rest is a copy.
	osp := &v1alpha1.ObjectSetPhase{ObjectMeta: *read.ObjectMeta.DeepCopy(), Spec: read.Spec, Status: *read.Status.DeepCopy()}
	if !osp.DeletionTimestamp.IsZero() {
		again, err := r.finalize(ctx, osp)
		return ctrl.Result{RequeueAfter: again}, err
	}
	if !slices.Contains(osp.Finalizers, v1alpha1.CachedFinalizer) {
		if err := r.Status.SetFinalizers(ctx, osp, append(slices.Clone(osp.Finalizers), v1alpha1.CachedFinalizer)); err != nil {
			return ctrl.Result{}, err
		}
	}
	result, late, err := r.rollOut(ctx, osp)
	if err != nil {
		return ctrl.Result{}, err
	}
	before := *osp.Status.DeepCopy()
	report(osp, result, r.Clock.Now())
	if err := r.Status.Patch(ctx, osp, before, osp.Status); err != nil {
		return ctrl.Result{}, err
	}
	if len(result.Violations) > 0 || len(result.Collisions()) > 0 {
		return ctrl.Result{RequeueAfter: retryRefused}, nil
	}
	if late {
		return ctrl.Result{RequeueAfter: phase.PollLate}, nil
	}
	return ctrl.Result{}, nil
}

// rollOut says late when no event tells of some objects yet.
func (r *Reconciler) rollOut(ctx context.Context, osp *v1alpha1.ObjectSetPhase) (_ phase.Result, late bool, _ error) {
	p := phase.Phase{Name: osp.Name, Objects: osp.Spec.Objects}
	var err error
	if p.Probes, err = probe.Parse(osp.Spec.AvailabilityProbes); err != nil {
		return phase.Result{Violations: []phase.Violation{{Position: "spec", Errors: []string{err.Error()}}}}, false, nil //nolint:nilerr // because it is reported as a violation
	}
	if violations := duplicates(p); len(violations) > 0 {
		return phase.Result{Violations: violations}, false, nil
	}
	o := r.owner(osp)
	if o.Siblings, err = r.siblings(ctx, osp); err != nil {
		return phase.Result{}, false, err
	}
	if late, err = r.Engine.Use(ctx, o, p.Objects); err != nil {
		return phase.Result{}, false, err
	}
	result, err := r.Engine.Reconcile(ctx, o, p)
	return result, late, err
}

func (r *Reconciler) owner(osp *v1alpha1.ObjectSetPhase) phase.Owner {
	return phase.Owner{
		Entry: owner.Entry{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: r.Scope.Kind("ObjectSetPhase"), Name: osp.Name, Namespace: osp.Namespace, UID: osp.UID,
		},
		Namespace: osp.Namespace, Generation: osp.Generation, Revision: osp.Spec.Revision, Paused: osp.Spec.Paused,
		Reported: osp.Status.ControllerOf,
	}
}

// siblings are the other revisions of the same ObjectDeployment and their phases, and those that spec.previous names.
func (r *Reconciler) siblings(ctx context.Context, osp *v1alpha1.ObjectSetPhase) (map[types.UID]struct{}, error) {
	out := map[types.UID]struct{}{}
	add := func(os *v1alpha1.ObjectSet) {
		out[os.UID] = struct{}{}
		for _, p := range os.Status.RemotePhases {
			if p.UID != osp.UID {
				out[p.UID] = struct{}{}
			}
		}
	}
	for _, ref := range osp.Spec.Previous {
		os := &v1alpha1.ObjectSet{}
		if err := r.Client.Get(ctx, client.ObjectKey{Namespace: osp.Namespace, Name: ref.Name}, os); err == nil {
			add(os)
		} else if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading previous revision %s: %w", ref.Name, err)
		}
	}
	controller := metav1.GetControllerOf(osp)
	if controller == nil || controller.Kind != r.Scope.Kind("ObjectSet") {
		return out, nil
	}
	parent := &v1alpha1.ObjectSet{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: osp.Namespace, Name: controller.Name}, parent); err != nil {
		return out, client.IgnoreNotFound(err)
	}
	deployment := parent.Labels[v1alpha1.ObjectDeploymentLabel]
	if parent.UID != controller.UID || deployment == "" {
		return out, nil
	}
	list := &v1alpha1.ObjectSetList{}
	if err := r.Client.List(ctx, list, client.InNamespace(osp.Namespace), client.MatchingLabels{v1alpha1.ObjectDeploymentLabel: deployment}); err != nil {
		return nil, fmt.Errorf("listing the revisions of %s: %w", deployment, err)
	}
	for i := range list.Items {
		if list.Items[i].UID != parent.UID {
			add(&list.Items[i])
		}
	}
	return out, nil
}

func duplicates(p phase.Phase) []phase.Violation {
	seen := map[string]struct{}{}
	var out []phase.Violation
	for i := range p.Objects {
		obj := &p.Objects[i].Object
		key := fmt.Sprintf("%s %s/%s", obj.GroupVersionKind().GroupKind(), obj.GetNamespace(), obj.GetName())
		if _, again := seen[key]; again {
			out = append(out, phase.Violation{Position: key, Errors: []string{"duplicate object found in phases: " + p.Name}})
		}
		seen[key] = struct{}{}
	}
	return out
}

// finalize tears a deleted phase down and lets it go. It returns when to look again, 0 when events tell.
func (r *Reconciler) finalize(ctx context.Context, osp *v1alpha1.ObjectSetPhase) (time.Duration, error) {
	if !slices.Contains(osp.Finalizers, v1alpha1.CachedFinalizer) {
		return 0, r.Engine.Forget(ctx, osp.UID)
	}
	if !slices.Contains(osp.Finalizers, v1alpha1.OrphanFinalizer) {
		o := r.owner(osp)
		late, err := r.Engine.Use(ctx, o, osp.Spec.Objects) // after a restart nobody else has
		if err != nil {
			return 0, err
		}
		waiting, err := r.Engine.Teardown(ctx, o, phase.Phase{Name: osp.Name, Objects: osp.Spec.Objects})
		if err != nil || len(waiting) > 0 {
			if late {
				return phase.PollLate, err
			}
			return 0, err
		}
	}
	rest := slices.DeleteFunc(slices.Clone(osp.Finalizers), func(f string) bool { return f == v1alpha1.CachedFinalizer })
	return 0, errors.Join(r.Engine.Forget(ctx, osp.UID), client.IgnoreNotFound(r.Status.SetFinalizers(ctx, osp, rest)))
}

// workers is how many phases are worked on at a time.
const workers = 4

// SetupWithManager adds the controller to the manager of the cluster of the phases. Changes of their objects come from watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, watches *watch.Cache) error {
	kind := r.Scope.Kind("ObjectSetPhase")
	ofClass := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetLabels()[v1alpha1.PhaseClassLabel] == r.Class })
	err := ctrl.NewControllerManagedBy(mgr).
		Named(r.Scope.Kind("objectsetphase")+"-"+r.Class).
		For(r.Scope.Object(&v1alpha1.ObjectSetPhase{}), builder.WithPredicates(ofClass, predicate.GenerationChangedPredicate{})).
		WatchesRawSource(watches.Owned(schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: kind}, r.Engine.Rules.Owners, r.Engine.Known)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(outcome.Wrap(r))
	if err != nil {
		return fmt.Errorf("setting up the controller of %ss of class %s: %w", kind, r.Class, err)
	}
	return nil
}
