// Package machineapprover is the component that approves certificates of kubelets whose machines Cluster API knows.
package machineapprover

import (
	"embed"

	appsv1 "k8s.io/api/apps/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component.
const Name = "machine-approver"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithPredicate(kit.WithMachinesAndKubeconfig(func(*hyperv1.HostedControlPlane) string { return names.ServiceNetworkKubeconfig })).
		InjectAvailabilityProber(component.AvailabilityProber{}).
		WithAdaptFunction(adaptDeployment).
		SpeaksClusterAPI(component.CAPIClient{KubeconfigFlag: "management-cluster-kubeconfig"}).
		Build()
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	main := component.Container(&d.Spec.Template.Spec, Name)
	main.Args = append(main.Args, "--machine-namespace="+ctx.HCP.Namespace)
	main.Args = append(main.Args, kit.TLSOf(ctx.HCP).Args()...)
	return nil
}
