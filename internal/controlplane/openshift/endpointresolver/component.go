// Package endpointresolver is the component that tells the metrics proxy where the pods of the control plane are.
package endpointresolver

import (
	"embed"

	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component.
const Name = "endpoint-resolver"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithPredicate(kit.WithForwardedMetrics).
		WithManifestAdapter("ca-cert.yaml", kit.Certificate()...).
		WithManifestAdapter("serving-cert.yaml", kit.Certificate()...).
		Build()
}
