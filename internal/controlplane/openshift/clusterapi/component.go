// Package clusterapi is the component that runs the manager of Cluster API, in payload form. The hypershift-operator deploys it.
package clusterapi

import (
	"cmp"
	"embed"

	appsv1 "k8s.io/api/apps/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component.
const Name = "cluster-api"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	b := component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithPredicate(kit.WithMachines).
		WithAdaptFunction(adaptDeployment).
		SpeaksClusterAPI(component.CAPIClient{}).
		// The certificate of webhooks that nobody calls is made once, by who deploys the component.
		WithManifestAdapter("webhooks-tls.yaml", component.ReconcileExisting())
	return kit.BelongToHostedCluster(b, "role.yaml", "rolebinding.yaml", "serviceaccount.yaml", "webhooks-tls.yaml").Build()
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	kit.RefersToHostedCluster(ctx, d)
	main, version := component.Container(&d.Spec.Template.Spec, "manager"), ctx.Release.Version
	if kit.AtLeast(version, 19) {
		main.Args = append(main.Args, "--feature-gates=MachineSetPreflightChecks=false")
	}
	if kit.AtLeast(version, 23) {
		main.Args = append(main.Args, kit.TLSOf(ctx.HCP).Args()...)
	}
	if kit.AtLeast(version, 20) {
		main.Args = append(main.Args, "--skip-crd-migration-phases=StorageVersionMigration", "--skip-crd-migration-phases=CleanupManagedFields")
	}
	main.Image = cmp.Or(ctx.HCP.Annotations[hyperv1.ClusterAPIManagerImage], main.Image)
	return nil
}
