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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
)

// Reconcile is described at Component.
func (c *WorkloadComponent) Reconcile(ctx Context) error {
	wctx := ctx.Workload()
	wanted, err := c.wanted(wctx)
	if err != nil {
		return fmt.Errorf("deciding whether component %s is wanted: %w", c.name, err)
	}
	if !wanted {
		if err := c.remove(ctx); err != nil {
			return fmt.Errorf("removing component %s: %w", c.name, err)
		}
		return nil
	}

	var components hyperv1.ControlPlaneComponentList
	if err := ctx.Client.List(ctx.Context, &components, client.InNamespace(ctx.HCP.Namespace)); err != nil {
		return fmt.Errorf("listing ControlPlaneComponents for component %s: %w", c.name, err)
	}
	obs := observation{missing: missingDependencies(dependenciesOf(c.name, c.dependencies, ctx.HCP), components.Items, ctx.Release.Version)}
	obs.mayStart = c.mayStart(ctx.HCP, components.Items)
	if ctx.Trouble != nil {
		obs.trouble, obs.troubleText = ctx.Trouble(c.name)
	}
	obs.reconciled = c.update(ctx, &obs)
	err = c.report(ctx, obs)
	if obs.reconciled != nil {
		obs.reconciled = fmt.Errorf("reconciling component %s: %w", c.name, obs.reconciled)
	}
	return errors.Join(obs.reconciled, err)
}

func (c *WorkloadComponent) wanted(ctx WorkloadContext) (bool, error) {
	if c.predicate == nil {
		return true, nil
	}
	return c.predicate(ctx)
}

// update applies the component when its dependencies allow it, and observes the workload.
func (c *WorkloadComponent) update(ctx Context, obs *observation) (err error) {
	wctx := ctx.Workload()
	if obs.live, err = c.live(wctx); err != nil {
		return err
	}
	if len(obs.missing) > 0 && (obs.live != nil || !obs.mayStart) {
		obs.current = true
		return nil
	}
	rendered, err := c.Render(wctx)
	if err != nil {
		return err
	}
	if err := c.apply(ctx, rendered); err != nil {
		return err
	}
	if obs.live, err = c.live(wctx); err != nil {
		return err
	}
	if obs.current, err = current(ctx, rendered.Workload, obs.live); err != nil {
		return err
	}
	if cond := rolloutCondition(*obs); c.operands != nil && cond.Status == metav1.ConditionTrue {
		obs.operands = c.operands(wctx)
	}
	return nil
}

