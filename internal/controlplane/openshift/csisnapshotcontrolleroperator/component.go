// Package csisnapshotcontrolleroperator is the component that runs the operator of the controller for snapshots of volumes.
package csisnapshotcontrolleroperator

import (
	"embed"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component.
const Name = "csi-snapshot-controller-operator"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithPredicate(kit.NotOnPlatform(hyperv1.IBMCloudPlatform, hyperv1.PowerVSPlatform)).
		WithDependencies("openshift-apiserver").
		InjectAvailabilityProber(component.AvailabilityProber{
			KubeconfigVolume: "guest-kubeconfig", RequiredAPIs: []schema.GroupVersionKind{{Group: "operator.openshift.io", Version: "v1", Kind: "CSISnapshotController"}},
		}).
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("config.yaml", component.AdaptManifest(kit.AdaptControllerConfig)).
		WithCustomOperandsRolloutCheckFunc(func(ctx component.WorkloadContext) error {
			return component.CheckOperands(ctx, component.Operand{Deployment: "csi-snapshot-controller", Container: "snapshot-controller", Tag: "csi-snapshot-controller"})
		}).
		Build()
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	main := component.Container(&d.Spec.Template.Spec, Name)
	kit.SetEnv(main, "OPERAND_IMAGE", kit.Image(ctx, "csi-snapshot-controller"))
	kit.SetEnv(main, "OPERATOR_IMAGE_VERSION", ctx.UserRelease.Version)
	kit.SetEnv(main, "OPERAND_IMAGE_VERSION", ctx.UserRelease.Version)
	kit.SetRunAsUser(ctx, main)
	return nil
}
