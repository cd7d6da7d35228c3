package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SecretEncryptionProvider names where a key is.
//
// +kubebuilder:validation:Enum=Azure;AWS;IBMCloud;AESCBC
type SecretEncryptionProvider string

const (
	// SecretEncryptionProviderAzure is Azure Key Vault.
	SecretEncryptionProviderAzure SecretEncryptionProvider = "Azure"
	// SecretEncryptionProviderAWS is the Key Management Service of AWS.
	SecretEncryptionProviderAWS SecretEncryptionProvider = "AWS"
	// SecretEncryptionProviderIBMCloud is Key Protect of IBM Cloud.
	SecretEncryptionProviderIBMCloud SecretEncryptionProvider = "IBMCloud"
	// SecretEncryptionProviderAESCBC is a Secret.
	SecretEncryptionProviderAESCBC SecretEncryptionProvider = "AESCBC"
)

// SecretEncryptionStatus says what data is encrypted with, and how far a change of key is.
//
// +kubebuilder:validation:MinProperties=1
type SecretEncryptionStatus struct {
	// activeKey is the key that all data is encrypted with.
	//
	// +optional
	ActiveKey SecretEncryptionKeyStatus `json:"activeKey,omitzero"`

	// targetKey is the key that data is being encrypted with again. Unset when no change is under way.
	//
	// +optional
	TargetKey SecretEncryptionKeyStatus `json:"targetKey,omitzero"`

	// history lists changes of key, newest first, the last five of them.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	History []EncryptionMigrationHistory `json:"history,omitempty"`
}

// SecretEncryptionKeyStatus is a union over provider.
//
// +kubebuilder:validation:XValidation:rule="self.provider == 'Azure' ? has(self.azure) : !has(self.azure)",message="azure is required when provider is Azure, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="self.provider == 'AWS' ? has(self.aws) : !has(self.aws)",message="aws is required when provider is AWS, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="self.provider == 'IBMCloud' ? has(self.ibmCloud) : !has(self.ibmCloud)",message="ibmCloud is required when provider is IBMCloud, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="self.provider == 'AESCBC' ? has(self.aescbc) : !has(self.aescbc)",message="aescbc is required when provider is AESCBC, and forbidden otherwise"
type SecretEncryptionKeyStatus struct {
	// provider names where the key is.
	//
	// +required
	Provider SecretEncryptionProvider `json:"provider"`

	// azure is the key when provider is Azure.
	//
	// +optional
	Azure *AzureKMSKey `json:"azure,omitempty"`

	// aws is the key when provider is AWS.
	//
	// +optional
	AWS *AWSKMSKeyEntry `json:"aws,omitempty"`

	// ibmCloud is the key when provider is IBMCloud.
	//
	// +optional
	IBMCloud *IBMCloudKMSKeyEntry `json:"ibmCloud,omitempty"`

	// aescbc is the key when provider is AESCBC.
	//
	// +optional
	AESCBC *AESCBCKeyStatus `json:"aescbc,omitempty"`
}

// AESCBCKeyStatus names a local key.
type AESCBCKeyStatus struct {
	// secret names the Secret with the key.
	//
	// +required
	Secret EncryptionSecretReference `json:"secret"`

	// dataHash is the hash of the bytes of the key, so that a change of them is noticed.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	DataHash string `json:"dataHash"`
}

// EncryptionSecretReference names a Secret.
type EncryptionSecretReference struct {
	// name is the name of the Secret.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')`,message="name must be the name of a Secret: lower-case letters, digits, '-' and '.'"
	Name string `json:"name"`
}

// EncryptionMigrationState says how far a change of key is.
//
// +kubebuilder:validation:Enum=ReadOnlyDeploy;WritePromote;Migrating;Completed;Interrupted
type EncryptionMigrationState string

const (
	// EncryptionMigrationReadOnlyDeploy teaches API servers to read with the new key.
	EncryptionMigrationReadOnlyDeploy EncryptionMigrationState = "ReadOnlyDeploy"
	// EncryptionMigrationWritePromote teaches API servers to write with the new key.
	EncryptionMigrationWritePromote EncryptionMigrationState = "WritePromote"
	// EncryptionMigrationMigrating writes old data again.
	EncryptionMigrationMigrating EncryptionMigrationState = "Migrating"
	// EncryptionMigrationCompleted means that all data is encrypted with the new key.
	EncryptionMigrationCompleted EncryptionMigrationState = "Completed"
	// EncryptionMigrationInterrupted means that another change took over.
	EncryptionMigrationInterrupted EncryptionMigrationState = "Interrupted"
)

// EncryptionMigrationHistory is one change of key.
type EncryptionMigrationHistory struct {
	// from is the old key.
	//
	// +required
	From EncryptionKeyReference `json:"from"`

	// to is the new key.
	//
	// +required
	To EncryptionKeyReference `json:"to"`

	// state says how far the change is.
	//
	// +required
	State EncryptionMigrationState `json:"state"`

	// startedTime is when the change began.
	//
	// +required
	StartedTime metav1.Time `json:"startedTime"`

	// completionTime is when it ended, well or not. Unset while it is under way.
	//
	// +optional
	CompletionTime metav1.Time `json:"completionTime,omitzero"`
}

// EncryptionKeyReference tells keys apart without saying more about them.
type EncryptionKeyReference struct {
	// provider names where the key is.
	//
	// +required
	Provider SecretEncryptionProvider `json:"provider"`

	// fingerprint is a hash of what identifies the key there.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Fingerprint string `json:"fingerprint"`
}
