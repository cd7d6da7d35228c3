// Package featuregategenerator is the component that asks the payload which features a feature set has, and leaves the answer in ConfigMap feature-gate,
// where others find it.
package featuregategenerator

import (
	"embed"

	batchv1 "k8s.io/api/batch/v1"

	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component.
const Name = "featuregate-generator"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewJobComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithAdaptFunction(adaptJob).
		Build()
}

func adaptJob(ctx component.WorkloadContext, job *batchv1.Job) error {
	pod := &job.Spec.Template.Spec
	for _, name := range []string{"render-feature-gates", "apply"} {
		kit.SetPayloadVersion(ctx, component.Container(pod, name))
	}
	return kit.SetFeatureGate(ctx, component.Container(pod, "render-feature-gates"))
}
