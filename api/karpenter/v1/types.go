package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OpenshiftEC2NodeClass says what EC2 instances Karpenter makes for node pools that refer to it. An operator turns it into an
// EC2NodeClass of Karpenter, and fills in there what users must not choose.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=openshiftec2nodeclasses,shortName=oec2nc;oec2ncs,scope=Cluster
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Whether instances can be made"
type OpenshiftEC2NodeClass struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants.
	//
	// +required
	Spec OpenshiftEC2NodeClassSpec `json:"spec,omitzero"`

	// status is what the operator found.
	//
	// +optional
	Status OpenshiftEC2NodeClassStatus `json:"status,omitzero"`
}

// OpenshiftEC2NodeClassList is a list of OpenshiftEC2NodeClasses.
//
// +kubebuilder:object:root=true
type OpenshiftEC2NodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OpenshiftEC2NodeClass `json:"items"`
}

// OpenshiftEC2NodeClassSpec is what a user wants of instances.
//
// +kubebuilder:validation:MinProperties=1
type OpenshiftEC2NodeClassSpec struct {
	// subnetSelectorTerms select the subnets of instances; a subnet must match one of them. Unset means those of the cluster.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="self.size() != 0",message="subnetSelectorTerms cannot be empty"
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.tags) || has(x.id))",message="each of subnetSelectorTerms needs tags or id"
	// +kubebuilder:validation:XValidation:rule="!self.all(x, has(x.id) && has(x.tags))",message="id and tags cannot be in the same of subnetSelectorTerms"
	SubnetSelectorTerms []SubnetSelectorTerm `json:"subnetSelectorTerms,omitempty"`

	// securityGroupSelectorTerms select the security groups of instances. Unset means those of the cluster.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="self.size() != 0",message="securityGroupSelectorTerms cannot be empty"
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.tags) || has(x.id) || has(x.name))",message="each of securityGroupSelectorTerms needs tags, id or name"
	// +kubebuilder:validation:XValidation:rule="!self.all(x, has(x.id) && (has(x.tags) || has(x.name)))",message="id cannot be with tags or name in the same of securityGroupSelectorTerms"
	// +kubebuilder:validation:XValidation:rule="!self.all(x, has(x.name) && (has(x.tags) || has(x.id)))",message="name cannot be with tags or id in the same of securityGroupSelectorTerms"
	SecurityGroupSelectorTerms []SecurityGroupSelectorTerm `json:"securityGroupSelectorTerms,omitempty"`

	// capacityReservationSelectorTerms select reserved capacity that instances may use.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.tags) || has(x.id) || has(x.ownerID) || has(x.instanceMatchCriteria))",message="each of capacityReservationSelectorTerms needs tags, id, ownerID or instanceMatchCriteria"
	// +kubebuilder:validation:XValidation:rule="!self.all(x, has(x.id) && (has(x.tags) || has(x.ownerID) || has(x.instanceMatchCriteria)))",message="id must be alone in each of capacityReservationSelectorTerms"
	CapacityReservationSelectorTerms []CapacityReservationSelectorTerm `json:"capacityReservationSelectorTerms,omitempty"`

	// ipAddressAssociation says whether instances get public addresses. Unset means as the subnet has it.
	//
	// +optional
	// +kubebuilder:validation:Enum=Public;SubnetDefault
	IPAddressAssociation string `json:"ipAddressAssociation,omitempty"`

	// tags are put on everything that is made for instances.
	//
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != \"\")",message="a tag key cannot be empty"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != 'eks:eks-cluster-name')",message="the tag eks:eks-cluster-name is reserved"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('kubernetes.io/cluster'))",message="tags that start with kubernetes.io/cluster are reserved"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != 'karpenter.sh/nodepool')",message="the tag karpenter.sh/nodepool is reserved"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != 'karpenter.sh/nodeclaim')",message="the tag karpenter.sh/nodeclaim is reserved"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != 'karpenter.k8s.aws/ec2nodeclass')",message="the tag karpenter.k8s.aws/ec2nodeclass is reserved"
	Tags map[string]string `json:"tags,omitempty"`

	// blockDeviceMappings describe the volumes of instances. Unset means one root volume.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.filter(x, has(x.rootVolume) ? x.rootVolume == 'RootVolume' : false).size() <= 1",message="at most one of blockDeviceMappings can be the root volume"
	BlockDeviceMappings []BlockDeviceMapping `json:"blockDeviceMappings,omitempty"`

	// instanceStorePolicy says what becomes of disks of the host. Unset means that they are not used.
	//
	// +optional
	// +kubebuilder:validation:Enum=RAID0
	InstanceStorePolicy string `json:"instanceStorePolicy,omitempty"`

	// monitoring says how often EC2 measures: Detailed every minute, Basic every five.
	//
	// +optional
	// +kubebuilder:validation:Enum=Detailed;Basic
	Monitoring string `json:"monitoring,omitempty"`

	// metadataOptions say how instances reach their metadata.
	//
	// +optional
	MetadataOptions *MetadataOptions `json:"metadataOptions,omitempty"`

	// version is the version of the release that instances run. Unset means that of the control plane.
	//
	// +optional
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(0|[1-9]\\d*)\\.(0|[1-9]\\d*)\\.(0|[1-9]\\d*)(?:-((?:0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\\.(?:0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\\+([0-9a-zA-Z-]+(?:\\.[0-9a-zA-Z-]+)*))?$')`,message="version must be a semantic version such as 4.21.3"
	Version string `json:"version,omitempty"`

	// kubelet configures the kubelet of instances.
	//
	// +optional
	Kubelet *KubeletConfiguration `json:"kubelet,omitempty"`
}

// Tags select resources by their tags; the value * stands for any.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=20
// +kubebuilder:validation:XValidation:rule=`self.all(k, k != "" && self[k] != "")`,message="tag keys and values cannot be empty"
type Tags map[string]string

// SubnetSelectorTerm selects subnets.
//
// +kubebuilder:validation:MinProperties=1
type SubnetSelectorTerm struct {
	// tags select by tags.
	//
	// +optional
	Tags Tags `json:"tags,omitempty"`

	// id selects by ID.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^subnet-[0-9a-z]+$')",message="id must look like subnet-0123456789abcdef0"
	ID string `json:"id,omitempty"`
}

// SecurityGroupSelectorTerm selects security groups.
//
// +kubebuilder:validation:MinProperties=1
type SecurityGroupSelectorTerm struct {
	// tags select by tags.
	//
	// +optional
	Tags Tags `json:"tags,omitempty"`

	// id selects by ID.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^sg-[0-9a-z]+$')",message="id must look like sg-0123456789abcdef0"
	ID string `json:"id,omitempty"`

	// name selects by the name of the group, not by the tag Name.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
}

// CapacityReservationSelectorTerm selects reserved capacity.
//
// +kubebuilder:validation:MinProperties=1
type CapacityReservationSelectorTerm struct {
	// tags select by tags.
	//
	// +optional
	Tags Tags `json:"tags,omitempty"`

	// id selects by ID.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^cr-[0-9a-z]+$')",message="id must look like cr-0123456789abcdef0"
	ID string `json:"id,omitempty"`

	// ownerID selects by the account that owns the reservation.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=12
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{12}$')",message="ownerID must be 12 digits"
	OwnerID string `json:"ownerID,omitempty"`

	// instanceMatchCriteria selects by whether any instance that fits uses the reservation, or only those that name it.
	//
	// +optional
	// +kubebuilder:validation:Enum=Open;Targeted
	InstanceMatchCriteria string `json:"instanceMatchCriteria,omitempty"`
}

// BlockDeviceMapping describes a volume.
//
// +kubebuilder:validation:MinProperties=1
type BlockDeviceMapping struct {
	// deviceName is the name of the device, for example /dev/xvda.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	DeviceName string `json:"deviceName,omitempty"`

	// ebs describes the EBS volume.
	//
	// +optional
	EBS *BlockDevice `json:"ebs,omitempty"`

	// rootVolume says whether this is the volume for pods' ephemeral storage, images and logs.
	//
	// +optional
	// +kubebuilder:validation:Enum=RootVolume;NotRootVolume
	RootVolume string `json:"rootVolume,omitempty"`
}

// BlockDevice describes an EBS volume.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.snapshotID) || has(self.volumeSizeGiB)",message="one of snapshotID and volumeSizeGiB is required"
type BlockDevice struct {
	// deleteOnTermination says what becomes of the volume when the instance ends.
	//
	// +optional
	// +kubebuilder:validation:Enum=Delete;Retain
	DeleteOnTermination string `json:"deleteOnTermination,omitempty"`

	// encrypted says whether the volume is encrypted.
	//
	// +optional
	// +kubebuilder:validation:Enum=Encrypted;Unencrypted
	Encrypted string `json:"encrypted,omitempty"`

	// iops is how many operations a second are reserved, for types that take it.
	//
	// +optional
	IOPS *int64 `json:"iops,omitempty"`

	// kmsKeyID is the KMS key, by ID, alias or ARN.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	KMSKeyID string `json:"kmsKeyID,omitempty"`

	// snapshotID is the snapshot that the volume starts from.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	SnapshotID string `json:"snapshotID,omitempty"`

	// throughput is the throughput in MiB a second, for types that take it.
	//
	// +optional
	Throughput *int64 `json:"throughput,omitempty"`

	// volumeSizeGiB is the size in GiB. Unset means that of the snapshot.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	VolumeSizeGiB int64 `json:"volumeSizeGiB,omitempty"`

	// volumeType is the EBS volume type.
	//
	// +optional
	// +kubebuilder:validation:Enum=Standard;IO1;IO2;GP2;SC1;ST1;GP3
	VolumeType string `json:"volumeType,omitempty"`
}

// MetadataOptions say how instances reach their metadata.
//
// +kubebuilder:validation:MinProperties=1
type MetadataOptions struct {
	// access says whether metadata is served at all.
	//
	// +optional
	// +kubebuilder:validation:Enum=HTTPEndpoint;None
	Access string `json:"access,omitempty"`

	// httpIPProtocol is the address family of the endpoint.
	//
	// +optional
	// +kubebuilder:validation:Enum=IPv4;IPv6
	HTTPIPProtocol string `json:"httpIPProtocol,omitempty"`

	// httpPutResponseHopLimit is how many hops an answer may travel; with 1 it does not reach pods.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	HTTPPutResponseHopLimit int64 `json:"httpPutResponseHopLimit,omitempty"`

	// httpTokens says whether requests need a session token.
	//
	// +optional
	// +kubebuilder:validation:Enum=Required;Optional
	HTTPTokens string `json:"httpTokens,omitempty"`
}
