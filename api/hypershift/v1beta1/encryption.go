package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
)

// SecretEncryptionType names a way to encrypt Secrets at rest.
//
// +kubebuilder:validation:Enum=kms;aescbc
type SecretEncryptionType string

const (
	// KMS encrypts with a key-management service of a cloud.
	KMS SecretEncryptionType = "kms"
	// AESCBC encrypts with a local AES-CBC key.
	AESCBC SecretEncryptionType = "aescbc"
)

// AESCBCKeySecretKey is the key, in the Secrets that AESCBCSpec names, of the 32 bytes of AES key.
const AESCBCKeySecretKey = "key"

// IBMCloudIAMAPIKeySecretKey is the key, in the Secret of unmanaged IBM Cloud KMS credentials, of the API key.
const IBMCloudIAMAPIKeySecretKey = "iam_apikey"

// SecretEncryptionSpec says how Secrets of the hosted cluster are encrypted in etcd.
type SecretEncryptionSpec struct {
	// type names the way to encrypt.
	//
	// +required
	Type SecretEncryptionType `json:"type"`

	// kms describes the key-management service when type is kms.
	//
	// +optional
	KMS *KMSSpec `json:"kms,omitempty"`

	// aescbc names the local keys when type is aescbc.
	//
	// +optional
	AESCBC *AESCBCSpec `json:"aescbc,omitempty"`
}

// AESCBCSpec names local keys.
type AESCBCSpec struct {
	// activeKey names a Secret whose key "key" holds the 32 bytes that new data is encrypted with.
	//
	// +required
	ActiveKey corev1.LocalObjectReference `json:"activeKey"`

	// backupKey names a Secret with the key that was active before. Old data is still read with it.
	//
	// +optional
	BackupKey *corev1.LocalObjectReference `json:"backupKey,omitempty"`
}

// KMSProvider names a key-management service.
//
// +kubebuilder:validation:Enum=IBMCloud;AWS;Azure
type KMSProvider string

const (
	// IBMCloud is Key Protect of IBM Cloud.
	IBMCloud KMSProvider = "IBMCloud"
	// AWS is the Key Management Service of AWS.
	AWS KMSProvider = "AWS"
	// Azure is Azure Key Vault.
	Azure KMSProvider = "Azure"
)

// KMSSpec is a union over provider.
type KMSSpec struct {
	// provider names the service.
	//
	// +required
	Provider KMSProvider `json:"provider"`

	// ibmcloud describes the keys when provider is IBMCloud.
	//
	// +optional
	IBMCloud *IBMCloudKMSSpec `json:"ibmcloud,omitempty"`

	// aws describes the keys when provider is AWS.
	//
	// +optional
	AWS *AWSKMSSpec `json:"aws,omitempty"`

	// azure describes the keys when provider is Azure.
	//
	// +optional
	Azure *AzureKMSSpec `json:"azure,omitempty"`
}

// IBMCloudKMSSpec describes keys of IBM Cloud.
type IBMCloudKMSSpec struct {
	// region is the region of the service.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Region string `json:"region"`

	// auth says how to log in to the service.
	//
	// +required
	Auth IBMCloudKMSAuthSpec `json:"auth"`

	// keyList lists the keys. The one with the highest keyVersion encrypts; all of them decrypt.
	//
	// +required
	// +kubebuilder:validation:MaxItems=100
	KeyList []IBMCloudKMSKeyEntry `json:"keyList"`
}

// IBMCloudKMSKeyEntry names one key of IBM Cloud.
type IBMCloudKMSKeyEntry struct {
	// crkID identifies the customer root key.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	CRKID string `json:"crkID"`

	// instanceID identifies the Key Protect instance.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	InstanceID string `json:"instanceID"`

	// correlationID is sent with every call, to find it again in logs.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	CorrelationID string `json:"correlationID"`

	// url is the endpoint of the Key Protect instance.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.startsWith('https://')",message="url must start with https://"
	URL string `json:"url"`

	// keyVersion orders the keys.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	KeyVersion int `json:"keyVersion"`
}

// IBMCloudKMSAuthType says whose account reads the keys.
//
// +kubebuilder:validation:Enum=Managed;Unmanaged
type IBMCloudKMSAuthType string

const (
	// IBMCloudKMSManagedAuth uses the account of the service provider.
	IBMCloudKMSManagedAuth IBMCloudKMSAuthType = "Managed"
	// IBMCloudKMSUnmanagedAuth uses the account of the user.
	IBMCloudKMSUnmanagedAuth IBMCloudKMSAuthType = "Unmanaged"
)

// IBMCloudKMSAuthSpec is a union over type.
type IBMCloudKMSAuthSpec struct {
	// type says whose account reads the keys.
	//
	// +required
	Type IBMCloudKMSAuthType `json:"type"`

	// unmanaged names the credentials when type is Unmanaged.
	//
	// +optional
	Unmanaged *IBMCloudKMSUnmanagedAuthSpec `json:"unmanaged,omitempty"`

	// managed is empty.
	//
	// +optional
	Managed *IBMCloudKMSManagedAuthSpec `json:"managed,omitempty"`
}

