package component

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
)

// Report is what a plan knows of the ControlPlaneComponent of its component. What became of the plan completes it.
type Report struct {
	// Object is the ControlPlaneComponent without a status.
	Object *hyperv1.ControlPlaneComponent

	before      hyperv1.ControlPlaneComponentStatus // as it was when the plan was made
	generation  int64                               // of the HostedControlPlane; 0: it has none
	version     string                              // that a complete rollout reaches
	asleep      bool                                // the component hibernates with its control plane
	resources   []hyperv1.ComponentResource
	problem     error // why resources are not known
	missing     []string
	trouble     string // why pods do not run, as a reason and a message; empty: nothing is known
	troubleText string
}

// outcome is what became of a plan.
type outcome struct {
	live     client.Object // the workload, nil when absent
	current  bool          // live has the spec that was rendered last; false right after a write
	err      error         // why the component could not be brought to what is wanted
	operands error         // what its operands lack
}

// noTime is the time of conditions that are new in a preview, which has no clock.
var noTime = time.Unix(0, 0).UTC()

// Preview is the ControlPlaneComponent as a pass would leave it. Conditions that are new in it bear the start of 1970 as their time.
func (p Plan) Preview() *hyperv1.ControlPlaneComponent {
	if p.Report == nil {
		return nil
	}
	cpc := p.Report.Object.DeepCopy()
	cpc.Status = *p.Report.before.DeepCopy()
	out := outcome{live: p.live, current: p.Left != "", err: p.Err}
	if p.workload != nil && p.live == nil && p.Err == nil {
		out.live, out.current = p.workload, true // made in this pass, and nothing has become of it yet
	}
	p.Report.complete(&cpc.Status, noTime, out)
	return cpc
}

// report is what can be told before anything is done.
func (c *WorkloadComponent) report(ctx WorkloadContext, missing []string, components []hyperv1.ControlPlaneComponent) *Report {
	r := &Report{
		Object: &hyperv1.ControlPlaneComponent{
			TypeMeta:   metav1.TypeMeta{APIVersion: hyperv1.GroupVersion.String(), Kind: "ControlPlaneComponent"},
			ObjectMeta: metav1.ObjectMeta{Namespace: ctx.HCP.Namespace, Name: c.name},
		},
		generation: ctx.HCP.Generation, version: ctx.Release.Version, missing: missing, asleep: Hibernates(ctx.HCP) && !StaysAwake(c.name),
	}
	if !ctx.OmitOwnerReference {
		r.Object.OwnerReferences = []metav1.OwnerReference{ownerReference(ctx.HCP)}
	}
	for i := range components {
		if components[i].Name == c.name {
			r.before = components[i].Status
		}
	}
	if ctx.Trouble != nil {
		r.trouble, r.troubleText = ctx.Trouble(c.name)
	}
	if r.resources, r.problem = c.resources(ctx); r.problem != nil {
		r.problem = fmt.Errorf("listing the objects of component %s: %w", c.name, r.problem)
	}
	return r
}

func (r *Report) observation(o outcome) observation {
	return observation{
		live: o.live, current: o.current, missing: r.missing, reconciled: o.err, operands: o.operands,
		trouble: r.trouble, troubleText: r.troubleText,
	}
}

// conditions are those of a ControlPlaneComponent.
func (r *Report) conditions(obs observation) []metav1.Condition {
	conds := []metav1.Condition{obs.blame(availableCondition(obs)), obs.blame(rolloutCondition(obs))}
	for i := range conds {
		conds[i].ObservedGeneration = r.generation
	}
	return conds
}

// complete writes the report over a status.
func (r *Report) complete(status *hyperv1.ControlPlaneComponentStatus, now time.Time, out outcome) {
	status.Resources = r.resources
	if r.generation > 0 {
		status.ObservedGeneration = ptr.To(r.generation)
	}
	conditions.Set(&status.Conditions, now, r.conditions(r.observation(out))...)
	if conditions.IsTrue(status.Conditions, RolloutComplete) && (status.Version != "" || !r.stopped(out.live)) {
		status.Version = r.version
	}
}

// stopped says whether the component has no pods because its control plane hibernates. All is done then that is to be done, but it is no first version: that
// one says that the component has run, and etcd goes by it when it asks whether its members have data.
func (r *Report) stopped(live client.Object) bool {
	if !r.asleep || live == nil {
		return false
	}
	replicas := replicasOf(live)
	return replicas != nil && ptr.Deref(*replicas, 1) == 0
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
		skipped, err := c.adapters[m.file].skipped(ctx)
		if err != nil {
			return nil, err
		}
		if usable && wanted && !skipped && (monitored(ctx) || !isMonitor(m.object)) {
			list = append(list, hyperv1.ComponentResource{Kind: gvk.Kind, Group: gvk.Group, Name: c.adapters[m.file].nameOf(ctx.HCP, m)})
		}
	}
	if c.kubeconfig.wanted(ctx) {
		list = append(list, hyperv1.ComponentResource{Kind: "Secret", Name: kubeconfigSecret(c.name)})
	}
	return list[:min(len(list), maxResources)], nil
}
