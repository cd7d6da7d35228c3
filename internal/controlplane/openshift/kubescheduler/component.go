// Package kubescheduler is the component that places pods on the hosted cluster's nodes, as OpenShift builds it.
package kubescheduler

import (
	"embed"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	configv1 "hcp.internal/api/config/v1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/controlplane/settings"
	"hcp.internal/platform/internal/pki"
)

// Name of the component.
const Name = names.KubeScheduler

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{MultiZoneSpread: true}).
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("config.yaml", component.AdaptManifest(adaptConfig)).
		WithManifestAdapter("kube-scheduler-kubeconfig.yaml", kit.Kubeconfig{Client: pki.SchedulerClient}.Adapt()).
		InjectAvailabilityProber(component.AvailabilityProber{}).
		Build()
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	main := component.Container(&d.Spec.Template.Spec, Name)
	main.Args = append(main.Args, kit.TLSOf(ctx.HCP).Args()...)
	main.Args = append(main.Args, kit.ProfilingArgs(ctx.HCP, Name)...)
	gates, err := kit.FeatureGateArgs(ctx)
	if err != nil {
		return err
	}
	main.Args = append(main.Args, gates...)
	if c := ctx.HCP.Spec.Configuration; c != nil && c.Scheduler != nil && c.Scheduler.Policy.Name != "" {
		main.Args = append(main.Args, "--policy-config-map="+c.Scheduler.Policy.Name, "--policy-config-namespace="+ctx.HCP.Namespace)
	}
	return nil
}

func adaptConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	profile := profileOf(settings.SchedulerProfile(ctx.HCP))
	if profile == nil {
		return nil
	}
	return kit.EditConfig(cm, "config.json", func(config map[string]any) error {
		config["profiles"] = []any{profile}
		return nil
	})
}

// profileOf says what a profile means. LowNodeUtilization is the scheduler's own way.
func profileOf(p configv1.SchedulerProfile) map[string]any {
	all := map[string]any{"disabled": []any{map[string]any{"name": "*"}}}
	switch p {
	case configv1.HighNodeUtilization: // Fill few nodes, so that others can go.
		return map[string]any{
			"schedulerName": "default-scheduler",
			"pluginConfig": []any{map[string]any{"name": "NodeResourcesFit", "args": map[string]any{
				"scoringStrategy": map[string]any{"type": "MostAllocated"},
			}}},
			"plugins": map[string]any{"score": map[string]any{
				"enabled":  []any{map[string]any{"name": "NodeResourcesFit", "weight": 5}},
				"disabled": []any{map[string]any{"name": "NodeResourcesBalancedAllocation"}},
			}},
		}
	case configv1.NoScoring: // The first node that fits, for speed.
		return map[string]any{"schedulerName": "default-scheduler", "plugins": map[string]any{"preScore": all, "score": all}}
	}
	return nil
}
