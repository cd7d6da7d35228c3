// Package machineapprover is the component that approves certificates of kubelets whose machines Cluster API knows.
package machineapprover

import (
	"embed"

	appsv1 "k8s.io/api/apps/v1"

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
		WithPredicate(wanted).
		InjectAvailabilityProber(component.AvailabilityProber{}).
		WithAdaptFunction(adaptDeployment).
		SpeaksClusterAPI(component.CAPIClient{KubeconfigFlag: "management-cluster-kubeconfig"}).
		Build()
}

func wanted(ctx component.WorkloadContext) (bool, error) {
	if managed, err := kit.WithMachines(ctx); !managed || err != nil {
		return false, err
	}
	return kit.HasKubeconfig(ctx, names.ServiceNetworkKubeconfig)
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	main := component.Container(&d.Spec.Template.Spec, Name)
	main.Args = append(main.Args, "--machine-namespace="+ctx.HCP.Namespace)
	main.Args = append(main.Args, kit.TLSOf(ctx.HCP).Args()...)
	return nil
}
