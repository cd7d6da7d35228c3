package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// EtcdManagementType says who runs etcd.
//
// +kubebuilder:validation:Enum=Managed;Unmanaged
type EtcdManagementType string

const (
	// Managed means that the control-plane operator runs etcd.
	Managed EtcdManagementType = "Managed"
	// Unmanaged means that the user runs etcd and gives its address.
	Unmanaged EtcdManagementType = "Unmanaged"
)

// EtcdSpec says where the hosted cluster keeps its data.
//
// +kubebuilder:validation:XValidation:rule="self.managementType == 'Managed' ? has(self.managed) : !has(self.managed)",message="managed is required when managementType is Managed, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="self.managementType == 'Unmanaged' ? has(self.unmanaged) : !has(self.unmanaged)",message="unmanaged is required when managementType is Unmanaged, and forbidden otherwise"
type EtcdSpec struct {
	// managementType says who runs etcd. It cannot change.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="managementType is immutable"
	ManagementType EtcdManagementType `json:"managementType"`

	// managed describes the etcd that the control-plane operator runs.
	//
	// +optional
	Managed *ManagedEtcdSpec `json:"managed,omitempty"`

	// unmanaged says how to reach the etcd that the user runs.
	//
	// +optional
	Unmanaged *UnmanagedEtcdSpec `json:"unmanaged,omitempty"`
}

// ManagedEtcdSpec describes an etcd that the control-plane operator runs.
//
// +kubebuilder:validation:XValidation:rule="has(self.shards) == has(oldSelf.shards)",message="shards cannot be added or removed after creation"
type ManagedEtcdSpec struct {
	// storage says where the members keep their data.
	//
	// +required
	Storage ManagedEtcdStorageSpec `json:"storage"`

	// backup says what backups are encrypted with (TechPreview).
	//
	// +optional
	Backup *EtcdBackupSpec `json:"backup,omitempty"`

	// scheduling says which nodes run members (TechPreview).
	//
	// +optional
	Scheduling *EtcdScheduling `json:"scheduling,omitempty"`

	// shards moves some resources to an etcd of their own (TechPreview).
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:XValidation:rule="self.all(s1, self.all(s2, s1.name == s2.name || !s1.resources.exists(r, s2.resources.exists(q, r.apiGroup == q.apiGroup && r.resource == q.resource))))",message="a resource can be in one shard only"
	// +kubebuilder:validation:XValidation:rule="self.size() == oldSelf.size()",message="shards cannot be added or removed after creation"
	// +kubebuilder:validation:XValidation:rule="oldSelf.all(old, self.exists(cur, cur.name == old.name))",message="shards cannot be replaced after creation"
	Shards []ManagedEtcdShard `json:"shards,omitempty"`
}

// ManagedEtcdStorageType names a kind of storage for etcd members.
//
// +kubebuilder:validation:Enum=PersistentVolume
type ManagedEtcdStorageType string

// PersistentVolumeEtcdStorage gives every member a PersistentVolumeClaim.
const PersistentVolumeEtcdStorage ManagedEtcdStorageType = "PersistentVolume"

// DefaultPersistentVolumeEtcdStorageSize is the size of a member's volume when none is asked for.
var DefaultPersistentVolumeEtcdStorageSize = resource.MustParse("8Gi")

// ManagedEtcdStorageSpec says where etcd members keep their data.
//
// +kubebuilder:validation:XValidation:rule="has(self.restoreSnapshotURL) == has(oldSelf.restoreSnapshotURL)",message="restoreSnapshotURL cannot be added or removed after creation"
type ManagedEtcdStorageSpec struct {
	// type names the kind of storage.
	//
	// +required
	Type ManagedEtcdStorageType `json:"type"`

	// persistentVolume describes the volume of each member when type is PersistentVolume.
	//
	// +optional
	PersistentVolume *PersistentVolumeEtcdStorageSpec `json:"persistentVolume,omitempty"`

	// restoreSnapshotURL holds at most one URL (https or s3, usually pre-signed) of an etcd snapshot that every member
	// starts from. It is read on the first start only and cannot change.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.size() <= 1",message="restoreSnapshotURL takes at most one URL"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="restoreSnapshotURL is immutable"
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self[0].matches('^(https|s3)://.*')",message="restoreSnapshotURL must start with https:// or s3://"
	RestoreSnapshotURL []string `json:"restoreSnapshotURL,omitempty"`
}

// PersistentVolumeEtcdStorageSpec describes the PersistentVolumeClaim of one etcd member.
type PersistentVolumeEtcdStorageSpec struct {
	// storageClassName names a StorageClass of the management cluster; unset means its default. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="storageClassName is immutable"
	StorageClassName *string `json:"storageClassName,omitempty"`

	// size is how large the volume of each member is. It cannot change.
	//
	// +optional
	// +kubebuilder:default:="8Gi"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="size is immutable"
	Size *resource.Quantity `json:"size,omitempty"`
}

// UnmanagedEtcdSpec says how to reach an etcd that the user runs.
//
// +kubebuilder:validation:XValidation:rule="has(self.shards) == has(oldSelf.shards)",message="shards cannot be added or removed after creation"
type UnmanagedEtcdSpec struct {
	// endpoint is the client URL of etcd; it must start with https://.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^https://`
	Endpoint string `json:"endpoint"`

	// tls says how the API server proves itself to etcd, and the reverse.
	//
	// +required
	TLS EtcdTLSConfig `json:"tls"`

	// shards moves some resources to an etcd of their own (TechPreview).
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:XValidation:rule="self.all(s1, self.all(s2, s1.name == s2.name || !s1.resources.exists(r, s2.resources.exists(q, r.apiGroup == q.apiGroup && r.resource == q.resource))))",message="a resource can be in one shard only"
	// +kubebuilder:validation:XValidation:rule="self.size() == oldSelf.size()",message="shards cannot be added or removed after creation"
	// +kubebuilder:validation:XValidation:rule="oldSelf.all(old, self.exists(cur, cur.name == old.name))",message="shards cannot be replaced after creation"
	Shards []UnmanagedEtcdShard `json:"shards,omitempty"`
}

// EtcdTLSConfig names the client certificate for an etcd that the user runs.
type EtcdTLSConfig struct {
	// clientSecret names a Secret in the namespace of the HostedCluster with the keys etcd-client.crt, etcd-client.key
	// and etcd-client-ca.crt, all PEM.
	//
	// +required
	ClientSecret corev1.LocalObjectReference `json:"clientSecret"`
}
