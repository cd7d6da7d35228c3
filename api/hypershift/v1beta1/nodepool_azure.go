package v1beta1

// AzureNodePoolPlatform describes machines of Microsoft Azure.
type AzureNodePoolPlatform struct {
	// vmSize is the size of virtual machine, for example Standard_D4s_v5.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^(Standard_|Basic_)?[A-Z]+[0-9]+(-[0-9]+)?[abdilmptsCNP]*(_[A-Z]*[0-9]+[A-Z]*)?(_v[0-9]+)?$`
	VMSize string `json:"vmSize"`

	// image names the boot image.
	//
	// +required
	Image AzureVMImage `json:"image"`

	// osDisk describes the boot disk.
	//
	// +required
	OSDisk AzureNodePoolOSDisk `json:"osDisk"`

	// availabilityZone is 1, 2 or 3. Unset means none.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self in ['1', '2', '3']",message="availabilityZone must be 1, 2 or 3"
	AvailabilityZone string `json:"availabilityZone,omitempty"`

	// encryptionAtHost says whether hosts encrypt caches and temporary disks.
	//
	// +optional
	// +kubebuilder:default:="Enabled"
	// +kubebuilder:validation:Enum=Enabled;Disabled
	EncryptionAtHost string `json:"encryptionAtHost,omitempty"`

	// subnetID is the resource ID of the subnet of machines. It cannot change.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=355
	// +kubebuilder:validation:XValidation:rule="size(self.split('/')) == 11 && self.matches('^/subscriptions/.*/resourceGroups/.*/providers/Microsoft.Network/virtualNetworks/.*/subnets/.*$')",message="subnetID must look like /subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/virtualNetworks/{network}/subnets/{subnet}"
	// +kubebuilder:validation:XValidation:rule="size(self.split('/')) != 11 || self.split('/')[2].matches('^[{]?[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}[}]?$')",message="the subscription in subnetID must be a UUID"
	// +kubebuilder:validation:XValidation:rule=`size(self.split('/')) != 11 || self.split('/')[4].matches('[a-zA-Z0-9-_\\(\\)\\.]{1,90}')`,message="the resource group in subnetID must be 1 to 90 letters, digits and -_()."
	// +kubebuilder:validation:XValidation:rule="size(self.split('/')) != 11 || !self.split('/')[4].endsWith('.')",message="the resource group in subnetID cannot end with a period"
	// +kubebuilder:validation:XValidation:rule=`size(self.split('/')) != 11 || self.split('/')[8].matches('[a-zA-Z0-9-_\\.]{2,64}')`,message="the virtual network in subnetID must be 2 to 64 letters, digits and -_."
	// +kubebuilder:validation:XValidation:rule="size(self.split('/')) != 11 || (!self.split('/')[8].endsWith('.') && !self.split('/')[8].endsWith('-'))",message="the virtual network in subnetID cannot end with a period or a hyphen"
	// +kubebuilder:validation:XValidation:rule=`size(self.split('/')) != 11 || self.split('/')[10].matches('[a-zA-Z0-9][a-zA-Z0-9-_\\.]{0,79}')`,message="the subnet in subnetID must be 1 to 80 letters, digits and -_. and start with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="size(self.split('/')) != 11 || (!self.split('/')[10].endsWith('.') && !self.split('/')[10].endsWith('-'))",message="the subnet in subnetID cannot end with a period or a hyphen"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="subnetID is immutable"
	SubnetID string `json:"subnetID"`

	// diagnostics says where boot logs go.
	//
	// +optional
	Diagnostics *Diagnostics `json:"diagnostics,omitempty"`
}

// AzureVMImageType names a kind of boot image.
//
// +kubebuilder:validation:Enum=ImageID;AzureMarketplace
type AzureVMImageType string

const (
	// ImageID is an image of the user's.
	ImageID AzureVMImageType = "ImageID"
	// AzureMarketplace is an image of the marketplace.
	AzureMarketplace AzureVMImageType = "AzureMarketplace"
)

// AzureVMImage is a union over type.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'ImageID' ? has(self.imageID) : !has(self.imageID)",message="imageID is required when type is ImageID, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="has(self.type) && self.type == 'AzureMarketplace' ? true : !has(self.azureMarketplace)",message="azureMarketplace is allowed only when type is AzureMarketplace"
type AzureVMImage struct {
	// type names the kind of image.
	//
	// +required
	Type AzureVMImageType `json:"type"`

	// imageID is the resource ID of an image when type is ImageID.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	ImageID *string `json:"imageID,omitempty"`

	// azureMarketplace names an image of the marketplace when type is AzureMarketplace. Unset means that of the release.
	//
	// +optional
	AzureMarketplace *AzureMarketplaceImage `json:"azureMarketplace,omitempty"`
}

// AzureVMImageGeneration is the Hyper-V generation of an image.
//
// +kubebuilder:validation:Enum=Gen1;Gen2
type AzureVMImageGeneration string

