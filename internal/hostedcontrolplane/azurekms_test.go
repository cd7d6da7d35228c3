package hostedcontrolplane

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestValidAzureKMS(t *testing.T) {
	kms := func(access hyperv1.AzureKeyVaultAccessType) *hyperv1.SecretEncryptionSpec {
		return &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{Provider: hyperv1.Azure, Azure: &hyperv1.AzureKMSSpec{KeyVaultAccess: access}}}
	}
	const workload, managed = hyperv1.AzureAuthenticationTypeWorkloadIdentities, hyperv1.AzureAuthenticationTypeManagedIdentities
	for name, tc := range map[string]struct {
		as         hyperv1.AzureAuthenticationType
		encryption *hyperv1.SecretEncryptionSpec
		want       metav1.ConditionStatus
		message    string
	}{
		"When no key is named it should be unknown":                       {as: workload, want: metav1.ConditionUnknown, message: "Azure KMS is not configured"},
		"When keys are of the user's own it should not be of a vault":     {as: workload, encryption: &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC}, want: metav1.ConditionUnknown, message: "Azure KMS is not configured"},
		"When workloads have identities it should be accepted":            {as: workload, encryption: kms(""), want: metav1.ConditionTrue, message: "KMS configuration accepted; Key Vault access is validated at runtime by the KMS provider"},
		"When the vault is private it should not be asked":                {as: managed, encryption: kms(hyperv1.AzureKeyVaultPrivate), want: metav1.ConditionUnknown, message: "Private Key Vault endpoint is not reachable from the management cluster"},
		"When identities are managed it should say who asks, and of what": {as: managed, encryption: kms(hyperv1.AzureKeyVaultPublic), want: metav1.ConditionUnknown, message: "Key Vault access is validated at runtime by the KMS provider: if kube-apiserver does not get ready, check that the managed identity of kms may use the key"},
	} {
		t.Run(name, func(t *testing.T) {
			hcp := &hyperv1.HostedControlPlane{}
			hcp.Spec.Platform.Type, hcp.Spec.SecretEncryption = hyperv1.AzurePlatform, tc.encryption
			hcp.Spec.Platform.Azure = &hyperv1.AzurePlatformSpec{AzureAuthenticationConfig: hyperv1.AzureAuthenticationConfiguration{AzureAuthenticationConfigType: tc.as}}
			g := NewWithT(t)
			g.Expect(validAzureKMS(Observed{HCP: hcp, Flavour: openShift})).To(HaveValue(And(HaveField("Type", hyperv1.ValidAzureKMSConfig), HaveField("Status", tc.want), HaveField("Message", tc.message))))
			g.Expect(validAzureKMS(Observed{HCP: hcp, Flavour: kubernetes})).To(BeNil())
		})
	}
	t.Run("When the cluster is not on Azure it should say nothing", func(t *testing.T) {
		NewWithT(t).Expect(validAzureKMS(Observed{HCP: &hyperv1.HostedControlPlane{}, Flavour: openShift})).To(BeNil())
	})
}
