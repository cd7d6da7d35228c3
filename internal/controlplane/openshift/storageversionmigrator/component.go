// Package storageversionmigrator is the component that writes stored objects anew, so that they are encrypted with the present key.
package storageversionmigrator

import (
	"embed"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

// Name of the component.
const Name = "kube-storage-version-migrator"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{}).WithPredicate(wanted).Build()
}

func wanted(ctx component.WorkloadContext) (bool, error) {
	platform := ctx.HCP.Spec.Platform.Type
	return ctx.HCP.Spec.SecretEncryption != nil && platform != hyperv1.IBMCloudPlatform && platform != hyperv1.PowerVSPlatform, nil
}
