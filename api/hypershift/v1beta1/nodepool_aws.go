package v1beta1

// AWSNodePoolPlatform describes machines of Amazon Web Services.
type AWSNodePoolPlatform struct {
	// instanceType is the instance type, for example m5.large.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	InstanceType string `json:"instanceType"`

	// instanceProfile is the IAM instance profile of machines.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	InstanceProfile string `json:"instanceProfile,omitempty"`

	// subnet is where machines are made.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.id) && self.id.startsWith('subnet-') ? !has(self.filters) : has(self.filters) && size(self.filters) > 0",message="subnet needs either an id that starts with subnet-, or filters"
	Subnet AWSResourceReference `json:"subnet"`

	// ami is the boot image. Unset means that of the release.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	AMI string `json:"ami,omitempty"`

	// imageType is the operating system of machines. Unset means Linux.
	//
	// +optional
	ImageType ImageType `json:"imageType,omitempty"`

	// securityGroups lists security groups of machines, besides the default one of the cluster.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=50
	SecurityGroups []AWSResourceReference `json:"securityGroups,omitempty"`

	// rootVolume describes the boot volume.
	//
	// +optional
	RootVolume *Volume `json:"rootVolume,omitempty"`

	// resourceTags are put on machines besides those of the HostedCluster, and win over them where these allow it.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=25
	ResourceTags []AWSResourceTag `json:"resourceTags,omitempty"`

	// placement says on what hardware, and on what terms, machines run.
	//
	// +optional
	Placement *PlacementOptions `json:"placement,omitempty"`
}

// ImageType is the operating system of machines.
//
// +kubebuilder:validation:Enum=Windows;Linux
type ImageType string

const (
	// ImageTypeLinux is Linux.
	ImageTypeLinux ImageType = "Linux"
	// ImageTypeWindows is Windows; it needs the architecture amd64.
	ImageTypeWindows ImageType = "Windows"
)

// Volume describes a boot volume.
type Volume struct {
	// size is the size in GiB.
	//
	// +required
	// +kubebuilder:validation:Minimum=8
	Size int64 `json:"size"`

	// type is the EBS volume type, for example gp3.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Type string `json:"type"`

	// iops is how many operations a second are reserved, for types that take it.
	//
	// +optional
	IOPS int64 `json:"iops,omitempty"`

	// encrypted says whether the volume is encrypted. Unset means as the account has it.
	//
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`

	// encryptionKey is the KMS key, by ID or ARN. Unset means the account's default key.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	EncryptionKey string `json:"encryptionKey,omitempty"`
}

// Tenancy says who shares the hardware of a machine.
//
// +kubebuilder:validation:Enum=default;dedicated;host
type Tenancy string

// MarketType says on what terms a machine is rented.
//
// +kubebuilder:validation:Enum=OnDemand;CapacityBlocks
type MarketType string

const (
	// MarketTypeOnDemand pays as the machine runs.
	MarketTypeOnDemand MarketType = "OnDemand"
	// MarketTypeCapacityBlock pays for a block of time in advance.
	MarketTypeCapacityBlock MarketType = "CapacityBlocks"
)

// PlacementOptions says on what hardware, and on what terms, machines run.
//
// +kubebuilder:validation:XValidation:rule="has(self.tenancy) && self.tenancy == 'host' ? !has(self.capacityReservation) : true",message="capacityReservation is forbidden when tenancy is host"
// +kubebuilder:validation:XValidation:rule="!has(self.marketType) || self.marketType != 'Spot' || !has(self.capacityReservation)",message="capacityReservation is forbidden when marketType is Spot"
// +kubebuilder:validation:XValidation:rule="!has(self.marketType) || self.marketType != 'Spot' || !has(self.tenancy) || self.tenancy == 'default'",message="tenancy must be default when marketType is Spot"
// +kubebuilder:validation:XValidation:rule="!has(self.marketType) || self.marketType != 'CapacityBlocks' || has(self.capacityReservation)",message="capacityReservation is required when marketType is CapacityBlocks"
// +kubebuilder:validation:XValidation:rule="!has(self.spot) || (has(self.marketType) && self.marketType == 'Spot')",message="spot is allowed only when marketType is Spot"
type PlacementOptions struct {
	// tenancy says who shares the hardware. Unset means default: other accounts do.
	//
	// +optional
	Tenancy Tenancy `json:"tenancy,omitempty"`

	// marketType says on what terms machines are rented. Unset means OnDemand, or as the capacity reservation has it.
	//
	// +optional
	MarketType PlacementMarketType `json:"marketType,omitempty"`

	// spot bounds the price when marketType is Spot.
	//
	// +optional
	Spot *SpotOptions `json:"spot,omitempty"`

	// capacityReservation says which reserved capacity machines use.
	//
	// +optional
	CapacityReservation *CapacityReservationOptions `json:"capacityReservation,omitempty"`
}

// PlacementMarketType says on what terms a machine is rented; it knows Spot besides the market types of a reservation.
//
// +kubebuilder:validation:Enum="";OnDemand;Spot;CapacityBlocks
type PlacementMarketType string

const (
	// PlacementMarketTypeOnDemand pays as the machine runs.
	PlacementMarketTypeOnDemand PlacementMarketType = "OnDemand"
	// PlacementMarketTypeSpot takes idle capacity, which AWS may take back.
	PlacementMarketTypeSpot PlacementMarketType = "Spot"
	// PlacementMarketTypeCapacityBlocks pays for a block of time in advance.
	PlacementMarketTypeCapacityBlocks PlacementMarketType = "CapacityBlocks"
)

// SpotOptions bounds the price of Spot instances.
type SpotOptions struct {
	// maxPrice is the highest price in US dollars an hour. Unset means the on-demand price.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?$`
	MaxPrice string `json:"maxPrice,omitempty"`
}

// CapacityReservationPreference says whether machines use reserved capacity.
//
// +kubebuilder:validation:Enum="";None;CapacityReservationsOnly;Open
type CapacityReservationPreference string

const (
	// CapacityReservationPreferenceNone uses none.
	CapacityReservationPreferenceNone CapacityReservationPreference = "None"
	// CapacityReservationPreferenceOnly uses nothing else.
	CapacityReservationPreferenceOnly CapacityReservationPreference = "CapacityReservationsOnly"
	// CapacityReservationPreferenceOpen uses any that fits, else on-demand capacity.
	CapacityReservationPreferenceOpen CapacityReservationPreference = "Open"
)

// CapacityReservationOptions says which reserved capacity machines use.
//
// +kubebuilder:validation:XValidation:rule="has(self.id) ? (!has(self.preference) || !(self.preference in ['Open', 'None'])) : true",message="preference cannot be Open or None when id is set"
// +kubebuilder:validation:XValidation:rule="has(self.marketType) && self.marketType == 'CapacityBlocks' ? has(self.id) : true",message="id is required when marketType is CapacityBlocks"
type CapacityReservationOptions struct {
	// id is the ID of a capacity reservation.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^cr-[a-f0-9]{17}$')",message="id must be cr- and 17 hexadecimal digits"
	ID *string `json:"id,omitempty"`

	// marketType is the kind of reservation.
	//
	// +optional
	MarketType MarketType `json:"marketType,omitempty"`

	// preference says whether machines use reserved capacity. It goes with no id only, except CapacityReservationsOnly.
	//
	// +optional
	Preference CapacityReservationPreference `json:"preference,omitempty"`
}
