// Package kubescheduler is the component that schedules the pods of a hosted cluster.
package kubescheduler

import (
	"embed"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/settings"
)

// Name of the component.
const Name = names.KubeScheduler

//go:embed assets
var assets embed.FS

const configKey = "config.json"

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{MultiZoneSpread: true}).
		StartBeforeDependencies("etcd").
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("config.yaml", component.AdaptManifest(adaptConfig)).
		ReloadsFilesOf("server-crt", "client-ca").
		Build()
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	main := component.Container(&d.Spec.Template.Spec, Name)
	main.Args = append(main.Args, settings.TLSOf(ctx.HCP).Flags()...)
	main.Args = append(main.Args, settings.FeatureGates(ctx.HCP)...)
	return nil
}

func adaptConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	raw, err := json.MarshalIndent(configOf(settings.SchedulerProfile(ctx.HCP)), "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the scheduler's configuration: %w", err)
	}
	cm.Data = map[string]string{configKey: string(raw) + "\n"}
	return nil
}