// AzureMarketplaceImage names an image of the marketplace: all four of publisher, offer, sku and version, or just the
// generation of the release's image.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.imageGeneration) || (has(self.publisher) && has(self.offer) && has(self.sku) && has(self.version))",message="azureMarketplace needs imageGeneration, or all of publisher, offer, sku and version"
// +kubebuilder:validation:XValidation:rule="[has(self.publisher), has(self.offer), has(self.sku), has(self.version)].filter(x, x == true).size() == 0 || [has(self.publisher), has(self.offer), has(self.sku), has(self.version)].filter(x, x == true).size() == 4",message="publisher, offer, sku and version must all be set, or none of them"
type AzureMarketplaceImage struct {
	// publisher is the publisher of the image.
	//
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=50
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9-_]{2,49}$`
	Publisher string `json:"publisher,omitempty"`

	// offer is the offer of the image.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Offer string `json:"offer,omitempty"`

	// sku is the SKU of the image.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[a-z0-9-_]+$`
	SKU string `json:"sku,omitempty"`

	// version is the version of the image: three numbers, or latest.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]+\.[0-9]+\.[0-9]+$|^latest$`
	Version string `json:"version,omitempty"`

	// imageGeneration is the Hyper-V generation.
	//
	// +optional
	// +kubebuilder:default:="Gen2"
	ImageGeneration AzureVMImageGeneration `json:"imageGeneration,omitempty"`
}

// AzureDiskStorageAccountType names a kind of disk.
//
// +kubebuilder:validation:Enum=Premium_LRS;PremiumV2_LRS;Standard_LRS;StandardSSD_LRS
type AzureDiskStorageAccountType string

// AzureDiskPersistence says whether a disk outlives a reallocation of its machine.
//
// +kubebuilder:validation:Enum=Persistent;Ephemeral
type AzureDiskPersistence string

const (
	// PersistentAzureDiskPersistence is a managed disk.
	PersistentAzureDiskPersistence AzureDiskPersistence = "Persistent"
	// EphemeralAzureDiskPersistence is local storage of the host.
	EphemeralAzureDiskPersistence AzureDiskPersistence = "Ephemeral"
)

// AzureNodePoolOSDisk describes a boot disk.
type AzureNodePoolOSDisk struct {
	// sizeGiB is the size in GiB. Unset means that of the image.
	//
	// +optional
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=32767
	SizeGiB int32 `json:"sizeGiB,omitempty"`

	// diskStorageAccountType is the kind of disk. Unset means that Azure chooses.
	//
	// +optional
	DiskStorageAccountType AzureDiskStorageAccountType `json:"diskStorageAccountType,omitempty"`

	// encryptionSetID is the resource ID of the disk encryption set. Unset means that Azure manages the key.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=285
	// +kubebuilder:validation:XValidation:rule="size(self.split('/')) == 9 && self.matches('^/subscriptions/.*/resourceGroups/.*/providers/Microsoft.Compute/diskEncryptionSets/.*$')",message="encryptionSetID must look like /subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute/diskEncryptionSets/{set}"
	// +kubebuilder:validation:XValidation:rule="size(self.split('/')) != 9 || self.split('/')[2].matches('^[{]?[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}[}]?$')",message="the subscription in encryptionSetID must be a UUID"
	// +kubebuilder:validation:XValidation:rule=`size(self.split('/')) != 9 || self.split('/')[4].matches('[a-zA-Z0-9-_\\(\\)\\.]{1,90}')`,message="the resource group in encryptionSetID must be 1 to 90 letters, digits and -_()."
	// +kubebuilder:validation:XValidation:rule="size(self.split('/')) != 9 || !self.split('/')[4].endsWith('.')",message="the resource group in encryptionSetID cannot end with a period"
	// +kubebuilder:validation:XValidation:rule="size(self.split('/')) != 9 || self.split('/')[8].matches('[a-zA-Z0-9-_]{1,80}')",message="the set in encryptionSetID must be 1 to 80 letters, digits and -_"
	EncryptionSetID string `json:"encryptionSetID,omitempty"`

	// persistence says whether the disk outlives a reallocation of the machine. Unset means Persistent.
	//
	// +optional
	Persistence AzureDiskPersistence `json:"persistence,omitempty"`
}

// AzureDiagnosticsStorageAccountType says where boot logs go.
//
// +kubebuilder:validation:Enum=Managed;UserManaged;Disabled
type AzureDiagnosticsStorageAccountType string

const (
	// AzureDiagnosticsStorageAccountTypeDisabled keeps none.
	AzureDiagnosticsStorageAccountTypeDisabled AzureDiagnosticsStorageAccountType = "Disabled"
	// AzureDiagnosticsStorageAccountTypeManaged keeps them in an account of Azure's.
	AzureDiagnosticsStorageAccountTypeManaged AzureDiagnosticsStorageAccountType = "Managed"
	// AzureDiagnosticsStorageAccountTypeUserManaged keeps them in an account of the user's.
	AzureDiagnosticsStorageAccountTypeUserManaged AzureDiagnosticsStorageAccountType = "UserManaged"
)

// Diagnostics is a union over storageAccountType.
//
// +kubebuilder:validation:XValidation:rule="self.storageAccountType == 'UserManaged' ? has(self.userManaged) : !has(self.userManaged)",message="userManaged is required when storageAccountType is UserManaged, and forbidden otherwise"
type Diagnostics struct {
	// storageAccountType says where boot logs go.
	//
	// +optional
	// +kubebuilder:default:="Disabled"
	StorageAccountType AzureDiagnosticsStorageAccountType `json:"storageAccountType,omitempty"`

	// userManaged names the account when storageAccountType is UserManaged.
	//
	// +optional
	UserManaged *UserManagedDiagnostics `json:"userManaged,omitempty"`
}

// UserManagedDiagnostics names a storage account.
type UserManagedDiagnostics struct {
	// storageAccountURI is the URL of the account's blob endpoint.
	//
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https'",message="storageAccountURI must be a URL that starts with https://"
	StorageAccountURI string `json:"storageAccountURI"`
}
