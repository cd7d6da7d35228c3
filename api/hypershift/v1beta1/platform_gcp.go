package v1beta1

// GCPEndpointAccessType says from where the API server is reached.
//
// +kubebuilder:validation:Enum=PublicAndPrivate;Private
type GCPEndpointAccessType string

const (
	// GCPEndpointAccessPublicAndPrivate serves on the internet, and to nodes by Private Service Connect.
	GCPEndpointAccessPublicAndPrivate GCPEndpointAccessType = "PublicAndPrivate"
	// GCPEndpointAccessPrivate serves by Private Service Connect only.
	GCPEndpointAccessPrivate GCPEndpointAccessType = "Private"
)

// GCPPlatformSpec describes Google Cloud.
//
// +kubebuilder:validation:XValidation:rule="self.workloadIdentity.serviceAccountsEmails.controlPlane.contains('@') && self.workloadIdentity.serviceAccountsEmails.controlPlane.endsWith('@' + self.project + '.iam.gserviceaccount.com')",message="the service account controlPlane must be of the cluster's project"
// +kubebuilder:validation:XValidation:rule="self.workloadIdentity.serviceAccountsEmails.nodePool.contains('@') && self.workloadIdentity.serviceAccountsEmails.nodePool.endsWith('@' + self.project + '.iam.gserviceaccount.com')",message="the service account nodePool must be of the cluster's project"
// +kubebuilder:validation:XValidation:rule="self.workloadIdentity.serviceAccountsEmails.cloudController.contains('@') && self.workloadIdentity.serviceAccountsEmails.cloudController.endsWith('@' + self.project + '.iam.gserviceaccount.com')",message="the service account cloudController must be of the cluster's project"
// +kubebuilder:validation:XValidation:rule="self.workloadIdentity.serviceAccountsEmails.storage.contains('@') && self.workloadIdentity.serviceAccountsEmails.storage.endsWith('@' + self.project + '.iam.gserviceaccount.com')",message="the service account storage must be of the cluster's project"
// +kubebuilder:validation:XValidation:rule="self.workloadIdentity.serviceAccountsEmails.imageRegistry.contains('@') && self.workloadIdentity.serviceAccountsEmails.imageRegistry.endsWith('@' + self.project + '.iam.gserviceaccount.com')",message="the service account imageRegistry must be of the cluster's project"
// +kubebuilder:validation:XValidation:rule="self.workloadIdentity.serviceAccountsEmails.network.endsWith('@' + self.project + '.iam.gserviceaccount.com')",message="the service account network must be of the cluster's project"
type GCPPlatformSpec struct {
	// project is the ID of the project. It cannot change.
	//
	// +required
	// +kubebuilder:validation:MinLength=6
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9-]{4,28}[a-z0-9]$')",message="project must be 6 to 30 lower-case letters, digits and '-', and start with a letter"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="project is immutable"
	Project string `json:"project"`

	// region is the region that machines live in. It cannot change.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]+-[a-z]+[0-9]+$')",message="region must look like us-central1"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="region is immutable"
	Region string `json:"region"`

	// networkConfig names the network of the cluster.
	//
	// +required
	NetworkConfig GCPNetworkConfig `json:"networkConfig"`

	// endpointAccess says from where the API server is reached.
	//
	// +optional
	// +kubebuilder:default:="Private"
	EndpointAccess GCPEndpointAccessType `json:"endpointAccess,omitempty"`

	// resourceLabels are put on everything that is made in the project.
	//
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=60
	ResourceLabels []GCPResourceLabel `json:"resourceLabels,omitempty"`

	// workloadIdentity says how components prove themselves to Google Cloud. It cannot change.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="workloadIdentity is immutable"
	WorkloadIdentity GCPWorkloadIdentityConfig `json:"workloadIdentity"`
}

