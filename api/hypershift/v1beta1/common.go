package v1beta1

// AvailabilityPolicy says how many failures a set of workloads must survive.
//
// +kubebuilder:validation:Enum=HighlyAvailable;SingleReplica
type AvailabilityPolicy string

const (
	// HighlyAvailable runs workloads with enough replicas, spread over nodes and zones, to survive the loss of one.
	HighlyAvailable AvailabilityPolicy = "HighlyAvailable"
	// SingleReplica runs one replica of each workload.
	SingleReplica AvailabilityPolicy = "SingleReplica"
)

// OLMCatalogPlacement says where OpenShift's operator catalogs run.
//
// +kubebuilder:validation:Enum=management;guest
type OLMCatalogPlacement string

const (
	// ManagementOLMCatalogPlacement runs the catalogs beside the control plane.
	ManagementOLMCatalogPlacement OLMCatalogPlacement = "management"
	// GuestOLMCatalogPlacement runs the catalogs in the hosted cluster.
	GuestOLMCatalogPlacement OLMCatalogPlacement = "guest"
)

// PayloadArchType is the CPU architecture of a release.
//
// +kubebuilder:validation:Enum=Multi;ARM64;AMD64;PPC64LE;S390X
type PayloadArchType string

const (
	// Multi is a release of several architectures.
	Multi PayloadArchType = "Multi"
	// ARM64 is a release for 64-bit Arm.
	ARM64 PayloadArchType = "ARM64"
	// AMD64 is a release for x86-64.
	AMD64 PayloadArchType = "AMD64"
	// PPC64LE is a release for little-endian POWER.
	PPC64LE PayloadArchType = "PPC64LE"
	// S390X is a release for IBM Z.
	S390X PayloadArchType = "S390X"
)

// Release names a release image.
type Release struct {
	// image is the pull specification of a release image: an OpenShift payload, or a Kubernetes release.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(\\w+\\S+)$')`,message="image must start with a letter, a digit or an underscore and hold no spaces"
	Image string `json:"image"`
}

// BaseDomain is a DNS suffix, or empty.
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule=`self == "" || self.matches('^(?:(?:[a-zA-Z0-9-]+\\.)+[a-zA-Z]{2,}|[a-zA-Z0-9-]+)$')`,message="must be a domain name such as example.com, or empty"
type BaseDomain string

// DNSSpec says under which names the hosted cluster is published.
type DNSSpec struct {
	// baseDomain is the suffix of the names of the hosted cluster; its applications live below
	// apps.{baseDomainPrefix}.{baseDomain}. It cannot change once it is not empty.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="oldSelf == '' || self == oldSelf",message="baseDomain is immutable"
	BaseDomain BaseDomain `json:"baseDomain"`

	// baseDomainPrefix goes before baseDomain. Unset means the name of the HostedCluster; the empty string means none. It
	// cannot change.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="baseDomainPrefix is immutable"
	BaseDomainPrefix *BaseDomain `json:"baseDomainPrefix,omitempty"`

	// publicZoneID identifies the public DNS zone in the cloud. Public records are managed only when it is set. It cannot
	// change once it is not empty.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=258
	// +kubebuilder:validation:XValidation:rule="oldSelf == '' || self == oldSelf",message="publicZoneID is immutable"
	PublicZoneID string `json:"publicZoneID,omitempty"`

	// privateZoneID identifies the private DNS zone in the cloud. Private records are managed only when it is set. It
	// cannot change once it is not empty.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=265
	// +kubebuilder:validation:XValidation:rule="oldSelf == '' || self == oldSelf",message="privateZoneID is immutable"
	PrivateZoneID string `json:"privateZoneID,omitempty"`
}

// ImageContentSource says where the images of a repository may also be pulled from.
type ImageContentSource struct {
	// source is a registry or repository that releases refer to.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Source string `json:"source"`

	// mirrors lists repositories that hold the same content. They are tried in order, before the source.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=255
	// +kubebuilder:validation:items:MaxLength=255
	Mirrors []string `json:"mirrors,omitempty"`
}

// KubeconfigSecretRef names a Secret and the key in it that holds a kubeconfig.
type KubeconfigSecretRef struct {
	// name is the name of the Secret.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name"`

	// key is the key in the Secret.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Key string `json:"key"`
}

// APIEndpoint is where an API server is reached.
type APIEndpoint struct {
	// host is a host name or an IP address.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Host string `json:"host"`

	// port is a TCP port.
	//
	// +required
	Port int32 `json:"port"`
}

// OptionalCapability names an optional part of OpenShift.
//
// +kubebuilder:validation:Enum=ImageRegistry;openshift-samples;Insights;baremetal;Console;NodeTuning;Ingress
type OptionalCapability string

const (
	// ImageRegistryCapability is the image registry inside the hosted cluster.
	ImageRegistryCapability OptionalCapability = "ImageRegistry"
	// OpenShiftSamplesCapability is the set of sample image streams and templates.
	OpenShiftSamplesCapability OptionalCapability = "openshift-samples"
	// InsightsCapability is the reporter of health data.
	InsightsCapability OptionalCapability = "Insights"
	// BaremetalCapability is the management of bare-metal hosts.
	BaremetalCapability OptionalCapability = "baremetal"
	// ConsoleCapability is the web console.
	ConsoleCapability OptionalCapability = "Console"
	// NodeTuningCapability is the tuning of nodes; without it spec.tuningConfig of NodePools has no effect.
	NodeTuningCapability OptionalCapability = "NodeTuning"
	// IngressCapability is the default ingress; it can be disabled only together with Console.
	IngressCapability OptionalCapability = "Ingress"
)

// Capabilities switches optional parts of OpenShift on and off.
//
// +kubebuilder:validation:XValidation:rule="has(self.enabled) && has(self.disabled) ? self.enabled.all(e, !(e in self.disabled)) : true",message="a capability cannot be both enabled and disabled"
type Capabilities struct {
	// enabled lists capabilities to have besides the default ones. It cannot change.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=25
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="enabled is immutable"
	Enabled []OptionalCapability `json:"enabled,omitempty"`

	// disabled lists capabilities to do without. It cannot change.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=25
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="disabled is immutable"
	// +kubebuilder:validation:XValidation:rule="!self.exists(c, c == 'Ingress') || self.exists(c, c == 'Console')",message="Ingress can be disabled only together with Console"
	Disabled []OptionalCapability `json:"disabled,omitempty"`
}
