// Package dnsoperator is the component that runs the operator of the hosted cluster's DNS.
package dnsoperator

import (
	"embed"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component, and of its container.
const Name = "dns-operator"

// guestNamespace is where operators of older releases ran, in the hosted cluster.
const guestNamespace = "openshift-dns-operator"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{MultiZoneSpread: true}).
		WithDependencies("openshift-apiserver").
		WithAdaptFunction(adaptDeployment).
		InjectServiceAccountKubeconfig(component.ServiceAccountKubeconfig{Namespace: guestNamespace, Name: Name, MountPath: "/etc/kubernetes"}).
		InjectAvailabilityProber(component.AvailabilityProber{
			KubeconfigVolume:       "service-account-kubeconfig",
			RequiredAPIs:           []schema.GroupVersionKind{{Group: "operator.openshift.io", Version: "v1", Kind: "DNS"}},
			WaitForLabeledPodsGone: guestNamespace + "/name=dns-operator",
		}).
		Build()
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	c := component.Container(&d.Spec.Template.Spec, Name)
	kit.SetEnv(c, "RELEASE_VERSION", ctx.UserRelease.Version)
	kit.SetEnv(c, "IMAGE", kit.UserImage(ctx, "coredns"))
	kit.SetEnv(c, "OPENSHIFT_CLI_IMAGE", kit.UserImage(ctx, "cli"))
	kit.SetEnv(c, "KUBE_RBAC_PROXY_IMAGE", kit.UserImage(ctx, "kube-rbac-proxy"))
	return nil
}
