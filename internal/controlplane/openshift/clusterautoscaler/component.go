// Package clusterautoscaler is the component that sizes NodePools with spec.autoScaling by the payload's cluster autoscaler.
package clusterautoscaler

import (
	"embed"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/pki"
)

// Name of the component.
const Name = "cluster-autoscaler"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithPredicate(kit.WithMachinesAndKubeconfig(kubeconfig)).
		InjectAvailabilityProber(component.AvailabilityProber{}).
		WithAdaptFunction(adaptDeployment).
		SpeaksClusterAPI(component.CAPIClient{KubeconfigFlag: "cloud-config"}).
		Build()
}

func kubeconfig(hcp *hyperv1.HostedControlPlane) string { return pki.CAPIKubeconfig(hcp.Spec.InfraID) }

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	pod := &d.Spec.Template.Spec
	main := component.Container(pod, Name)
	main.Args = append(main.Args, options(ctx.HCP)...)
	kit.Volume(pod, "kubeconfig").Secret.SecretName = kubeconfig(ctx.HCP)
	if image := strings.TrimSpace(ctx.HCP.Annotations[hyperv1.ClusterAutoscalerImage]); image != "" {
		main.Image = image
	}
	if ctx.HCP.Annotations[hyperv1.DisableClusterAutoscalerAnnotation] == "true" {
		d.Spec.Replicas = ptr.To[int32](0)
	}
	return nil
}