// apply writes what was rendered. Every manifest is tried; the workload only when all it may need is there.
func (c *WorkloadComponent) apply(ctx Context, rendered *Rendered) error {
	var errs []error
	for _, obj := range rendered.Unwanted {
		errs = append(errs, c.deleteOurs(ctx, obj))
	}
	for _, obj := range rendered.Manifests {
		if rendered.locked[obj] {
			errs = append(errs, ctx.Apply.ApplyLocked(ctx.Context, obj))
		} else {
			errs = append(errs, ctx.Apply.Apply(ctx.Context, obj))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if job, ok := rendered.Workload.(*batchv1.Job); ok {
		return c.applyJob(ctx, job)
	}
	return ctx.Apply.Apply(ctx.Context, rendered.Workload)
}

// current says whether the status of the live workload speaks of what was rendered. A cached read right after a write still
// shows the object of before, whose rollout is complete. A Job is not written again once it runs.
func current(ctx Context, rendered, live client.Object) (bool, error) {
	if live == nil {
		return false, nil
	}
	if _, ok := rendered.(*batchv1.Job); ok {
		return true, nil
	}
	return ctx.Apply.Current(rendered, live)
}

// applyJob starts a Job, or replaces one that failed or was made for something else: the pod template of a Job can't
// change. It is deleted first, and made again by the pass that its disappearance causes.
func (c *WorkloadComponent) applyJob(ctx Context, desired *batchv1.Job) error {
	live := &batchv1.Job{}
	err := ctx.Client.Get(ctx.Context, client.ObjectKeyFromObject(desired), live)
	if apierrors.IsNotFound(err) {
		return ctx.Apply.Apply(ctx.Context, desired)
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
	err = ctx.Client.Delete(ctx.Context, live,
		client.Preconditions{UID: &live.UID}, client.PropagationPolicy(metav1.DeletePropagationForeground))
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("deleting Job %s to run it again: %w", desired.Name, err)
	}
	return nil
}

// remove deletes everything of a component that is not wanted.
func (c *WorkloadComponent) remove(ctx Context) error {
	workload := c.workload.copyOf()
	workload.SetName(c.name)
	objs := []client.Object{workload}
	for _, m := range c.manifests {
		if a := c.adapters[m.file]; a == nil || !a.skip {
			objs = append(objs, m.copyOf())
		}
	}
	if c.kubeconfig != nil {
		objs = append(objs, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: kubeconfigSecret(c.name)}})
	}
	objs = append(objs, &hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Name: c.name}})
	var errs []error
	for _, obj := range objs {
		obj.SetNamespace(ctx.HCP.Namespace)
		usable, err := true, error(nil)
		if gvk := obj.GetObjectKind().GroupVersionKind(); !gvk.Empty() {
			usable, err = accessible(ctx.Workload(), gvk)
		}
		if err == nil && usable {
			err = c.deleteOurs(ctx, obj)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// deleteOurs deletes an object if it is there and belongs to this control plane. An object of the same name that somebody
// else made stays.
func (c *WorkloadComponent) deleteOurs(ctx Context, obj client.Object) error {
	live := obj.DeepCopyObject().(client.Object)
	err := ctx.Client.Get(ctx.Context, client.ObjectKeyFromObject(obj), live)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %T %s: %w", obj, obj.GetName(), err)
	}
	if !ctx.OmitOwnerReference && !metav1.IsControlledBy(live, ctx.HCP) {
		return nil
	}
	return ctx.Apply.Delete(ctx.Context, live)
}

// report keeps the ControlPlaneComponent.
func (c *WorkloadComponent) report(ctx Context, obs observation) error {
	name := client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: c.name}
	cpc := &hyperv1.ControlPlaneComponent{
		TypeMeta:   metav1.TypeMeta{APIVersion: hyperv1.GroupVersion.String(), Kind: "ControlPlaneComponent"},
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
	}
	if !ctx.OmitOwnerReference {
		cpc.OwnerReferences = []metav1.OwnerReference{ownerReference(ctx.HCP)}
	}
	if err := ctx.Apply.Apply(ctx.Context, cpc); err != nil {
		return err
	}
	live, err := c.readReport(ctx.Context, ctx.Client, name)
	if live == nil || err != nil {
		return err // Absent: the cache has not seen it yet, and its arrival causes the next pass.
	}
	resources, err := c.resources(ctx.Workload())
	if err != nil {
		return fmt.Errorf("listing the objects of component %s: %w", c.name, err)
	}
	before := live.DeepCopy()
	live.Status.Resources = resources
	if ctx.HCP.Generation > 0 {
		live.Status.ObservedGeneration = ptr.To(ctx.HCP.Generation)
	}
	conditions.Set(&live.Status.Conditions, ctx.Clock.Now(), observed(ctx.HCP, obs.blame(availableCondition(obs))), observed(ctx.HCP, obs.blame(rolloutCondition(obs))))
	if conditions.IsTrue(live.Status.Conditions, RolloutComplete) {
		live.Status.Version = ctx.Release.Version
	}
	// A conflict means that the cache lags behind our own last write. When it has caught up, that event causes the next pass,
	// so there is nothing to back off from.
	if err := patch.Status(ctx.Context, ctx.Client, before, live); !apierrors.IsConflict(err) {
		return err
	}
	return nil
}

func (c *WorkloadComponent) readReport(ctx context.Context, reader client.Reader, name client.ObjectKey) (*hyperv1.ControlPlaneComponent, error) {
	cpc := &hyperv1.ControlPlaneComponent{}
	err := reader.Get(ctx, name, cpc)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ControlPlaneComponent %s: %w", name.Name, err)
	}
	return cpc, nil
}

func observed(hcp *hyperv1.HostedControlPlane, cond metav1.Condition) metav1.Condition {
	cond.ObservedGeneration = hcp.Generation
	return cond
}

// maxResources is the bound of the API.
const maxResources = 100

// resources lists the objects beside the workload that the component consists of.
func (c *WorkloadComponent) resources(ctx WorkloadContext) ([]hyperv1.ComponentResource, error) {
	var list []hyperv1.ComponentResource
	for _, m := range c.manifests {
		gvk := m.object.GetObjectKind().GroupVersionKind()
		usable, err := accessible(ctx, gvk)
		if err != nil {
			return nil, err
		}
		wanted, err := c.adapters[m.file].wanted(ctx)
		if err != nil {
			return nil, err
		}
		if usable && wanted {
			list = append(list, hyperv1.ComponentResource{Kind: gvk.Kind, Group: gvk.Group, Name: m.object.GetName()})
		}
	}
	if c.kubeconfig.wanted(ctx) {
		list = append(list, hyperv1.ComponentResource{Kind: "Secret", Name: kubeconfigSecret(c.name)})
	}
	return list[:min(len(list), maxResources)], nil
}
