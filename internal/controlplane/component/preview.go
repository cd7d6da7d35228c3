package component

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
)

// noTime is the time of conditions that are new in a preview, which has no clock.
var noTime = time.Unix(0, 0).UTC()

// Preview is what one pass would make of a component, with nothing written.
type Preview struct {
	Component string
	// Objects are in the order in which they are applied; none when the component is not made now.
	Objects []client.Object
	// Left says why there are none.
	Left string
	// Report is the ControlPlaneComponent as the pass would leave it. Conditions that are new in it bear noTime.
	Report *hyperv1.ControlPlaneComponent
}

// Preview plays a pass. all renders the component even though its predicate, or something that it waits for, says no.
func (c *WorkloadComponent) Preview(ctx WorkloadContext, all bool) (Preview, error) {
	out := Preview{Component: c.name}
	if ctx.UserRelease == nil {
		ctx.UserRelease = ctx.Release
	}
	wanted, err := c.wanted(ctx)
	if err != nil && !all {
		return out, fmt.Errorf("deciding whether component %s is wanted: %w", c.name, err)
	}
	if !wanted && !all {
		out.Left = "not wanted for this control plane"
		return out, nil
	}
	var components hyperv1.ControlPlaneComponentList
	if err := ctx.Reader.List(ctx.Context, &components, client.InNamespace(ctx.HCP.Namespace)); err != nil {
		return out, fmt.Errorf("listing ControlPlaneComponents for component %s: %w", c.name, err)
	}
	obs := observation{missing: missingDependencies(dependenciesOf(c.name, c.dependencies, ctx.HCP), components.Items, ctx.Release.Version)}
	obs.mayStart = c.mayStart(ctx.HCP, components.Items)
	if obs.live, err = c.live(ctx); err != nil {
		return out, err
	}
	if len(obs.missing) > 0 && (obs.live != nil || !obs.mayStart) && !all {
		obs.current, out.Left = true, "waits for "+strings.Join(obs.missing, ", ")
		out.Report = c.preview(ctx, obs, components.Items)
		return out, nil
	}
	rendered, err := c.Render(ctx)
	if err != nil {
		return out, fmt.Errorf("rendering component %s: %w", c.name, err)
	}
	for _, obj := range append(rendered.Manifests, rendered.Workload) {
		if obj != nil {
			out.Objects = append(out.Objects, obj)
		}
	}
	out.Report = c.preview(ctx, obs, components.Items)
	if out.Report.Status.Resources, err = c.resources(ctx); err != nil {
		return out, fmt.Errorf("listing the objects of component %s: %w", c.name, err)
	}
	return out, nil
}

// preview is the ControlPlaneComponent that a pass would leave.
func (c *WorkloadComponent) preview(ctx WorkloadContext, obs observation, live []hyperv1.ControlPlaneComponent) *hyperv1.ControlPlaneComponent {
	cpc := &hyperv1.ControlPlaneComponent{}
	for i := range live {
		if live[i].Name == c.name {
			cpc.Status = *live[i].Status.DeepCopy()
		}
	}
	cpc.TypeMeta = metav1.TypeMeta{APIVersion: hyperv1.GroupVersion.String(), Kind: "ControlPlaneComponent"}
	cpc.ObjectMeta = metav1.ObjectMeta{Namespace: ctx.HCP.Namespace, Name: c.name}
	if !ctx.OmitOwnerReference {
		cpc.OwnerReferences = []metav1.OwnerReference{ownerReference(ctx.HCP)}
	}
	if ctx.HCP.Generation > 0 {
		cpc.Status.ObservedGeneration = ptr.To(ctx.HCP.Generation)
	}
	conditions.Set(&cpc.Status.Conditions, noTime, observed(ctx.HCP, availableCondition(obs)), observed(ctx.HCP, rolloutCondition(obs)))
	return cpc
}
