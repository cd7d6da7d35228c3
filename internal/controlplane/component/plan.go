package component

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Plan is what one pass is to do about a component. It is data: an Executor carries it out, and a preview shows it.
type Plan struct {
	// Component is the name of the component.
	Component string
	// Objects are what is wanted, in the order in which they are applied, the workload last. There are none when Left says why.
	Objects []client.Object
	// Unwanted are deleted when they are there and belong to this control plane.
	Unwanted []client.Object
	// WaitsFor are the components that this one waits for. It may have Objects all the same, see StartBeforeDependencies.
	WaitsFor []string
	// Left says why the component is left as it is, or absent; empty when it has Objects or Err.
	Left string
	// Err says why what is wanted, or unwanted, could not be made out. It is reported, and what the plan has is carried out.
	Err error
	// Report is what the ControlPlaneComponent is to say; nil: the component has none, because it is not wanted.
	Report *Report

	workload client.Object          // the one among Objects, nil when there are none
	locked   map[client.Object]bool // those of Objects that are written with a lock, see Locked
	live     client.Object          // the workload as it was found, nil when there was none
	empty    client.Object          // of the kind of the workload, with its name: to read it again
	operands func() error           // what is to follow a complete rollout, nil: nothing, see WithCustomOperandsRolloutCheckFunc
	owner    client.Object          // of what may be deleted; nil: whatever has the name
}

// Locked says whether an object of the plan is written only over the state that it was decided from.
func (p Plan) Locked(obj client.Object) bool { return p.locked[obj] }

// Plan is described at Component.
func (c *WorkloadComponent) Plan(ctx WorkloadContext) (Plan, error) {
	ctx = ctx.complete()
	p := Plan{Component: c.name}
	if !ctx.OmitOwnerReference {
		p.owner = ctx.HCP
	}
	wanted, err := c.Wanted(ctx)
	switch {
	case ctx.Unconditional:
	case err != nil:
		return p, fmt.Errorf("deciding whether component %s is wanted: %w", c.name, err)
	case !wanted:
		p.Left = "not wanted for this control plane"
		p.Unwanted, p.Err = c.remains(ctx)
		return p, nil
	}
	var components hyperv1.ControlPlaneComponentList
	if err := ctx.Reader.List(ctx.Context, &components, client.InNamespace(ctx.HCP.Namespace)); err != nil {
		return p, fmt.Errorf("listing ControlPlaneComponents for component %s: %w", c.name, err)
	}
	p.WaitsFor = missingDependencies(dependenciesOf(c.name, c.dependencies, ctx.HCP), components.Items, ctx.Release.Version)
	if Hibernates(ctx.HCP) {
		p.WaitsFor = nil // what stops waits for nobody to be well
	}
	missing := p.WaitsFor
	if ctx.Unconditional {
		missing = nil // what is rendered as if all were there is reported so
	}
	p.Report = c.report(ctx, missing, components.Items)
	p.Err = c.planObjects(ctx, &p, c.mayStart(ctx.HCP, components.Items))
	return p, nil
}

// Wanted says whether the control plane has the component at all.
func (c *WorkloadComponent) Wanted(ctx WorkloadContext) (bool, error) {
	if c.predicate == nil {
		return true, nil
	}
	return c.predicate(ctx)
}

// planObjects fills in what is to be made, unless the component has to wait. One that exists is left as it is while it waits.
func (c *WorkloadComponent) planObjects(ctx WorkloadContext, p *Plan, mayStart bool) (err error) {
	p.empty = c.workload.copyOf()
	p.empty.SetNamespace(ctx.HCP.Namespace)
	p.empty.SetName(c.name)
	if p.live, err = c.live(ctx); err != nil {
		return err
	}
	if len(p.WaitsFor) > 0 && (p.live != nil || !mayStart) && !ctx.Unconditional {
		p.Left = "waits for " + strings.Join(p.WaitsFor, ", ")
		return nil
	}
	rendered, err := c.Render(ctx)
	if err != nil {
		return err
	}
	p.Objects = append(slices.Clone(rendered.Manifests), rendered.Workload)
	p.Unwanted, p.workload, p.locked = rendered.Unwanted, rendered.Workload, rendered.locked
	if c.operands != nil {
		p.operands = func() error { return c.operands(ctx) }
	}
	return nil
}

// remains are everything that a component may have left behind.
func (c *WorkloadComponent) remains(ctx WorkloadContext) ([]client.Object, error) {
	workload := c.workload.copyOf()
	workload.SetName(c.name)
	candidates := []client.Object{workload}
	for _, m := range c.manifests {
		if a := c.adapters[m.file]; a == nil || !a.skip {
			obj := m.copyOf()
			obj.SetName(a.nameOf(ctx.HCP, m))
			candidates = append(candidates, obj)
		}
	}
	if c.kubeconfig != nil {
		candidates = append(candidates, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: kubeconfigSecret(c.name)}})
	}
	candidates = append(candidates, &hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Name: c.name}})
	var objs []client.Object
	var errs []error
	for _, obj := range candidates {
		obj.SetNamespace(ctx.HCP.Namespace)
		usable, err := true, error(nil)
		if gvk := obj.GetObjectKind().GroupVersionKind(); !gvk.Empty() {
			usable, err = accessible(ctx, gvk)
		}
		if errs = append(errs, err); err == nil && usable {
			objs = append(objs, obj)
		}
	}
	return objs, errors.Join(errs...)
}
