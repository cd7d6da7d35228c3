// Package clusterapi is the component that runs the stock Cluster API manager of a hosted cluster, restricted to its namespace. The
// hypershift-operator deploys it, because it must outlive the HostedControlPlane that it takes part in deleting.
//
// Its webhooks are served, because the manager can't be told otherwise, and never registered: what they would default, we write.
package clusterapi

import (
	"embed"

	appsv1 "k8s.io/api/apps/v1"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
)

// Name of the component.
const Name = names.ClusterAPI

// WebhookSecret holds the serving certificate of the webhooks that nobody calls.
const WebhookSecret = "capi-webhooks-tls"

//go:embed assets
var assets embed.FS

// Options say how the component is deployed.
type Options struct {
	// Enabled is false where there are no machines to manage; what there is of the component is removed then.
	Enabled bool
	// Image replaces that of the release (annotation capi-manager-image); empty: the release's.
	Image string
}

// NewComponent makes the component.
func NewComponent(options Options) *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithPredicate(func(component.WorkloadContext) (bool, error) { return options.Enabled, nil }).
		WithAdaptFunction(func(_ component.WorkloadContext, d *appsv1.Deployment) error {
			if options.Image != "" {
				component.Container(&d.Spec.Template.Spec, "manager").Image = options.Image
			}
			return nil
		}).
		SpeaksClusterAPI(component.CAPIClient{}).
		ReloadsFilesOf(WebhookSecret).
		Build()
}
