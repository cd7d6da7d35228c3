package install

import (
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The policy of signatures is a ConfigMap in the namespace of each operator, which reads it when it starts.
const (
	signaturePolicyName   = "image-signature-policy" // ConfigMap and volume
	signaturePolicyKey    = "policy.yaml"
	signaturePolicyFolder = "/etc/hypershift/image-signature-policy"
	// signaturePolicyHash makes the Pods start anew when the policy changes.
	signaturePolicyHash = "hypershift.openshift.io/image-signature-policy-hash"
)

// signaturePolicy is the ConfigMap in a namespace, nothing without a policy.
func signaturePolicy(o Options, namespace string) []client.Object {
	if len(o.SignaturePolicy) == 0 {
		return nil
	}
	return []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: signaturePolicyName, Namespace: namespace},
		Data:       map[string]string{signaturePolicyKey: string(o.SignaturePolicy)},
	}}
}

// requireSignatures makes the first container of a Pod heed the policy.
func requireSignatures(o Options, template *corev1.PodTemplateSpec) {
	if len(o.SignaturePolicy) == 0 {
		return
	}
	sum := sha256.Sum256(o.SignaturePolicy)
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	template.Annotations[signaturePolicyHash] = hex.EncodeToString(sum[:8])
	template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: signaturePolicyName, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: signaturePolicyName}},
	}})
	c := &template.Spec.Containers[0]
	c.Args = append(c.Args, "--image-signature-policy="+signaturePolicyFolder+"/"+signaturePolicyKey)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: signaturePolicyName, MountPath: signaturePolicyFolder, ReadOnly: true})
}
