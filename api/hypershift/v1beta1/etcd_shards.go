package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
)

// EtcdScheduling says which nodes of the management cluster run members of etcd.
//
// +kubebuilder:validation:MinProperties=1
type EtcdScheduling struct {
	// nodeSelector selects nodes by their labels.
	//
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations lists taints that do not matter.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// EtcdBackupPlatform names a cloud with object storage for backups.
//
// +kubebuilder:validation:Enum=AWS;Azure
type EtcdBackupPlatform string

// EtcdBackupSpec is a union over platform.
//
// +kubebuilder:validation:XValidation:rule="self.platform == 'AWS' ? has(self.aws) : !has(self.aws)",message="aws is required when platform is AWS, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="self.platform == 'Azure' ? has(self.azure) : !has(self.azure)",message="azure is required when platform is Azure, and forbidden otherwise"
type EtcdBackupSpec struct {
	// platform names the cloud.
	//
	// +required
	Platform EtcdBackupPlatform `json:"platform"`

	// aws names the key that backups on AWS are encrypted with.
	//
	// +optional
	AWS *HCPEtcdBackupEncryptionMetadataAWS `json:"aws,omitempty"`

	// azure names the key that backups on Azure are encrypted with.
	//
	// +optional
	Azure *HCPEtcdBackupEncryptionMetadataAzure `json:"azure,omitempty"`
}

// EtcdShardName names a shard.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=48
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must consist of lower-case letters, digits and '-', and start and end with a letter or digit"
type EtcdShardName string

// EtcdShardResource names a kind of resource that a shard holds.
type EtcdShardResource struct {
	// apiGroup is the API group; empty for the core group.
	//
	// +required
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self == "" || self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*$')`,message="apiGroup must be empty or a DNS name in lower case"
	APIGroup *string `json:"apiGroup"`

	// resource is the plural name.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="resource must be a plural name in lower case"
	Resource string `json:"resource"`
}

// ManagedEtcdShard is an etcd of its own for some resources, run by the control-plane operator.
//
// +kubebuilder:validation:XValidation:rule="has(self.storage) == has(oldSelf.storage)",message="storage cannot be added or removed after creation"
type ManagedEtcdShard struct {
	// name names the shard. It cannot change.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="name is immutable"
	Name EtcdShardName `json:"name"`

	// replicas is how many members the shard has. It cannot change.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Enum=1;3
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="replicas is immutable"
	Replicas int32 `json:"replicas"`

	// resources lists what the shard holds. It cannot change.
	//
	// +required
	// +listType=map
	// +listMapKey=apiGroup
	// +listMapKey=resource
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="resources is immutable"
	Resources []EtcdShardResource `json:"resources"`

	// scheduling says which nodes run members. Unset means as the main etcd has it.
	//
	// +optional
	Scheduling *EtcdScheduling `json:"scheduling,omitempty"`

	// storage says where members keep their data. Unset means as the main etcd has it. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="storage is immutable"
	Storage *EtcdShardStorage `json:"storage,omitempty"`
}

// EtcdShardStorageType names a kind of storage for members of a shard.
//
// +kubebuilder:validation:Enum=PersistentVolume;EmptyDir
type EtcdShardStorageType string

// Kinds of storage for members of a shard.
const (
	PersistentVolumeEtcdShardStorage EtcdShardStorageType = "PersistentVolume"
	EmptyDirEtcdShardStorage         EtcdShardStorageType = "EmptyDir"
)

// EtcdShardStorage is a union over type.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'PersistentVolume' ? true : !has(self.persistentVolume)",message="persistentVolume is allowed only when type is PersistentVolume"
type EtcdShardStorage struct {
	// type names the kind of storage. What is in an EmptyDir is gone with its pod.
	//
	// +required
	Type EtcdShardStorageType `json:"type"`

	// persistentVolume describes the volume of each member when type is PersistentVolume.
	//
	// +optional
	PersistentVolume *EtcdShardPersistentVolume `json:"persistentVolume,omitempty"`
}

// EtcdShardPersistentVolume describes the PersistentVolumeClaim of one member.
//
// +kubebuilder:validation:MinProperties=1
type EtcdShardPersistentVolume struct {
	// storageClassName names a StorageClass of the management cluster.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="storageClassName must be the name of a StorageClass"
	StorageClassName string `json:"storageClassName,omitempty"`
}

// UnmanagedEtcdShard is an etcd of its own for some resources, run by the user.
type UnmanagedEtcdShard struct {
	// name names the shard. It cannot change.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="name is immutable"
	Name EtcdShardName `json:"name"`

	// endpoint is its client URL; it must start with https://. It cannot change.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=267
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https'",message="endpoint must be a URL that starts with https://"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="endpoint is immutable"
	Endpoint string `json:"endpoint"`

	// resources lists what the shard holds. It cannot change.
	//
	// +required
	// +listType=map
	// +listMapKey=apiGroup
	// +listMapKey=resource
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="resources is immutable"
	Resources []EtcdShardResource `json:"resources"`
}
