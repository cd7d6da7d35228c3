// Package ingressoperator is the component that runs the operator of the hosted cluster's routers.
package ingressoperator

import (
	"embed"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component, and of its container.
const Name = "ingress-operator"

const (
	guestNamespace   = "openshift-ingress-operator"
	kubeconfigVolume = "admin-kubeconfig"
	identityVolume   = "ingress-cert"
	identityClass    = "managed-azure-ingress"
)

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{}).
		WithPredicate(kit.WithCapability(hyperv1.IngressCapability)).
		WithDependencies("openshift-apiserver").
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("azure-secretproviderclass.yaml", kit.SecretProviderClass(identity)...).
		InjectKonnectivityContainer(component.KonnectivityProxy{Mode: component.HTTPSProxy, HTTPS: component.HTTPSProxyOptions{ConnectDirectlyToCloudAPIs: true}, KubeconfigVolume: kubeconfigVolume}).
		InjectServiceAccountKubeconfig(component.ServiceAccountKubeconfig{Namespace: guestNamespace, Name: Name, MountPath: "/etc/kubernetes", ContainerName: Name}).
		InjectTokenMinterContainer(component.TokenMinter{
			Type: component.CloudToken, ServiceAccountNamespace: guestNamespace, ServiceAccountName: Name, KubeconfigVolume: kubeconfigVolume,
		}).
		InjectAvailabilityProber(component.AvailabilityProber{
			KubeconfigVolume: "service-account-kubeconfig",
			RequiredAPIs:     []schema.GroupVersionKind{{Group: "route.openshift.io", Version: "v1", Kind: "Route"}},
		}).
		Build()
}

func identity(hcp *hyperv1.HostedControlPlane) *hyperv1.ManagedIdentity {
	if all := kit.ManagedIdentities(hcp); all != nil {
		return &all.Ingress
	}
	return nil
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	pod := &d.Spec.Template.Spec
	c := component.Container(pod, Name)
	kit.SetEnv(c, "RELEASE_VERSION", ctx.UserRelease.Version)
	for name, tag := range map[string]string{
		"IMAGE": "haproxy-router", "HAPROXY_28_IMAGE": "haproxy-router-haproxy28", "HAPROXY_32_IMAGE": "haproxy-router-haproxy32", "CANARY_IMAGE": "cluster-ingress-operator",
	} {
		kit.SetEnv(c, name, kit.UserImage(ctx, tag)) // each has its place in the asset
	}
	if ctx.HCP.Spec.FIPS {
		kit.SetEnv(c, "FIPS_ENABLED", "true")
	}
	return kit.UseIdentity(ctx, pod, Name, identityVolume, identityClass, identity)
}
