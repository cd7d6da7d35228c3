// Package configoperator is the component that runs the hosted-cluster-config-operator, which keeps the objects of ours in a
// hosted cluster.
//
// It has no availability prober: on a Kubernetes release nothing but the API server itself has to be there, and the operator
// tries again until it is. The kinds that it needs on an OpenShift payload come with the components that serve them.
package configoperator

import (
	"embed"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/images"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/releaseimage"
	"hcp.internal/platform/internal/controlplane/component"
)

// Name of the component.
const Name = names.ConfigOperator

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		StartBeforeDependencies("etcd").
		WithAdaptFunction(adaptDeployment).
		SpeaksClusterAPI(component.CAPIClient{KubeconfigFlag: "kubeconfig"}).
		Build()
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	hcp, main := ctx.HCP, component.Container(&d.Spec.Template.Spec, Name)
	main.Args = append(main.Args,
		"--namespace="+hcp.Namespace,
		"--hosted-control-plane="+hcp.Name,
		"--platform-type="+string(hcp.Spec.Platform.Type),
	)
	if component.TunnelOffered(ctx) && ctx.Infra.KonnectivityHost != "" {
		main.Args = append(main.Args, "--konnectivity-address="+ctx.Infra.KonnectivityHost, fmt.Sprintf("--konnectivity-port=%d", ctx.Infra.KonnectivityPort))
	}
	if ctx.EnableCIDebugOutput {
		main.Args = append(main.Args, "--enable-ci-debug-output=true")
	}
	if ctx.RegistryOverrides != "" {
		main.Args = append(main.Args, "--registry-overrides="+ctx.RegistryOverrides)
	}
	if ctx.Environment.SizeTagging {
		main.Env = append(main.Env, corev1.EnvVar{Name: "ENABLE_SIZE_TAGGING", Value: "1"})
	}
	for _, env := range [][2]string{
		{releaseimage.EnvOperateOn, hcp.Spec.ReleaseImage},
		{"OPENSHIFT_RELEASE_VERSION", ctx.UserRelease.Version},
		{"KUBERNETES_VERSION", ctx.UserRelease.KubernetesVersion},
		// No flag: the operator is the release's, and one that was built before this knows no such flag.
		{images.Env, nodeImages(ctx)},
	} {
		main.Env = append(main.Env, corev1.EnvVar{Name: env[0], Value: env[1]})
	}
	return nil
}

// nodeImages are those of the hosted cluster's release that the operator runs on nodes. On an OpenShift payload the release's own
// operators bring all of them but the tunnel's agent.
func nodeImages(ctx component.WorkloadContext) string {
	var list []string
	for _, tag := range images.Tags() {
		image, ok := ctx.UserRelease.ImageFor(tag)
		if tag == images.TunnelAgent {
			if override := strings.TrimSpace(ctx.HCP.Annotations[hyperv1.KonnectivityAgentImageAnnotation]); override != "" {
				image, ok = override, true
			}
		} else if !ctx.UserRelease.Kubernetes && tag != images.MachineConfig {
			continue
		}
		if ok {
			list = append(list, tag+"="+image)
		}
	}
	return strings.Join(list, ",")
}
