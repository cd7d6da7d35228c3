// Package ignitionserverproxy is the component that machines reach instead of the ignition server itself, with the certificate that they know.
package ignitionserverproxy

import (
	"embed"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/ignitionserver"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/endpoints"
)

// Name of the component.
const Name = "ignition-server-proxy"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{RequestServing: true, MultiZoneSpread: true}).
		WithPredicate(wanted).
		WithDependencies(ignitionserver.Name).
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("service.yaml", component.AdaptManifest(adaptService)).
		Build()
}

func wanted(ctx component.WorkloadContext) (bool, error) {
	if ctx.HCP.Spec.Platform.Type == hyperv1.IBMCloudPlatform {
		return false, nil
	}
	return ignitionserver.Wanted(ctx)
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	pod := &d.Spec.Template.Spec
	component.ManagementProxy(ctx, component.Container(pod, "haproxy"))
	kit.UserTrust(ctx, pod)
	return nil
}

func adaptService(ctx component.WorkloadContext, svc *corev1.Service) error {
	s := endpoints.StrategyFor(ctx.HCP, hyperv1.Ignition)
	if s == nil {
		return nil // the HostedControlPlane publishes nothing
	}
	return ignitionserver.Publish(s, svc)
}
