package v1beta1

// KubevirtPlatformSpec describes a KubeVirt cluster: the management cluster, or another one.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.generateID) || has(self.generateID)",message="generateID cannot be removed once set"
type KubevirtPlatformSpec struct {
	// baseDomainPassthrough has applications of the hosted cluster use names below the ingress domain of the KubeVirt
	// cluster, so that no DNS of its own is needed. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="baseDomainPassthrough is immutable"
	BaseDomainPassthrough *bool `json:"baseDomainPassthrough,omitempty"`

	// generateID goes into names when baseDomainPassthrough is set. The operator sets it. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=11
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="generateID is immutable"
	GenerateID string `json:"generateID,omitempty"`

	// credentials says how to reach a KubeVirt cluster that is not the management cluster.
	//
	// +optional
	Credentials *KubevirtPlatformCredentials `json:"credentials,omitempty"`

	// storageDriver says which storage classes of the KubeVirt cluster the hosted cluster may use. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="storageDriver is immutable"
	StorageDriver *KubevirtStorageDriverSpec `json:"storageDriver,omitempty"`
}

// KubevirtPlatformCredentials says how to reach an external KubeVirt cluster.
type KubevirtPlatformCredentials struct {
	// infraKubeConfigSecret names a Secret with a kubeconfig. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="infraKubeConfigSecret is immutable"
	InfraKubeConfigSecret *KubeconfigSecretRef `json:"infraKubeConfigSecret,omitempty"`

	// infraNamespace is the namespace for virtual machines. It cannot change.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="infraNamespace is immutable"
	InfraNamespace string `json:"infraNamespace"`
}

// KubevirtStorageDriverConfigType says which storage classes the hosted cluster may use.
//
// +kubebuilder:validation:Enum=None;Default;Manual
type KubevirtStorageDriverConfigType string

const (
	// NoneKubevirtStorageDriverConfigType installs no storage driver.
	NoneKubevirtStorageDriverConfigType KubevirtStorageDriverConfigType = "None"
	// DefaultKubevirtStorageDriverConfigType offers the default storage class.
	DefaultKubevirtStorageDriverConfigType KubevirtStorageDriverConfigType = "Default"
	// ManualKubevirtStorageDriverConfigType offers the storage classes that manual lists.
	ManualKubevirtStorageDriverConfigType KubevirtStorageDriverConfigType = "Manual"
)

// KubevirtStorageDriverSpec is a union over type.
type KubevirtStorageDriverSpec struct {
	// type says which storage classes the hosted cluster may use. It cannot change.
	//
	// +optional
	// +kubebuilder:default:="Default"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="type is immutable"
	Type KubevirtStorageDriverConfigType `json:"type,omitempty"`

	// manual lists storage classes when type is Manual. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="manual is immutable"
	Manual *KubevirtManualStorageDriverConfig `json:"manual,omitempty"`
}

// KubevirtManualStorageDriverConfig lists classes to offer.
type KubevirtManualStorageDriverConfig struct {
	// storageClassMapping lists storage classes. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="storageClassMapping is immutable"
	StorageClassMapping []KubevirtStorageClassMapping `json:"storageClassMapping,omitempty"`

	// volumeSnapshotClassMapping lists volume snapshot classes. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="volumeSnapshotClassMapping is immutable"
	VolumeSnapshotClassMapping []KubevirtVolumeSnapshotClassMapping `json:"volumeSnapshotClassMapping,omitempty"`
}

// KubevirtStorageClassMapping offers one storage class.
type KubevirtStorageClassMapping struct {
	// group ties storage classes to the volume snapshot classes of the same group.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Group string `json:"group,omitempty"`

	// infraStorageClassName is the name in the KubeVirt cluster.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	InfraStorageClassName string `json:"infraStorageClassName"`

	// guestStorageClassName is the name in the hosted cluster.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	GuestStorageClassName string `json:"guestStorageClassName"`
}

// KubevirtVolumeSnapshotClassMapping offers one volume snapshot class.
type KubevirtVolumeSnapshotClassMapping struct {
	// group ties volume snapshot classes to the storage classes of the same group.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Group string `json:"group,omitempty"`

	// infraVolumeSnapshotClassName is the name in the KubeVirt cluster.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	InfraVolumeSnapshotClassName string `json:"infraVolumeSnapshotClassName"`

	// guestVolumeSnapshotClassName is the name in the hosted cluster.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	GuestVolumeSnapshotClassName string `json:"guestVolumeSnapshotClassName"`
}
