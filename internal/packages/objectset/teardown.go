package objectset

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/phase"
)

// finalize tears a deleted revision down and lets it go.
func (r *Reconciler) finalize(ctx context.Context, os *v1alpha1.ObjectSet) error {
	done, err := r.tearDown(ctx, os)
	if err != nil || !done {
		return err
	}
	r.Metrics.ForgetObjectSet(client.ObjectKeyFromObject(os))
	rest := slices.DeleteFunc(slices.Clone(os.Finalizers), func(f string) bool { return slices.Contains(Finalizers, f) })
	return client.IgnoreNotFound(r.Status.SetFinalizers(ctx, os, rest))
}

// archive tears an old revision down. The finalizer goes before the status is written: once the condition says Archived, nobody looks again.
func (r *Reconciler) archive(ctx context.Context, os *v1alpha1.ObjectSet) error {
	done, err := r.tearDown(ctx, os)
	if err != nil {
		return err
	}
	if done {
		rest := slices.DeleteFunc(slices.Clone(os.Finalizers), func(f string) bool { return f == v1alpha1.CachedFinalizer })
		if err := r.Status.SetFinalizers(ctx, os, rest); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	now := r.Clock.Now()
	err = r.report(ctx, os, func(os *v1alpha1.ObjectSet) {
		conditions.Remove(&os.Status.Conditions, v1alpha1.ConditionAvailable, v1alpha1.ConditionInTransition, v1alpha1.ConditionPaused)
		c := phase.Condition(v1alpha1.ConditionArchived, metav1.ConditionFalse, v1alpha1.ReasonArchivalInProgress, messageArchiving)
		if done {
			c = phase.Condition(v1alpha1.ConditionArchived, metav1.ConditionTrue, v1alpha1.ReasonArchived, "")
			os.Status.ControllerOf = nil
		}
		c.ObservedGeneration = os.Generation
		conditions.Set(&os.Status.Conditions, now, c)
	})
	if err == nil && done {
		r.Metrics.ObjectSet(os)
	}
	return err
}

// tearDown says whether all objects of the revision are gone or somebody else's. What is not gone yet is waited for by its events.
func (r *Reconciler) tearDown(ctx context.Context, os *v1alpha1.ObjectSet) (bool, error) {
	if !slices.Contains(os.Finalizers, v1alpha1.CachedFinalizer) {
		return true, r.Engine.Forget(ctx, os.UID)
	}
	if slices.Contains(os.Finalizers, v1alpha1.OrphanFinalizer) {
		return true, r.Engine.Forget(ctx, os.UID)
	}
	phases, err := r.loadForTeardown(ctx, os)
	if err != nil {
		return false, err
	}
	o := Owner(r.Scope, os)
	if err := r.Engine.Use(ctx, o, unclassed(phases)); err != nil { // after a restart nobody else has
		return false, err
	}
	for _, p := range slices.Backward(phases) {
		if p.Class != "" {
			gone, err := r.tearDownRemote(ctx, os, p.Name)
			if err != nil || !gone {
				return false, err
			}
			continue
		}
		waiting, err := r.Engine.Teardown(ctx, o, phase.Phase{Name: p.Name, Objects: p.Objects})
		if err != nil || len(waiting) > 0 {
			return false, err
		}
	}
	return true, r.Engine.Forget(ctx, os.UID)
}

// loadForTeardown loads slices, too. One that is gone already has left its objects to the garbage collector.
func (r *Reconciler) loadForTeardown(ctx context.Context, os *v1alpha1.ObjectSet) ([]v1alpha1.ObjectSetTemplatePhase, error) {
	phases := slices.Clone(os.Spec.Phases)
	for i := range phases {
		p := &phases[i]
		for _, name := range p.Slices {
			slice := &v1alpha1.ObjectSlice{}
			err := r.Live.Get(ctx, client.ObjectKey{Namespace: os.Namespace, Name: name}, slice)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("reading slice %s of phase %s: %w", name, p.Name, err)
			}
			p.Objects = append(slices.Clip(p.Objects), slice.Objects...)
		}
	}
	return phases, nil
}
