package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// KubevirtNodePoolPlatform describes virtual machines of a KubeVirt cluster.
type KubevirtNodePoolPlatform struct {
	// rootVolume describes the boot volume.
	//
	// +required
	// +kubebuilder:default:={type: "Persistent", persistent: {size: "32Gi"}}
	RootVolume *KubevirtRootVolume `json:"rootVolume"`

	// compute says how many processors and how much memory a machine gets.
	//
	// +optional
	// +kubebuilder:default:={memory: "8Gi", cores: 2}
	Compute *KubevirtCompute `json:"compute,omitempty"`

	// networkInterfaceMultiqueue says whether network interfaces have one queue per processor.
	//
	// +optional
	// +kubebuilder:default:="Enable"
	NetworkInterfaceMultiQueue *MultiQueueSetting `json:"networkInterfaceMultiqueue,omitempty"`

	// additionalNetworks lists networks that machines join besides the default one.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=20
	AdditionalNetworks []KubevirtNetwork `json:"additionalNetworks,omitempty"`

	// attachDefaultNetwork says whether machines join the pod network of the KubeVirt cluster.
	//
	// +optional
	// +kubebuilder:default:=true
	AttachDefaultNetwork *bool `json:"attachDefaultNetwork,omitempty"`

	// nodeSelector restricts the nodes of the KubeVirt cluster that run machines.
	//
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// hostDevices lists devices of the host that each machine gets.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=10
	KubevirtHostDevices []KubevirtHostDevice `json:"hostDevices,omitempty"`
}

// MultiQueueSetting says whether network interfaces have one queue per processor.
//
// +kubebuilder:validation:Enum=Enable;Disable
type MultiQueueSetting string

const (
	// MultiQueueEnable gives interfaces one queue per processor.
	MultiQueueEnable MultiQueueSetting = "Enable"
	// MultiQueueDisable gives interfaces one queue.
	MultiQueueDisable MultiQueueSetting = "Disable"
)

// QoSClass says whether a machine's resources are reserved.
//
// +kubebuilder:validation:Enum=Burstable;Guaranteed
type QoSClass string

const (
	// QoSClassBurstable reserves part of the resources.
	QoSClassBurstable QoSClass = "Burstable"
	// QoSClassGuaranteed reserves all of the resources.
	QoSClassGuaranteed QoSClass = "Guaranteed"
)

// KubevirtCompute says how many processors and how much memory a machine gets.
type KubevirtCompute struct {
	// memory is the memory of a machine.
	//
	// +optional
	// +kubebuilder:default:="8Gi"
	Memory *resource.Quantity `json:"memory,omitempty"`

	// cores is how many processors a machine gets.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Cores *int32 `json:"cores,omitempty"`

	// qosClass says whether these resources are reserved.
	//
	// +optional
	// +kubebuilder:default:="Burstable"
	QosClass *QoSClass `json:"qosClass,omitempty"`
}

// KubevirtVolumeType names a kind of boot volume.
//
// +kubebuilder:validation:Enum=Persistent
type KubevirtVolumeType string

// KubevirtVolumeTypePersistent is a PersistentVolumeClaim of the KubeVirt cluster.
const KubevirtVolumeTypePersistent KubevirtVolumeType = "Persistent"

// KubevirtRootVolume describes a boot volume.
type KubevirtRootVolume struct {
	// diskImage names the boot image. Unset means that of the release.
	//
	// +optional
	Image *KubevirtDiskImage `json:"diskImage,omitempty"`

	KubevirtVolume `json:",inline"`

	// cacheStrategy says whether the boot image is kept for the next machine.
	//
	// +optional
	CacheStrategy *KubevirtCachingStrategy `json:"cacheStrategy,omitempty"`
}

// KubevirtVolume is a union over type.
type KubevirtVolume struct {
	// type names the kind of volume.
	//
	// +optional
	// +kubebuilder:default:="Persistent"
	Type KubevirtVolumeType `json:"type,omitempty"`

	// persistent describes the PersistentVolumeClaim when type is Persistent.
	//
	// +optional
	Persistent *KubevirtPersistentVolume `json:"persistent,omitempty"`
}

// PersistentVolumeAccessMode says who may mount a volume.
//
// +kubebuilder:validation:Enum=ReadWriteOnce;ReadWriteMany;ReadOnly;ReadWriteOncePod
type PersistentVolumeAccessMode string

// KubevirtPersistentVolume describes a PersistentVolumeClaim of the KubeVirt cluster.
type KubevirtPersistentVolume struct {
	// size is the size of the volume.
	//
	// +optional
	// +kubebuilder:default:="32Gi"
	Size *resource.Quantity `json:"size,omitempty"`

	// storageClass names a StorageClass of the KubeVirt cluster. Unset means its default.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	StorageClass *string `json:"storageClass,omitempty"`

	// accessModes lists access modes. Unset means as KubeVirt has it for the storage class.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=10
	AccessModes []PersistentVolumeAccessMode `json:"accessModes,omitempty"`

	// volumeMode is Filesystem or Block. Unset means as KubeVirt has it for the storage class.
	//
	// +optional
	// +kubebuilder:validation:Enum=Filesystem;Block
	VolumeMode *corev1.PersistentVolumeMode `json:"volumeMode,omitempty"`
}

// KubevirtCachingStrategyType says where a boot image is kept.
//
// +kubebuilder:validation:Enum=None;PVC
type KubevirtCachingStrategyType string

const (
	// KubevirtCachingStrategyNone keeps it nowhere; every machine imports it.
	KubevirtCachingStrategyNone KubevirtCachingStrategyType = "None"
	// KubevirtCachingStrategyPVC keeps it in a volume that is cloned for every machine.
	KubevirtCachingStrategyPVC KubevirtCachingStrategyType = "PVC"
)

// KubevirtCachingStrategy says where a boot image is kept.
type KubevirtCachingStrategy struct {
	// type names the place.
	//
	// +required
	// +kubebuilder:default:="None"
	Type KubevirtCachingStrategyType `json:"type"`
}

// KubevirtDiskImage names a boot image.
type KubevirtDiskImage struct {
	// containerDiskImage is a container image with a disk image inside.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	ContainerDiskImage *string `json:"containerDiskImage,omitempty"`
}

// KubevirtNetwork names a network of the KubeVirt cluster.
type KubevirtNetwork struct {
	// name is {namespace}/{name} of a NetworkAttachmentDefinition.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name"`
}

// KubevirtHostDevice is a device of the host.
type KubevirtHostDevice struct {
	// deviceName is the resource name of the device.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	DeviceName string `json:"deviceName"`

	// count is how many of it a machine gets.
	//
	// +optional
	// +kubebuilder:default:=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Count int `json:"count,omitempty"`
}

// NodePoolPlatformStatus is what was found on the platform.
type NodePoolPlatformStatus struct {
	// kubeVirt is what was found in the KubeVirt cluster.
	//
	// +optional
	KubeVirt *KubeVirtNodePoolStatus `json:"kubeVirt,omitempty"`
}

// KubeVirtNodePoolStatus is what was found in the KubeVirt cluster.
type KubeVirtNodePoolStatus struct {
	// cacheName names the volume that the boot image is kept in.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	CacheName string `json:"cacheName,omitempty"`

	// credentials says how the KubeVirt cluster with that volume is reached.
	//
	// +optional
	Credentials *KubevirtPlatformCredentials `json:"credentials,omitempty"`
}