// GCPNetworkConfig names the network of a cluster.
type GCPNetworkConfig struct {
	// network is the VPC network. It cannot change.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="network is immutable"
	Network GCPResourceReference `json:"network"`

	// privateServiceConnectSubnet is the subnet of the endpoint for private access. It cannot change.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="privateServiceConnectSubnet is immutable"
	PrivateServiceConnectSubnet GCPResourceReference `json:"privateServiceConnectSubnet"`
}

// GCPResourceReference names a resource.
type GCPResourceReference struct {
	// name is the name of the resource.
	//
	// +required
	Name GCPResourceName `json:"name"`
}

// GCPResourceLabel is put on resources.
type GCPResourceLabel struct {
	// key is the key of the label.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([_a-z0-9-]{0,61}[a-z0-9])?$')",message="key must start with a lower-case letter and hold lower-case letters, digits, '_' and '-'"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('goog')",message="keys that start with goog are reserved"
	Key string `json:"key"`

	// value is the value of the label.
	//
	// +required
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^$|^[a-z]([_a-z0-9-]{0,61}[a-z0-9])?$')",message="value must be empty, or start with a lower-case letter and hold lower-case letters, digits, '_' and '-'"
	Value *string `json:"value"`
}

// GCPWorkloadIdentityConfig says how components prove themselves to Google Cloud.
type GCPWorkloadIdentityConfig struct {
	// projectNumber is the number of the project with the pool. It cannot change.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=25
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+$')",message="projectNumber must be a number"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="projectNumber is immutable"
	ProjectNumber string `json:"projectNumber"`

	// poolID is the workload identity pool. It cannot change.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="poolID is immutable"
	PoolID GCPWorkloadIdentityID `json:"poolID"`

	// providerID is the provider in the pool. It cannot change.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="providerID is immutable"
	ProviderID GCPWorkloadIdentityID `json:"providerID"`

	// serviceAccountsEmails names the service accounts of components.
	//
	// +required
	ServiceAccountsEmails GCPServiceAccountsEmails `json:"serviceAccountsEmails"`
}

// GCPWorkloadIdentityID is the ID of a workload identity pool or of a provider in one.
//
// +kubebuilder:validation:MinLength=4
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9-]{2,30}[a-z0-9]$')",message="must be 4 to 32 lower-case letters, digits and '-', and start with a letter"
// +kubebuilder:validation:XValidation:rule="!self.startsWith('gcp-')",message="IDs that start with gcp- are reserved"
type GCPWorkloadIdentityID string

// GCPServiceAccountEmail names a service account.
//
// +kubebuilder:validation:MinLength=37
// +kubebuilder:validation:MaxLength=85
// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z][a-z0-9-]{4,28}[a-z0-9]@[a-z][a-z0-9-]{4,28}[a-z0-9]\\.iam\\.gserviceaccount\\.com$')`,message="must look like name@project.iam.gserviceaccount.com"
type GCPServiceAccountEmail string

// GCPServiceAccountsEmails names the service accounts of components. None can change.
type GCPServiceAccountsEmails struct {
	// nodePool is the account of the Cluster API provider.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="nodePool is immutable"
	NodePool GCPServiceAccountEmail `json:"nodePool"`

	// controlPlane is the account of the control-plane operator.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="controlPlane is immutable"
	ControlPlane GCPServiceAccountEmail `json:"controlPlane"`

	// cloudController is the account of the cloud controller manager.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cloudController is immutable"
	CloudController GCPServiceAccountEmail `json:"cloudController"`

	// storage is the account of the disk driver.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="storage is immutable"
	Storage GCPServiceAccountEmail `json:"storage"`

	// imageRegistry is the account of OpenShift's image registry.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="imageRegistry is immutable"
	ImageRegistry GCPServiceAccountEmail `json:"imageRegistry"`

	// network is the account of OpenShift's cloud network config controller.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="network is immutable"
	Network GCPServiceAccountEmail `json:"network"`
}

