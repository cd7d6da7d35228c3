package cloud

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"hcp.internal/platform/internal/contract/names"
)

// TokenDir is where the token of a ServiceAccount of the hosted cluster is, by which a program proves to a cloud who it is.
const TokenDir = "/var/run/secrets/openshift/serviceaccount"

// Token is one that a container beside the provider keeps fresh.
type Token struct {
	// Container that keeps it, and the Volume that it is in.
	Container, Volume string
	// Account is the ServiceAccount in namespace kube-system of the hosted cluster.
	Account string
}

// MintToken gives the provider a token.
func MintToken(pod *corev1.PodSpec, t Token) {
	const kubeconfig = "svc-kubeconfig"
	main := &pod.Containers[0]
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: t.Volume, MountPath: TokenDir})
	pod.Volumes = append(pod.Volumes,
		corev1.Volume{Name: t.Volume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
		corev1.Volume{Name: kubeconfig, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: names.ServiceNetworkKubeconfig}}})
	pod.Containers = append(pod.Containers, corev1.Container{
		Name: t.Container, Image: "token-minter", Command: []string{"/usr/bin/control-plane-operator", "token-minter"},
		Args: []string{
			"--token-audience=openshift", "--service-account-namespace=kube-system", "--service-account-name=" + t.Account,
			"--token-file=" + TokenDir + "/token", "--kubeconfig=/etc/kubernetes/kubeconfig",
		},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("30Mi"),
		}},
		VolumeMounts: []corev1.VolumeMount{{Name: t.Volume, MountPath: TokenDir}, {Name: kubeconfig, MountPath: "/etc/kubernetes"}},
	})
}
