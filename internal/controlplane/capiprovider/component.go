// Package capiprovider is the component that runs the infrastructure provider of the platform. The hypershift-operator deploys it.
package capiprovider

import (
	"embed"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
)

// Name of the component.
const Name = names.CAPIProvider

// managerContainer is the one that a platform's provider has to have.
const managerContainer = "manager"

// webhookVolume is changed without a restart.
const webhookVolume = "capi-webhooks-tls"

// kubeconfigFlag is ours, and that of every provider built with controller-runtime.
const kubeconfigFlag = "kubeconfig"

//go:embed assets
var assets embed.FS

// Options say how the component is deployed.
type Options struct {
	// Spec is what the platform asks for; nil: it has no provider, and what there is of the component is removed.
	Spec *appsv1.DeploymentSpec
	// Rules are what the provider may do in its namespace besides what all may.
	Rules []rbacv1.PolicyRule
}

// NewComponent makes the component.
func NewComponent(options Options) *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithPredicate(func(component.WorkloadContext) (bool, error) { return options.Spec != nil, nil }).
		WithAdaptFunction(options.adaptDeployment).
		WithManifestAdapter("role.yaml", component.AdaptManifest(options.adaptRole)).
		SpeaksClusterAPI(component.CAPIClient{KubeconfigFlag: kubeconfigFlag}).
		ReloadsFilesOf(webhookVolume).
		Build()
}

func (o Options) adaptRole(_ component.WorkloadContext, role *rbacv1.Role) error {
	role.Rules = append(role.Rules, o.Rules...)
	return nil
}

// adaptDeployment puts the platform's pod over the common one: its container manager completes ours, everything else is added.
func (o Options) adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	from, to := o.Spec.Template.Spec.DeepCopy(), &d.Spec.Template.Spec
	i := slices.IndexFunc(from.Containers, func(c corev1.Container) bool { return c.Name == managerContainer })
	if i < 0 {
		return fmt.Errorf("the platform's provider has no container %s", managerContainer)
	}
	given, main := from.Containers[i], component.Container(to, managerContainer)
	main.Image, main.Command, main.Args = given.Image, given.Command, given.Args
	main.Env = append(main.Env, given.Env...)
	main.Env = append(main.Env, component.AWSEndpoints(ctx)...)
	if given.LivenessProbe != nil { // it says how it is somewhere else than most
		main.Ports, main.LivenessProbe, main.ReadinessProbe = nil, given.LivenessProbe, given.ReadinessProbe
	}
	main.Ports = append(main.Ports, given.Ports...)
	main.VolumeMounts = append(main.VolumeMounts, given.VolumeMounts...)
	if len(given.Resources.Requests) > 0 {
		main.Resources = given.Resources
	}
	to.Containers = append(to.Containers, slices.Delete(from.Containers, i, i+1)...)
	to.InitContainers = append(to.InitContainers, from.InitContainers...)
	to.Volumes = append(to.Volumes, from.Volumes...)
	return nil
}
