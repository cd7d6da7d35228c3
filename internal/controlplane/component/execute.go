package component

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/patch"
)

// Executor carries plans out. It is the only part of the framework that writes.
type Executor struct {
	// Client reads (from a cache, usually) and writes what cannot go through Apply: the status of ControlPlaneComponents and
	// the deletion of Jobs.
	Client client.Client
	// Apply writes everything else.
	Apply *apply.Applier
	// Clock is for the transition times of conditions.
	Clock clock.PassiveClock
}

// Reconcile plans a component with what the Client reads, and carries the plan out. A component is planned right before it is carried
// out and not together with others, because it goes by what those before it have written: their reports and their configuration.
func (e Executor) Reconcile(ctx WorkloadContext, c Component) error {
	ctx.Reader = e.Client
	plan, err := c.Plan(ctx)
	if err != nil {
		return err
	}
	return e.Execute(ctx.Context, plan)
}

// Execute carries a plan out and reports in its ControlPlaneComponent. The error has been reported there already.
func (e Executor) Execute(ctx context.Context, p Plan) error {
	if p.Report == nil {
		if err := errors.Join(p.Err, e.delete(ctx, p)); err != nil {
			return fmt.Errorf("removing component %s: %w", p.Component, err)
		}
		return nil
	}
	out := e.carryOut(ctx, p)
	err := e.report(ctx, p, out)
	if out.err != nil {
		out.err = fmt.Errorf("reconciling component %s: %w", p.Component, out.err)
	}
	return errors.Join(out.err, err)
}

// carryOut makes what is planned, and observes the workload.
func (e Executor) carryOut(ctx context.Context, p Plan) outcome {
	out := outcome{live: p.live, err: p.Err, current: p.Left != ""}
	if p.workload == nil || out.err != nil {
		return out
	}
	if out.err = e.apply(ctx, p); out.err != nil {
		return out
	}
	if out.live, out.err = e.read(ctx, p.empty); out.err != nil {
		return out
	}
	if out.current, out.err = e.current(p.workload, out.live); out.err != nil {
		return out
	}
	if p.operands != nil && rolloutCondition(p.Report.observation(out)).Status == metav1.ConditionTrue {
		out.operands = p.operands()
	}
	return out
}

// apply writes what is planned. Every manifest is tried; the workload only when all it may need is there.
func (e Executor) apply(ctx context.Context, p Plan) error {
	errs := []error{e.delete(ctx, p)}
	for _, obj := range p.Objects {
		switch {
		case obj == p.workload:
		case p.Locked(obj):
			errs = append(errs, e.Apply.ApplyLocked(ctx, obj))
		default:
			errs = append(errs, e.Apply.Apply(ctx, obj))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if job, ok := p.workload.(*batchv1.Job); ok {
		return e.applyJob(ctx, job)
	}
	return e.Apply.Apply(ctx, p.workload)
}

// read is the object as it is now, nil when there is none.
func (e Executor) read(ctx context.Context, obj client.Object) (client.Object, error) {
	live := obj.DeepCopyObject().(client.Object)
	err := e.Client.Get(ctx, client.ObjectKeyFromObject(obj), live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the live workload: %w", err)
	}
	return live, nil
}

// current says whether the status of the live workload speaks of what was rendered. A cached read right after a write still
// shows the object of before, whose rollout is complete. A Job is not written again once it runs.
func (e Executor) current(rendered, live client.Object) (bool, error) {
	if live == nil {
		return false, nil
	}
	if _, ok := rendered.(*batchv1.Job); ok {
		return true, nil
	}
	return e.Apply.Current(rendered, live)
}

// applyJob starts a Job, or replaces one that failed or was made for something else: the pod template of a Job can't
// change. It is deleted first, and made again by the pass that its disappearance causes.
func (e Executor) applyJob(ctx context.Context, desired *batchv1.Job) error {
	live := &batchv1.Job{}
	err := e.Client.Get(ctx, client.ObjectKeyFromObject(desired), live)
	if apierrors.IsNotFound(err) {
		return e.Apply.Apply(ctx, desired)
	}
	if err != nil {
		return fmt.Errorf("reading Job %s: %w", desired.Name, err)
	}
	failed := false
	for _, cond := range live.Status.Conditions {
		failed = failed || cond.Type == batchv1.JobFailed && cond.Status == corev1.ConditionTrue
	}
	if !failed && equality.Semantic.DeepDerivative(desired.Spec, live.Spec) || !live.DeletionTimestamp.IsZero() {
		return nil
	}
	err = e.Client.Delete(ctx, live,
		client.Preconditions{UID: &live.UID}, client.PropagationPolicy(metav1.DeletePropagationForeground))
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("deleting Job %s to run it again: %w", desired.Name, err)
	}
	return nil
}

// delete deletes what is unwanted, if it is there and belongs to this control plane. An object of the same name that somebody
// else made stays.
func (e Executor) delete(ctx context.Context, p Plan) error {
	var errs []error
	for _, obj := range p.Unwanted {
		live := obj.DeepCopyObject().(client.Object)
		err := e.Client.Get(ctx, client.ObjectKeyFromObject(obj), live)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			errs = append(errs, fmt.Errorf("reading %T %s: %w", obj, obj.GetName(), err))
		case p.owner == nil || metav1.IsControlledBy(live, p.owner):
			errs = append(errs, e.Apply.Delete(ctx, live))
		}
	}
	return errors.Join(errs...)
}

// report keeps the ControlPlaneComponent.
func (e Executor) report(ctx context.Context, p Plan, out outcome) error {
	if err := e.Apply.Apply(ctx, p.Report.Object); err != nil {
		return err
	}
	live := &hyperv1.ControlPlaneComponent{}
	err := e.Client.Get(ctx, client.ObjectKeyFromObject(p.Report.Object), live)
	if apierrors.IsNotFound(err) {
		return nil // The cache has not seen it yet, and its arrival causes the next pass.
	}
	if err != nil {
		return fmt.Errorf("reading ControlPlaneComponent %s: %w", p.Component, err)
	}
	if p.Report.problem != nil {
		return p.Report.problem
	}
	before := live.DeepCopy()
	p.Report.complete(&live.Status, e.Clock.Now(), out)
	// A conflict means that the cache lags behind our own last write. When it has caught up, that event causes the next pass,
	// so there is nothing to back off from.
	if err := patch.Status(ctx, e.Client, before, live); !apierrors.IsConflict(err) {
		return err
	}
	return nil
}