// IBMCloudKMSUnmanagedAuthSpec names credentials of the user.
type IBMCloudKMSUnmanagedAuthSpec struct {
	// credentials names a Secret whose key iam_apikey holds an API key.
	//
	// +required
	Credentials corev1.LocalObjectReference `json:"credentials"`
}

// IBMCloudKMSManagedAuthSpec is empty.
type IBMCloudKMSManagedAuthSpec struct{}

// AWSKMSSpec describes keys of AWS.
type AWSKMSSpec struct {
	// region is the region of the keys.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Region string `json:"region"`

	// activeKey encrypts new data.
	//
	// +required
	ActiveKey AWSKMSKeyEntry `json:"activeKey"`

	// backupKey was active before. Old data is still read with it.
	//
	// +optional
	BackupKey *AWSKMSKeyEntry `json:"backupKey,omitempty"`

	// auth says how to log in to the service.
	//
	// +required
	Auth AWSKMSAuthSpec `json:"auth"`
}

// AWSKMSKeyEntry names one key of AWS.
type AWSKMSKeyEntry struct {
	// arn is the resource name of the key.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.startsWith('arn:')",message="arn must start with arn:"
	ARN string `json:"arn"`
}

// AWSKMSAuthSpec says how to log in to the service.
type AWSKMSAuthSpec struct {
	// awsKms is the ARN of the role to assume; it must be allowed to encrypt and decrypt with the keys.
	//
	// +required
	// +kubebuilder:validation:MaxLength=2048
	AWSKMSRoleARN string `json:"awsKms"`
}

// AzureKeyVaultAccessType says on which network a key vault is reached.
//
// +kubebuilder:validation:Enum=Public;Private;""
type AzureKeyVaultAccessType string

const (
	// AzureKeyVaultPublic reaches the vault on the internet.
	AzureKeyVaultPublic AzureKeyVaultAccessType = "Public"
	// AzureKeyVaultPrivate reaches the vault by a private endpoint.
	AzureKeyVaultPrivate AzureKeyVaultAccessType = "Private"
)

// AzureKeyVaultType names a kind of key vault.
//
// +kubebuilder:validation:Enum=KeyVault;ManagedHSM
type AzureKeyVaultType string

const (
	// AzureKeyVault is a Key Vault.
	AzureKeyVault AzureKeyVaultType = "KeyVault"
	// AzureManagedHSM is a Managed HSM.
	AzureManagedHSM AzureKeyVaultType = "ManagedHSM"
)

// AzureKMSSpec describes keys of Azure.
//
// +kubebuilder:validation:XValidation:rule="!has(self.backupKey) || self.backupKey.keyVaultName == self.activeKey.keyVaultName",message="backupKey must be in the key vault of activeKey"
// +kubebuilder:validation:XValidation:rule="(has(self.keyVaultType) ? self.keyVaultType : 'KeyVault') == (has(oldSelf.keyVaultType) ? oldSelf.keyVaultType : 'KeyVault')",message="keyVaultType is immutable"
// +kubebuilder:validation:XValidation:rule="!(has(self.kms) && has(self.workloadIdentity))",message="kms and workloadIdentity cannot both be set"
// +kubebuilder:validation:XValidation:rule="has(self.kms) || has(self.workloadIdentity)",message="one of kms and workloadIdentity is required"
// +kubebuilder:validation:XValidation:rule="has(self.kms) == has(oldSelf.kms)",message="kms cannot be added or removed after creation"
type AzureKMSSpec struct {
	// activeKey encrypts new data.
	//
	// +required
	ActiveKey AzureKMSKey `json:"activeKey"`

	// backupKey was active before. Old data is still read with it. It is in the same vault.
	//
	// +optional
	BackupKey *AzureKMSKey `json:"backupKey,omitempty"`

	// kms is the managed identity that reads the keys.
	//
	// +optional
	KMS *ManagedIdentity `json:"kms,omitempty"`

	// workloadIdentity is the workload identity that reads the keys.
	//
	// +optional
	WorkloadIdentity *WorkloadIdentity `json:"workloadIdentity,omitempty"`

	// keyVaultAccess says on which network the vault is reached. Unset means Public.
	//
	// +optional
	KeyVaultAccess AzureKeyVaultAccessType `json:"keyVaultAccess,omitempty"`

	// keyVaultType names the kind of vault. Unset means KeyVault. It cannot change.
	//
	// +optional
	KeyVaultType AzureKeyVaultType `json:"keyVaultType,omitempty"`
}

// AzureKMSKey names one key of Azure.
type AzureKMSKey struct {
	// keyVaultName is the name of the vault.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	KeyVaultName string `json:"keyVaultName"`

	// keyName is the name of the key.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	KeyName string `json:"keyName"`

	// keyVersion is the version of the key.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	KeyVersion string `json:"keyVersion"`
}
