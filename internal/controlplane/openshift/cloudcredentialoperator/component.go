// Package cloudcredentialoperator is the component that runs the operator of cloud credentials in the hosted cluster, on AWS.
package cloudcredentialoperator

import (
	"embed"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component, of its container, and of the operator's ServiceAccount in the hosted cluster.
const Name = "cloud-credential-operator"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{MultiZoneSpread: true}).
		WithPredicate(kit.OnPlatform(hyperv1.AWSPlatform)).
		WithDependencies("openshift-apiserver").
		WithAdaptFunction(adaptDeployment).
		InjectServiceAccountKubeconfig(component.ServiceAccountKubeconfig{Namespace: "openshift-cloud-credential-operator", Name: Name, MountPath: "/etc/kubernetes"}).
		InjectAvailabilityProber(component.AvailabilityProber{
			KubeconfigVolume:              "service-account-kubeconfig",
			RequiredAPIs:                  []schema.GroupVersionKind{{Group: "operator.openshift.io", Version: "v1", Kind: "CloudCredential"}},
			WaitForInfrastructureResource: true,
		}).
		Build()
}

// adaptDeployment sets the version of the control plane: unlike other operators this one makes nothing that runs on nodes.
func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	c := component.Container(&d.Spec.Template.Spec, Name)
	kit.SetEnv(c, "RELEASE_VERSION", ctx.Release.Version)
	component.ManagementProxy(ctx, c)
	return nil
}