// GCPNodePoolPlatform describes machines of Google Cloud.
//
// +kubebuilder:validation:XValidation:rule="!has(self.onHostMaintenance) || !has(self.provisioningModel) || self.provisioningModel == 'Standard' || self.onHostMaintenance == 'TERMINATE'",message="onHostMaintenance must be TERMINATE unless provisioningModel is Standard"
type GCPNodePoolPlatform struct {
	// machineType is the machine type, for example n2-standard-4.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+(-[a-z0-9]+)*$')",message="machineType must be lower-case words and numbers with '-' between"
	MachineType string `json:"machineType"`

	// zone is the zone of machines.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]+(?:-[a-z0-9]+)*-[a-z]$')",message="zone must look like us-central1-a"
	Zone string `json:"zone"`

	// subnet is the subnet of machines.
	//
	// +required
	Subnet GCPResourceName `json:"subnet"`

	// image is the boot image. Unset means that of the release.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Image string `json:"image,omitempty"`

	// bootDisk describes the boot disk.
	//
	// +optional
	BootDisk *GCPBootDisk `json:"bootDisk,omitempty"`

	// serviceAccount is the account of machines.
	//
	// +optional
	ServiceAccount *GCPNodeServiceAccount `json:"serviceAccount,omitempty"`

	// resourceLabels are put on machines besides those of the HostedCluster.
	//
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=60
	ResourceLabels []GCPResourceLabel `json:"resourceLabels,omitempty"`

	// networkTags lists network tags of machines, which firewall rules refer to.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	NetworkTags []GCPResourceName `json:"networkTags,omitempty"`

	// provisioningModel says on what terms machines are rented.
	//
	// +optional
	// +kubebuilder:default:="Standard"
	// +kubebuilder:validation:Enum=Standard;Spot;Preemptible
	ProvisioningModel string `json:"provisioningModel,omitempty"`

	// onHostMaintenance says what becomes of a machine when its host is maintained. Unset means as the model has it.
	//
	// +optional
	// +kubebuilder:validation:Enum=MIGRATE;TERMINATE
	OnHostMaintenance string `json:"onHostMaintenance,omitempty"`
}

// GCPBootDisk describes a boot disk.
type GCPBootDisk struct {
	// diskSizeGB is the size in GB.
	//
	// +optional
	// +kubebuilder:default:=64
	// +kubebuilder:validation:Minimum=20
	// +kubebuilder:validation:Maximum=65536
	DiskSizeGB int64 `json:"diskSizeGB,omitempty"`

	// diskType is the kind of disk.
	//
	// +optional
	// +kubebuilder:default:="pd-balanced"
	// +kubebuilder:validation:Enum=pd-standard;pd-ssd;pd-balanced
	DiskType string `json:"diskType,omitempty"`

	// encryptionKey is the key that the disk is encrypted with. Unset means that Google manages it.
	//
	// +optional
	EncryptionKey *GCPDiskEncryptionKey `json:"encryptionKey,omitempty"`
}

// GCPDiskEncryptionKey names a key.
type GCPDiskEncryptionKey struct {
	// kmsKeyName is the resource name of the key.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^projects/[a-z][a-z0-9-]{4,28}[a-z0-9]/locations/[a-z0-9-]+/keyRings/[a-zA-Z0-9_-]+/cryptoKeys/[a-zA-Z0-9_-]+$')",message="kmsKeyName must look like projects/{project}/locations/{location}/keyRings/{ring}/cryptoKeys/{key}"
	KMSKeyName string `json:"kmsKeyName"`
}

// GCPNodeServiceAccount is the account of machines.
type GCPNodeServiceAccount struct {
	// email names the account. Unset means the project's default one.
	//
	// +optional
	Email GCPServiceAccountEmail `json:"email,omitempty"`

	// scopes lists what machines may do with it.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=512
	Scopes []string `json:"scopes,omitempty"`
}
