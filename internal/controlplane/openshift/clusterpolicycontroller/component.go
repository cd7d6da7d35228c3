// Package clusterpolicycontroller is the component that runs OpenShift's controllers for security contexts of namespaces and for quota.
package clusterpolicycontroller

import (
	"embed"

	corev1 "k8s.io/api/core/v1"

	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component.
const Name = "cluster-policy-controller"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{MultiZoneSpread: true}).
		WithDependencies("openshift-apiserver").
		WithManifestAdapter("config.yaml", component.AdaptManifest(adaptConfig)).
		InjectAvailabilityProber(component.AvailabilityProber{}).
		Build()
}

func adaptConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	gates, err := kit.FeatureGates(ctx)
	if err != nil {
		return err
	}
	return kit.EditConfig(cm, "config.yaml", func(config map[string]any) error {
		kit.TLSOf(ctx.HCP).ServingInfo(kit.Section(config, "servingInfo"))
		config["featureGates"] = kit.List(gates)
		return nil
	})
}
