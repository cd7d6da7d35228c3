package hostedcontrolplane

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
)

// validAzureKMS says what is known of the key in a key vault that Secrets are encrypted with; nil outside of Azure, and for a release of Kubernetes, which
// has no such provider. Only the KMS provider beside kube-apiserver asks the vault: whether it may use the key shows in whether kube-apiserver gets ready.
func validAzureKMS(obs Observed) *metav1.Condition {
	const t = hyperv1.ValidAzureKMSConfig
	azure, encryption := obs.HCP.Spec.Platform.Azure, obs.HCP.Spec.SecretEncryption
	if obs.Flavour != openShift || obs.HCP.Spec.Platform.Type != hyperv1.AzurePlatform || azure == nil {
		return nil
	}
	c := conditions.True(t, hyperv1.AsExpectedReason, "KMS configuration accepted; Key Vault access is validated at runtime by the KMS provider")
	switch {
	case encryption == nil || encryption.KMS == nil || encryption.KMS.Azure == nil:
		c = statusUnknown(t, "Azure KMS is not configured")
	case azure.AzureAuthenticationConfig.AzureAuthenticationConfigType != hyperv1.AzureAuthenticationTypeManagedIdentities:
	case encryption.KMS.Azure.KeyVaultAccess == hyperv1.AzureKeyVaultPrivate:
		c = statusUnknown(t, "Private Key Vault endpoint is not reachable from the management cluster")
	default:
		c = statusUnknown(t, "Key Vault access is validated at runtime by the KMS provider: if kube-apiserver does not get ready, check that the managed identity of kms may use the key")
	}
	return &c
}
