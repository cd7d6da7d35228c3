package component

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Demand is what a component will ask of the nodes of the management cluster.
type Demand struct {
	Component string
	// Replicas that run at once, at least one.
	Replicas int32
	// Surge: an update makes a pod before it ends one.
	Surge bool
	// Template has requests, and all that decides where the pods may be; images and content are as in the assets.
	Template corev1.PodTemplateSpec
}

// demandDefaults are those defaults that decide about number, size and place of pods.
var demandDefaults = []func(*scope) error{
	replicas, strategy, injectContainers, priorityClass, nodeSelector, podLabels, tolerations, nodeAffinity, resourceOverrides, antiAffinity,
}

// Demand computes what the component asks for in a control plane that does not exist yet, from what it will be rendered from; nil when it
// asks for nothing. What the component would read in its namespace is taken for present: a component that sleeps, or comes when somebody asks
// for it, is counted as if it ran, for it may not fail later.
func (c *WorkloadComponent) Demand(ctx WorkloadContext) (*Demand, error) {
	ctx = ctx.complete()
	ctx.Reader, ctx.HCP = presumed{}, ctx.HCP.DeepCopy()
	if ctx.HCP.Status.KubeConfig == nil {
		ctx.HCP.Status.KubeConfig = &hyperv1.KubeconfigSecretRef{}
	}
	// Encryption adds a volume whose content is not there yet; keys of clouds, which need a container, are none of ours.
	ctx.HCP.Spec.SecretEncryption = nil
	wanted, err := c.Wanted(ctx)
	if err != nil || !wanted {
		return nil, err
	}
	workload := c.workload.copyOf()
	workload.SetName(c.name)
	if c.adapt != nil {
		if err := c.adapt(ctx, workload); err != nil {
			return nil, fmt.Errorf("working out what %s asks for: %w", c.name, err)
		}
	}
	s := &scope{ctx: ctx, c: c, workload: workload, template: podTemplate(workload)}
	for _, apply := range demandDefaults {
		if err := apply(s); err != nil {
			return nil, fmt.Errorf("working out what %s asks for: %w", c.name, err)
		}
	}
	d := &Demand{Component: c.name, Replicas: 1, Surge: surges(workload), Template: *s.template}
	if r := replicasOf(workload); r != nil {
		d.Replicas = ptr.Deref(*r, 1)
	}
	if d.Replicas == 0 {
		return nil, nil
	}
	return d, nil
}

// surges tells whether an update of the workload needs room for one pod more.
func surges(workload client.Object) bool {
	d, ok := workload.(*appsv1.Deployment)
	if !ok || d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return false
	}
	r := d.Spec.Strategy.RollingUpdate
	return r == nil || r.MaxSurge == nil || r.MaxSurge.String() != "0"
}

// presumed is a Reader of a world in which every object is there, without content, and no list has an item.
type presumed struct{}

// Get implements client.Reader.
func (presumed) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

// List implements client.Reader.
func (presumed) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }
