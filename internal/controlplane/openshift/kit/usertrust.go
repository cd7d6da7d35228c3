package kit

import (
	corev1 "k8s.io/api/core/v1"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
)

// UserTrust has the first container of a pod trust the authorities of spec.additionalTrustBundle.
func UserTrust(ctx component.WorkloadContext, pod *corev1.PodSpec) {
	bundle := ctx.HCP.Spec.AdditionalTrustBundle
	if bundle == nil || len(pod.Containers) == 0 {
		return
	}
	volume := component.ConfigMapVolume("trusted-ca", bundle.Name)
	volume.ConfigMap.Items = []corev1.KeyToPath{{Key: names.CABundleKey, Path: "user-ca-bundle.pem"}}
	component.AddVolume(pod, pod.Containers[0].Name, volume, component.TrustedDir)
}
