// Package awsnodeterminationhandler is the component that drains nodes which AWS is about to take away.
package awsnodeterminationhandler

import (
	"cmp"
	"embed"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component.
const Name = "aws-node-termination-handler"

// minter keeps the token for the hosted API server, and the certificate authority that it is known by, where programs in a pod look for them.
const minter = "token-minter-kube"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{}).
		WithPredicate(wanted).
		InjectTokenMinterContainer(component.TokenMinter{
			Type: component.CloudToken, ServiceAccountNamespace: "kube-system", ServiceAccountName: "capa-controller-manager", KubeconfigVolume: "svc-kubeconfig",
		}).
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("secret.yaml", component.AdaptManifest(adaptCredentials)).
		Build()
}

// aws is spec.platform.aws; empty when there is none.
func aws(hcp *hyperv1.HostedControlPlane) hyperv1.AWSPlatformSpec {
	if of := hcp.Spec.Platform.AWS; of != nil {
		return *of
	}
	return hyperv1.AWSPlatformSpec{}
}

// queue is where AWS announces what it takes away.
func queue(hcp *hyperv1.HostedControlPlane) string {
	return cmp.Or(ptr.Deref(aws(hcp).TerminationHandlerQueueURL, ""), hcp.Annotations[hyperv1.AWSTerminationHandlerQueueURLAnnotation])
}

func wanted(ctx component.WorkloadContext) (bool, error) {
	if ctx.HCP.Spec.Platform.Type != hyperv1.AWSPlatform || aws(ctx.HCP).RolesRef.NodePoolManagementARN == "" || queue(ctx.HCP) == "" {
		return false, nil
	}
	return component.HasKubeconfig(ctx, names.ServiceNetworkKubeconfig)
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	pod := &d.Spec.Template.Spec
	main := component.Container(pod, Name)
	kit.SetEnv(main, "AWS_REGION", aws(ctx.HCP).Region)
	main.Env = append(main.Env, component.AWSEndpoints(ctx)...)
	kit.SetEnv(main, "QUEUE_URL", queue(ctx.HCP))
	kube := component.Container(pod, minter)
	for i := range kube.Args {
		kube.Args[i] = strings.ReplaceAll(kube.Args[i], "$(AUDIENCE)", shellWord(ctx.HCP.Spec.IssuerURL))
	}
	if ctx.HCP.Annotations[hyperv1.DisableAWSNodeTerminationHandlerAnnotation] == "true" {
		d.Spec.Replicas = ptr.To[int32](0)
	}
	return nil
}

func adaptCredentials(ctx component.WorkloadContext, secret *corev1.Secret) error {
	secret.Data = map[string][]byte{"credentials": []byte(kit.AWSCredentials(aws(ctx.HCP).RolesRef.NodePoolManagementARN))}
	return nil
}

// plainWord is what a shell takes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9:/._~%+=@,-]+$`)

// shellWord is a text as one word of a shell script.
func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
