package kubeapiserver

import (
	"cmp"
	"crypto/md5" // names a signer, protects nothing
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/controlplane/settings"
	"hcp.internal/platform/internal/pki"
)

// The webhooks that give pods of the hosted cluster an identity in the cloud; also the names of their ServiceAccounts.
const (
	awsWebhook   = "aws-pod-identity-webhook"
	azureWebhook = "azure-workload-identity-webhook"

	webhookNamespace  = "openshift-authentication"
	webhookCerts      = "/var/run/app/certs"
	webhookKubeconfDr = "/var/run/app/kubeconfig"
)

func addWebhooks(ctx component.WorkloadContext, pod *corev1.PodSpec) {
	platform := ctx.HCP.Spec.Platform
	switch {
	case platform.Type == hyperv1.AWSPlatform && platform.AWS != nil:
		pod.Containers = append(pod.Containers, awsWebhookContainer(ctx.HCP))
		pod.Volumes = append(pod.Volumes, component.SecretVolume(awsWebhook+"-serving-certs", awsWebhook+"-serving-cert"),
			component.SecretVolume(awsWebhook+"-kubeconfig", awsWebhook+"-kubeconfig"))
	case platform.Type == hyperv1.AzurePlatform && platform.Azure != nil:
		pod.Containers = append(pod.Containers, azureWebhookContainer(ctx.HCP))
		pod.Volumes = append(pod.Volumes, component.SecretVolume("azure-wi-webhook-serving-certs", azureWebhook+"-serving-cert"),
			component.SecretVolume("azure-wi-webhook-kubeconfig", azureWebhook+"-kubeconfig"))
	}
}

func awsWebhookContainer(hcp *hyperv1.HostedControlPlane) corev1.Container {
	return corev1.Container{
		Name: awsWebhook, Image: awsWebhook, Resources: requests("10m", "25Mi"),
		Command: append([]string{
			"/usr/bin/aws-pod-identity-webhook",
			"--annotation-prefix=eks.amazonaws.com",
			"--in-cluster=false",
			"--kubeconfig=" + webhookKubeconfDr + "/kubeconfig",
			"--logtostderr",
			"--port=4443",
			"--aws-default-region=" + hcp.Spec.Platform.AWS.Region,
			"--tls-cert=" + webhookCerts + "/tls.crt",
			"--tls-key=" + webhookCerts + "/tls.key",
			"--token-audience=openshift",
		}, kit.TLSOf(hcp).Args()...),
		VolumeMounts: []corev1.VolumeMount{
			{Name: awsWebhook + "-serving-certs", MountPath: webhookCerts}, {Name: awsWebhook + "-kubeconfig", MountPath: webhookKubeconfDr},
		},
	}
}

// azureWebhookContainer waits for the API server, without which the webhook ends.
func azureWebhookContainer(hcp *hyperv1.HostedControlPlane) corev1.Container {
	flags := []string{
		"--webhook-cert-dir=" + webhookCerts, "--health-addr=:9440", "--audience=api://AzureADTokenExchange",
		"--kubeconfig=" + webhookKubeconfDr + "/kubeconfig", "--metrics-addr=:9441", "--log-level=info",
	}
	flags = append(append(flags, kit.TLSOf(hcp).Args()...), "--disable-cert-rotation")
	script := fmt.Sprintf(`while ! curl --silent --fail --insecure --output /dev/null https://localhost:%d/version; do sleep 2; done
exec /usr/bin/azure-workload-identity-webhook %s
`, settings.APIPodPort(hcp), strings.Join(flags, " "))
	azure := hcp.Spec.Platform.Azure
	probe := func(path string, delay, period, failures int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{HTTPGet: httpGet(path, 9440, corev1.URISchemeHTTP)},
			InitialDelaySeconds: delay, PeriodSeconds: period, FailureThreshold: failures,
		}
	}
	return corev1.Container{
		Name: azureWebhook, Image: azureWebhook, Resources: requests("10m", "25Mi"),
		Command:      []string{"/bin/sh", "-ec", script},
		Env:          []corev1.EnvVar{{Name: "AZURE_TENANT_ID", Value: azure.TenantID}, {Name: "AZURE_ENVIRONMENT", Value: cmp.Or(azure.Cloud, "AzurePublicCloud")}},
		StartupProbe: probe("/healthz", 0, 10, 30), LivenessProbe: probe("/healthz", 0, 20, 0), ReadinessProbe: probe("/readyz", 5, 10, 0),
		VolumeMounts: []corev1.VolumeMount{
			{Name: "azure-wi-webhook-serving-certs", MountPath: webhookCerts}, {Name: "azure-wi-webhook-kubeconfig", MountPath: webhookKubeconfDr},
		},
	}
}

// webhookKubeconfig fills in the kubeconfig by which a webhook acts as its ServiceAccount at the server beside it.
func webhookKubeconfig(account string) component.ManifestOption {
	return component.AdaptManifest(func(ctx component.WorkloadContext, secret *corev1.Secret) error {
		if ctx.Unsigned {
			return nil
		}
		live := &corev1.Secret{}
		if err := ctx.Reader.Get(ctx.Context, client.ObjectKeyFromObject(secret), live); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading Secret %s: %w", secret.Name, err)
		}
		signer := &corev1.Secret{}
		err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: pki.ClusterSigner}, signer)
		if apierrors.IsNotFound(err) && ctx.Preview() {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading signer %s: %w", pki.ClusterSigner, err)
		}
		cert, key, err := ctx.Signer.ClientCertificate(ctx.Context, ctx.HCP, component.Subject{
			CommonName:    "system:serviceaccount:" + webhookNamespace + ":" + account,
			Organizations: []string{"system:serviceaccounts", "system:serviceaccounts:" + webhookNamespace},
		}, live.Data)
		if err != nil {
			return fmt.Errorf("signing the certificate of %s: %w", secret.Name, err)
		}
		trust, err := kit.RootCA(ctx)
		if err != nil {
			return err
		}
		kubeconfig, err := pki.RenderKubeconfig(localURL(ctx), trust, cert, key)
		if err != nil {
			return err
		}
		hash := md5.Sum(append(append([]byte{}, signer.Data[pki.CACertKey]...), signer.Data[pki.CAKeyKey]...))
		if secret.Annotations == nil {
			secret.Annotations = map[string]string{}
		}
		secret.Annotations[pki.CAHashAnnotation] = hex.EncodeToString(hash[:])
		secret.Data = map[string][]byte{pki.KubeconfigKey: kubeconfig, pki.CACertKey: signer.Data[pki.CACertKey], pki.TLSCertKey: cert, pki.TLSKeyKey: key}
		return nil
	})
}

func requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}}
}

func httpGet(path string, port int32, scheme corev1.URIScheme) *corev1.HTTPGetAction {
	return &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(port), Scheme: scheme}
}

func memoryVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}}
}
