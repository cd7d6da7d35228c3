// Package karpenteroperator is the component that runs the operator of Karpenter, which makes the machines of a hosted cluster as its pods need them.
// The hypershift-operator deploys it.
package karpenteroperator

import (
	"cmp"
	"embed"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/endpoints"
)

// Name of the component.
const Name = "karpenter-operator"

const (
	credentials = "karpenter-credentials" // Secret
	kubeconfig  = "hcco-kubeconfig"       // Secret
)

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	b := component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithPredicate(wanted).
		InjectAvailabilityProber(component.AvailabilityProber{}).
		InjectTokenMinterContainer(component.TokenMinter{
			Type: component.CloudToken, ServiceAccountNamespace: "kube-system", ServiceAccountName: "karpenter", KubeconfigSecret: names.ServiceNetworkKubeconfig,
		}).
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("credentials.yaml", component.AdaptManifest(adaptCredentials))
	return kit.BelongToHostedCluster(b, "credentials.yaml", "podmonitor.yaml", "role.yaml", "rolebinding.yaml", "serviceaccount.yaml").Build()
}

// Asked says whether a hosted cluster is to have Karpenter, and has come up once.
func Asked(hcp *hyperv1.HostedControlPlane) bool {
	node := hcp.Spec.AutoNode
	return node != nil && node.Provisioner.Name == hyperv1.ProvisionerKarpenter && hcp.Status.KubeConfig != nil
}

// Reaches says whether a hosted cluster is to have Karpenter, and waits for the kubeconfig by which that program of it works.
func Reaches(ctx component.WorkloadContext, program, kubeconfig string) (bool, error) {
	if !Asked(ctx.HCP) {
		return false, nil
	}
	there, err := component.HasKubeconfig(ctx, kubeconfig)
	if err == nil && !there {
		return false, fmt.Errorf("waiting for Secret %s/%s, by which %s reaches the hosted cluster", ctx.HCP.Namespace, kubeconfig, program)
	}
	return there, err
}

func wanted(ctx component.WorkloadContext) (bool, error) {
	return Reaches(ctx, "the operator of Karpenter", kubeconfig)
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	kit.RefersToHostedCluster(ctx, d)
	pod := &d.Spec.Template.Spec
	main := component.Container(pod, Name)
	if ctx.OperatorImage == "" {
		return fmt.Errorf("no image for the operator of Karpenter: Context.OperatorImage is empty")
	}
	main.Image = ctx.OperatorImage
	main.Args = append(main.Args, "--hypershift-operator-image="+ctx.OperatorImage, "--ignition-endpoint="+cmp.Or(ctx.Infra.IgnitionHost, endpoints.IgnitionHost(ctx.HCP)))
	if aws := ctx.HCP.Spec.Platform.AWS; aws != nil && ctx.HCP.Spec.Platform.Type == hyperv1.AWSPlatform {
		main.Args = append(main.Args, "--control-plane-operator-image="+ctx.OperatorImage)
		kit.Mount(pod, Name, component.SecretVolume("provider-creds", credentials), "/etc/provider")
		kit.SetEnv(main, "AWS_SHARED_CREDENTIALS_FILE", "/etc/provider/credentials")
		kit.SetEnv(main, "AWS_REGION", aws.Region)
		kit.SetEnv(main, "AWS_SDK_LOAD_CONFIG", "true")
		main.Env = append(main.Env, component.AWSEndpoints(ctx)...)
	}
	if ctx.Environment.RHOBSMonitoring {
		kit.SetEnv(main, "RHOBS_MONITORING", "1")
	}
	component.ManagementProxy(ctx, main)
	return nil
}

func adaptCredentials(ctx component.WorkloadContext, secret *corev1.Secret) error {
	role := ""
	if node := ctx.HCP.Spec.AutoNode; node != nil && node.Provisioner.Karpenter != nil && node.Provisioner.Karpenter.AWS != nil {
		role = node.Provisioner.Karpenter.AWS.RoleARN
	}
	secret.Data = map[string][]byte{"credentials": []byte(kit.AWSCredentials(role))}
	return nil
}
