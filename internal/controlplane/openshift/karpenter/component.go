// Package karpenter is the component that makes the machines of a hosted cluster on AWS as its pods need them. The operator of Karpenter deploys it, which is the
// payload's own; here it is shown by previews.
package karpenter

import (
	"embed"

	appsv1 "k8s.io/api/apps/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/karpenteroperator"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component.
const Name = "karpenter"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithPredicate(wanted).
		WithDependencies(karpenteroperator.Name).
		InjectAvailabilityProber(component.AvailabilityProber{}).
		WithAdaptFunction(adaptDeployment).
		Build()
}

// kubeconfig is the Secret by which Cluster API reaches the hosted cluster, too.
func kubeconfig(hcp *hyperv1.HostedControlPlane) string { return hcp.Spec.InfraID + "-kubeconfig" }

func wanted(ctx component.WorkloadContext) (bool, error) {
	return karpenteroperator.Reaches(ctx, "Karpenter", kubeconfig(ctx.HCP))
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	pod := &d.Spec.Template.Spec
	main := component.Container(pod, Name)
	for i := range pod.Volumes {
		if v := &pod.Volumes[i]; v.Name == "target-kubeconfig" {
			v.Secret.SecretName = kubeconfig(ctx.HCP)
		}
	}
	if aws := ctx.HCP.Spec.Platform.AWS; aws != nil {
		kit.SetEnv(main, "AWS_REGION", aws.Region)
	}
	kit.SetEnv(main, "CLUSTER_NAME", ctx.HCP.Spec.InfraID)
	if image := ctx.HCP.Annotations[hyperv1.KarpenterProviderAWSImage]; image != "" {
		main.Image = image
	}
	component.ManagementProxy(ctx, main)
	return nil
}
