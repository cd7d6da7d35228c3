package objectset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/engine/phase"
)

// finalize tears a deleted revision down and lets it go.
func (r *Reconciler) finalize(ctx context.Context, os *v1alpha1.ObjectSet) (time.Duration, error) {
	block, err := r.tearDown(ctx, os)
	if err != nil {
		return 0, err
	}
	if block != nil {
		return r.reportDeletion(ctx, os, block)
	}
	r.Metrics.ForgetObjectSet(client.ObjectKeyFromObject(os))
	rest := slices.DeleteFunc(slices.Clone(os.Finalizers), func(f string) bool { return slices.Contains(Finalizers, f) })
	return 0, client.IgnoreNotFound(r.Status.SetFinalizers(ctx, os, rest))
}

// blocked is what a teardown waits for: objects of a phase, or of a phase that somebody else tears down.
type blocked struct {
	phase   string
	objects []client.ObjectKey
	// late says that no event may tell when they are.
	late bool
}

// poll is when to look again; 0 when events tell.
func (b *blocked) poll() time.Duration {
	if b != nil && b.late {
		return phase.PollLate
	}
	return 0
}

func (b *blocked) String() string {
	if len(b.objects) == 0 {
		return fmt.Sprintf("Phase %q waits for its ObjectSetPhase: look at that object, and at who works on its class.", b.phase)
	}
	const most = 5
	var names []string
	for _, key := range b.objects[:min(len(b.objects), most)] {
		names = append(names, strings.TrimPrefix(key.String(), "/"))
	}
	if rest := len(b.objects) - len(names); rest > 0 {
		names = append(names, fmt.Sprintf("%d more", rest))
	}
	return fmt.Sprintf("Phase %q waits until %s are gone: look at their finalizers, and who should remove these.", b.phase, strings.Join(names, ", "))
}

// deletionGrace is how long a deletion may take before it says what it waits for. Most end in less, and need no write.
const deletionGrace = 15 * time.Second

// unordered tells of a deletion whose order is not ours: with the finalizer of a foreground deletion the garbage collector deletes all that has an owner
// reference to the revision at once, whatever that says of blockOwnerDeletion.
func unordered(os *v1alpha1.ObjectSet) string {
	if !slices.Contains(os.Finalizers, metav1.FinalizerDeleteDependents) {
		return ""
	}
	return " It is deleted in the foreground, so the garbage collector deletes the objects of all phases at once: who should remove a finalizer may be gone " +
		"already, and then somebody else has to. Delete packages with --cascade=background, where phases wait for each other."
}

// reportDeletion says what a deletion waits for, once it takes long. It returns when to look whether it does.
func (r *Reconciler) reportDeletion(ctx context.Context, os *v1alpha1.ObjectSet, b *blocked) (time.Duration, error) {
	now := r.Clock.Now()
	if left := os.DeletionTimestamp.Add(deletionGrace).Sub(now); left > 0 {
		return left, nil
	}
	c := phase.Condition(v1alpha1.ConditionDeleting, metav1.ConditionTrue, v1alpha1.ReasonWaitingForObjects, b.String()+unordered(os))
	c.ObservedGeneration = os.Generation
	last := conditions.Get(os.Status.Conditions, v1alpha1.ConditionDeleting)
	if last == nil || last.Message != c.Message {
		r.Events.Tell(os, nil, corev1.EventTypeWarning, c.Reason, "Delete", c.Message)
	}
	return b.poll(), r.report(ctx, os, func(os *v1alpha1.ObjectSet) { conditions.Set(&os.Status.Conditions, now, c) })
}

// archive tears an old revision down, and returns when to look again. The finalizer goes before the status is written: once the condition says Archived,
// nobody looks again.
func (r *Reconciler) archive(ctx context.Context, os *v1alpha1.ObjectSet) (time.Duration, error) {
	block, err := r.tearDown(ctx, os)
	if err != nil {
		return 0, err
	}
	done := block == nil
	if done {
		rest := slices.DeleteFunc(slices.Clone(os.Finalizers), func(f string) bool { return f == v1alpha1.CachedFinalizer })
		if err := r.Status.SetFinalizers(ctx, os, rest); err != nil {
			return 0, client.IgnoreNotFound(err)
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
	return block.poll(), err
}

// tearDown says what is not gone yet, nil when all objects of the revision are gone or somebody else's. Events tell when that changes.
func (r *Reconciler) tearDown(ctx context.Context, os *v1alpha1.ObjectSet) (*blocked, error) {
	if !slices.Contains(os.Finalizers, v1alpha1.CachedFinalizer) {
		return nil, r.Engine.Forget(ctx, os.UID)
	}
	if slices.Contains(os.Finalizers, v1alpha1.OrphanFinalizer) {
		return nil, r.Engine.Forget(ctx, os.UID)
	}
	phases, err := r.loadForTeardown(ctx, os)
	if err != nil {
		return nil, err
	}
	o := Owner(r.Scope, os)
	late, err := r.Engine.Use(ctx, o, unclassed(phases)) // after a restart nobody else has
	if err != nil {
		return nil, err
	}
	for _, p := range slices.Backward(phases) {
		if p.Class != "" {
			gone, err := r.tearDownRemote(ctx, os, p.Name)
			if err != nil {
				return nil, err
			}
			if !gone {
				return &blocked{phase: p.Name}, nil
			}
			continue
		}
		waiting, err := r.Engine.Teardown(ctx, o, phase.Phase{Name: p.Name, Objects: p.Objects})
		if err != nil {
			return nil, err
		}
		if len(waiting) > 0 {
			return &blocked{phase: p.Name, objects: waiting, late: late}, nil
		}
	}
	return nil, r.Engine.Forget(ctx, os.UID)
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
