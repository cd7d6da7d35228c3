// Package routecontrollermanager is the component that runs OpenShift's controllers for Routes and addresses of Services.
package routecontrollermanager

import (
	"embed"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component.
const Name = "openshift-route-controller-manager"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{MultiZoneSpread: true}).
		WithDependencies("openshift-apiserver").
		WithManifestAdapter("config.yaml", component.AdaptManifest(adaptConfig)).
		WithManifestAdapter("service.yaml", component.DisableIfAnnotationExist(hyperv1.DisableMonitoringServices)).
		Build()
}

func adaptConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	return kit.EditConfig(cm, "config.yaml", func(config map[string]any) error {
		kit.IngressIPRange(ctx.HCP, config)
		kit.TLSOf(ctx.HCP).ServingInfo(kit.Section(config, "servingInfo"))
		return nil
	})
}
