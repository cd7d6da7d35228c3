package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EtcdBackupCompleted is the condition that says how a backup went; its reasons are BackupSucceeded, BackupFailed,
// BackupInProgress, BackupRejected and EtcdUnhealthy.
const EtcdBackupCompleted = "BackupCompleted"

// EtcdBackupVerified is the condition that says whether a backup was read back from its storage; its reasons are BackupReadBack, BackupRestorable,
// BackupNotReadBack and BackupUnreadable.
const EtcdBackupVerified = "BackupVerified"

// EtcdBackupScheduled is the condition of a schedule of backups; its reasons are BackupScheduled and InvalidSchedule.
const EtcdBackupScheduled = "BackupScheduled"

// HCPEtcdBackup asks for one snapshot of the etcd of the control plane whose namespace it is in
// (TechPreview).
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hcpetcdbackups,shortName=hcpetcdbk,scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Completed",type="string",JSONPath=".status.conditions[?(@.type==\"BackupCompleted\")].status",description="Whether the backup ended well"
// +kubebuilder:printcolumn:name="URL",type="string",JSONPath=".status.snapshotURL",description="Where the snapshot is"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type HCPEtcdBackup struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says where the snapshot goes. It cannot change.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable; make another HCPEtcdBackup"
	Spec HCPEtcdBackupSpec `json:"spec,omitzero"`

	// status says how it went.
	//
	// +optional
	Status HCPEtcdBackupStatus `json:"status,omitzero"`
}

// HCPEtcdBackupList is a list of HCPEtcdBackups.
//
// +kubebuilder:object:root=true
type HCPEtcdBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HCPEtcdBackup `json:"items"`
}

// HCPEtcdBackupSpec says where the snapshot goes.
type HCPEtcdBackupSpec struct {
	// storage says where the snapshot goes.
	//
	// +required
	Storage HCPEtcdBackupStorage `json:"storage"`
}

// HCPEtcdBackupStorageType names a kind of object storage.
//
// +kubebuilder:validation:Enum=S3;AzureBlob
type HCPEtcdBackupStorageType string

const (
	// S3BackupStorage is Amazon S3.
	S3BackupStorage HCPEtcdBackupStorageType = "S3"
	// AzureBlobBackupStorage is Azure Blob Storage.
	AzureBlobBackupStorage HCPEtcdBackupStorageType = "AzureBlob"
)

// HCPEtcdBackupStorage is a union over storageType.
//
// +kubebuilder:validation:XValidation:rule="self.storageType == 'S3' ? has(self.s3) : !has(self.s3)",message="s3 is required when storageType is S3, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="self.storageType == 'AzureBlob' ? has(self.azureBlob) : !has(self.azureBlob)",message="azureBlob is required when storageType is AzureBlob, and forbidden otherwise"
type HCPEtcdBackupStorage struct {
	// storageType names the kind of storage.
	//
	// +required
	StorageType HCPEtcdBackupStorageType `json:"storageType"`

	// s3 describes the bucket when storageType is S3.
	//
	// +optional
	S3 *HCPEtcdBackupS3 `json:"s3,omitempty"`

	// azureBlob describes the container when storageType is AzureBlob.
	//
	// +optional
	AzureBlob *HCPEtcdBackupAzureBlob `json:"azureBlob,omitempty"`
}

// AWSKMSKeyARN is the ARN of a KMS key.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule="self.matches('^arn:(aws|aws-cn|aws-us-gov):kms:[a-z0-9-]+:[0-9]{12}:key/[a-zA-Z0-9-]+$')",message="must look like arn:aws:kms:us-east-1:123456789012:key/id"
type AWSKMSKeyARN string

// AzureEncryptionKeyURL is the URL of a key in a key vault.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=210
// +kubebuilder:validation:XValidation:rule=`self.matches('^https://[a-zA-Z0-9-]+\\.(vault\\.(azure\\.net|usgovcloudapi\\.net|azure\\.cn|microsoftazure\\.de|sovcloud-api\\.fr)|managedhsm\\.(azure\\.net|usgovcloudapi\\.net|azure\\.cn|microsoftazure\\.de|sovcloud-api\\.fr))/keys/[a-zA-Z0-9-]+(/[a-zA-Z0-9]+)?$')`,message="must look like https://{vault}.vault.azure.net/keys/{key}/{version}"
type AzureEncryptionKeyURL string

