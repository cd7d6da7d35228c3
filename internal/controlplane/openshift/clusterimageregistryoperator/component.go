// Package clusterimageregistryoperator is the component that runs the operator of the hosted cluster's image registry.
package clusterimageregistryoperator

import (
	"embed"

	appsv1 "k8s.io/api/apps/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component, of its container, and of the operator's ServiceAccount in the hosted cluster.
const Name = "cluster-image-registry-operator"

const (
	guestNamespace = "openshift-image-registry"
	identityVolume = "image-registry-cert"
	identityClass  = "managed-azure-image-registry"
)

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{MultiZoneSpread: true}).
		WithPredicate(kit.WithCapability(hyperv1.ImageRegistryCapability)).
		WithDependencies("openshift-apiserver").
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("config.yaml", component.AdaptManifest(kit.AdaptControllerConfig)).
		WithManifestAdapter("azure-secretproviderclass.yaml", kit.SecretProviderClass(identity)...).
		InjectTokenMinterContainer(component.TokenMinter{
			Type: component.CloudAndAPIServerToken, ServiceAccountNamespace: guestNamespace, ServiceAccountName: Name,
		}).
		Build()
}

func identity(hcp *hyperv1.HostedControlPlane) *hyperv1.ManagedIdentity {
	if all := kit.ManagedIdentities(hcp); all != nil {
		return all.ImageRegistry
	}
	return nil
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	pod := &d.Spec.Template.Spec
	c := component.Container(pod, Name)
	kit.SetEnv(c, "RELEASE_VERSION", ctx.UserRelease.Version)
	kit.SetEnv(c, "OPERATOR_IMAGE", kit.Image(ctx, Name))
	kit.SetEnv(c, "IMAGE", kit.UserImage(ctx, "docker-registry"))
	kit.SetEnv(c, "IMAGE_PRUNER", kit.UserImage(ctx, "cli"))
	kit.SetEnv(c, "OPERATOR_IMAGE_VERSION", ctx.UserRelease.Version)
	component.ManagementProxy(ctx, c)
	return kit.UseIdentity(ctx, pod, Name, identityVolume, identityClass, identity)
}
