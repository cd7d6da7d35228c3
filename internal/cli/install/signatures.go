package install

import corev1 "k8s.io/api/core/v1"

const (
	signaturePolicyName   = "image-signature-policy" // ConfigMap and volume
	signaturePolicyKey    = "policy.yaml"
	signaturePolicyFolder = "/etc/hypershift/image-signature-policy"
	signaturePolicyHash   = "hypershift.openshift.io/image-signature-policy-hash"
)

func signaturePolicy(o Options) readOnce {
	return readOnce{content: o.SignaturePolicy, configMap: signaturePolicyName, key: signaturePolicyKey, volume: signaturePolicyName, folder: signaturePolicyFolder, hash: signaturePolicyHash}
}

// requireSignatures makes the first container of a Pod heed the policy.
func requireSignatures(o Options, template *corev1.PodTemplateSpec) {
	if c := signaturePolicy(o).mount(template); c != nil {
		c.Args = append(c.Args, "--image-signature-policy="+signaturePolicyFolder+"/"+signaturePolicyKey)
	}
}