// HCPEtcdBackupS3 describes a bucket.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.kmsKeyARN) || has(self.kmsKeyARN)",message="kmsKeyARN cannot be removed once set"
type HCPEtcdBackupS3 struct {
	// bucket is the name of the bucket.
	//
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][a-z0-9.-]*[a-z0-9]$')",message="bucket may hold lower-case letters, digits, '.' and '-', and must start and end with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="!self.contains('..')",message="bucket cannot hold two periods in a row"
	Bucket string `json:"bucket"`

	// region is the region of the bucket.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9-]*[a-z0-9]$')",message="region must look like us-east-1"
	// +kubebuilder:validation:XValidation:rule="!self.contains('--')",message="region cannot hold two hyphens in a row"
	Region string `json:"region"`

	// keyPrefix goes before the name of the snapshot.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-zA-Z0-9!_.*\'()/-]+$')`,message="keyPrefix may hold letters, digits and !_.*'()/-"
	KeyPrefix string `json:"keyPrefix"`

	// credentials names a Secret that may write to the bucket.
	//
	// +required
	Credentials EncryptionSecretReference `json:"credentials"`

	// kmsKeyARN is the key that the snapshot is encrypted with. Unset means as the bucket has it. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="kmsKeyARN is immutable"
	KMSKeyARN AWSKMSKeyARN `json:"kmsKeyARN,omitempty"`
}

// HCPEtcdBackupAzureBlob describes a container.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.encryptionKeyURL) || has(self.encryptionKeyURL)",message="encryptionKeyURL cannot be removed once set"
type HCPEtcdBackupAzureBlob struct {
	// storageAccount is the name of the storage account.
	//
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+$')",message="storageAccount may hold lower-case letters and digits only"
	StorageAccount string `json:"storageAccount"`

	// container is the name of the container.
	//
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="container may hold lower-case letters, digits and '-', and must start and end with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="!self.contains('--')",message="container cannot hold two hyphens in a row"
	Container string `json:"container"`

	// keyPrefix goes before the name of the snapshot.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9/_.-]+$')",message="keyPrefix may hold letters, digits and /_.-"
	KeyPrefix string `json:"keyPrefix"`

	// credentials names a Secret that may write to the container.
	//
	// +required
	Credentials EncryptionSecretReference `json:"credentials"`

	// encryptionKeyURL is the key that the snapshot is encrypted with. Unset means as the account has it. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="encryptionKeyURL is immutable"
	EncryptionKeyURL AzureEncryptionKeyURL `json:"encryptionKeyURL,omitempty"`
}

// HCPEtcdBackupStatus says how a backup went.
//
// +kubebuilder:validation:MinProperties=1
type HCPEtcdBackupStatus struct {
	// conditions hold BackupCompleted.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// snapshotURL is where the snapshot is.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https|s3)://.*')",message="snapshotURL must start with https:// or s3://"
	SnapshotURL string `json:"snapshotURL,omitempty"`

	// encryptionMetadata says what the snapshot is encrypted with.
	//
	// +optional
	EncryptionMetadata HCPEtcdBackupEncryptionMetadata `json:"encryptionMetadata,omitzero"`
}

// HCPEtcdBackupEncryptionMetadata says what a snapshot is encrypted with; one member is set.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type HCPEtcdBackupEncryptionMetadata struct {
	// aws is a key of AWS.
	//
	// +optional
	AWS *HCPEtcdBackupEncryptionMetadataAWS `json:"aws,omitempty"`

	// azure is a key of Azure.
	//
	// +optional
	Azure *HCPEtcdBackupEncryptionMetadataAzure `json:"azure,omitempty"`
}

// HCPEtcdBackupEncryptionMetadataAWS is a key of AWS.
type HCPEtcdBackupEncryptionMetadataAWS struct {
	// kmsKeyARN is the ARN of the key.
	//
	// +required
	KMSKeyARN AWSKMSKeyARN `json:"kmsKeyARN"`
}

// HCPEtcdBackupEncryptionMetadataAzure is a key of Azure.
type HCPEtcdBackupEncryptionMetadataAzure struct {
	// encryptionKeyURL is the URL of the key.
	//
	// +required
	EncryptionKeyURL AzureEncryptionKeyURL `json:"encryptionKeyURL"`
}
