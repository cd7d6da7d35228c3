// Package cloudcontrollermanager has the components that tie a hosted cluster to its cloud: one for each platform that has one.
package cloudcontrollermanager

import (
	"embed"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Container is the name of the main container in each of the pods.
const Container = "cloud-controller-manager"

//go:embed assets
var assets embed.FS

// builder starts the component of a platform; adapt changes its pods before the TLS profile goes into the arguments.
func builder(folder string, platform hyperv1.PlatformType, options component.Options, adapt func(component.WorkloadContext, *corev1.PodSpec) error) *component.Builder[*appsv1.Deployment] {
	return component.NewDeploymentComponent(folder+"-cloud-controller-manager", assets, options).
		WithAssetDir("assets/" + folder).
		WithPredicate(kit.OnPlatform(platform)).
		WithAdaptFunction(func(ctx component.WorkloadContext, d *appsv1.Deployment) error {
			pod := &d.Spec.Template.Spec
			if err := adapt(ctx, pod); err != nil {
				return err
			}
			main := component.Container(pod, Container)
			main.Args = append(main.Args, kit.TLSOf(ctx.HCP).Args()...)
			return nil
		})
}
