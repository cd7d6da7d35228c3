package kit

import (
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

// PrivateKeyVault is the DNS name of the vault with the keys of the hosted cluster's Secrets, where it has no public address and is reached by the
// control plane's router; empty where it is not so.
func PrivateKeyVault(ctx component.WorkloadContext) string {
	e, azure := ctx.HCP.Spec.SecretEncryption, ctx.HCP.Spec.Platform.Azure
	if e == nil || e.KMS == nil || e.KMS.Azure == nil || azure == nil || e.KMS.Azure.KeyVaultAccess != hyperv1.AzureKeyVaultPrivate || !ARO(ctx) {
		return ""
	}
	kind := "vault"
	if e.KMS.Azure.KeyVaultType == hyperv1.AzureManagedHSM {
		kind = "managedhsm"
	}
	domain := "azure.net"
	switch azure.Cloud {
	case "AzureUSGovernmentCloud":
		domain = "usgovcloudapi.net"
	case "AzureChinaCloud":
		domain = "azure.cn"
	}
	return e.KMS.Azure.ActiveKey.KeyVaultName + "." + kind + "." + domain
}
