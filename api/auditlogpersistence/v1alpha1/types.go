package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AuditLogPersistenceConfig says how audit logs of hosted API servers outlive their pods. There is one, named cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=auditlogpersistenceconfigs,shortName=alpc;alpcs,scope=Cluster
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'cluster'",message="the only AuditLogPersistenceConfig is named cluster"
type AuditLogPersistenceConfig struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says how.
	//
	// +optional
	Spec AuditLogPersistenceConfigSpec `json:"spec,omitzero"`

	// status says how it goes.
	//
	// +optional
	Status AuditLogPersistenceConfigStatus `json:"status,omitzero"`
}

// AuditLogPersistenceConfigList is a list of AuditLogPersistenceConfigs.
//
// +kubebuilder:object:root=true
type AuditLogPersistenceConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AuditLogPersistenceConfig `json:"items"`
}

// AuditLogPersistenceConfigSpec says how audit logs outlive pods.
type AuditLogPersistenceConfigSpec struct {
	// enabled says whether they do at all.
	//
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// storage describes the volumes for logs.
	//
	// +optional
	Storage StorageConfig `json:"storage,omitzero"`

	// auditLog says when log files are rotated.
	//
	// +optional
	AuditLog AuditLogConfig `json:"auditLog,omitzero"`

	// snapshots has volumes saved when an API server restarts.
	//
	// +optional
	Snapshots SnapshotConfig `json:"snapshots,omitzero"`
}

// StorageConfig describes the volumes for logs.
type StorageConfig struct {
	// storageClassName names a StorageClass of the management cluster. Unset means its default.
	//
	// +optional
	StorageClassName string `json:"storageClassName,omitempty"`

	// size is the size of each volume. Unset means that the operator chooses.
	//
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
}

// AuditLogConfig says when log files are rotated.
type AuditLogConfig struct {
	// maxSize is how large a file may grow, in megabytes, before it is rotated.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxSize *int32 `json:"maxSize,omitempty"`

	// maxBackup is how many old files are kept.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxBackup *int32 `json:"maxBackup,omitempty"`
}

// SnapshotConfig has volumes saved when an API server restarts.
type SnapshotConfig struct {
	// enabled says whether they are saved.
	//
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// minInterval is the least time between two snapshots of a volume, as a Go duration.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9]+(ns|us|µs|ms|s|m|h))+$`
	MinInterval string `json:"minInterval,omitempty"`

	// perPodRetentionCount is how many snapshots of one pod are kept.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	PerPodRetentionCount *int32 `json:"perPodRetentionCount,omitempty"`

	// namespaceRetentionCount is how many snapshots of one control plane are kept.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	NamespaceRetentionCount *int32 `json:"namespaceRetentionCount,omitempty"`

	// volumeSnapshotClassName names a VolumeSnapshotClass of the management cluster. Unset means its default.
	//
	// +optional
	VolumeSnapshotClassName string `json:"volumeSnapshotClassName,omitempty"`
}

// AuditLogPersistenceConfigStatus says how it goes.
type AuditLogPersistenceConfigStatus struct {
	// conditions are the findings, one per type.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
