package v1

// ImageSpec says where images may come from.
type ImageSpec struct {
	// allowedRegistriesForImport lists registries that users may import images from. Unset means any.
	//
	// +optional
	// +listType=atomic
	AllowedRegistriesForImport []RegistryLocation `json:"allowedRegistriesForImport,omitempty"`

	// externalRegistryHostnames lists names by which the image registry is reached from outside; the first is shown to
	// users.
	//
	// +optional
	// +listType=atomic
	ExternalRegistryHostnames []string `json:"externalRegistryHostnames,omitempty"`

	// additionalTrustedCA names a ConfigMap whose keys are registries (host or host..port) and whose values are
	// certificates to trust for them.
	//
	// +optional
	AdditionalTrustedCA ConfigMapNameReference `json:"additionalTrustedCA,omitzero"`

	// registrySources says how nodes treat registries.
	//
	// +optional
	RegistrySources RegistrySources `json:"registrySources,omitzero"`

	// imageStreamImportMode says what an import of a multi-architecture image takes: Legacy takes the image of one architecture,
	// PreserveOriginal the whole list. Unset or empty means that the release decides (TechPreview).
	//
	// +optional
	ImageStreamImportMode ImportModeType `json:"imageStreamImportMode,omitempty"`
}

// ImportModeType says what an import of a multi-architecture image takes.
//
// +kubebuilder:validation:Enum="";Legacy;PreserveOriginal
type ImportModeType string

const (
	// ImportModeLegacy takes the image of one architecture.
	ImportModeLegacy ImportModeType = "Legacy"
	// ImportModePreserveOriginal takes the whole list.
	ImportModePreserveOriginal ImportModeType = "PreserveOriginal"
)

// RegistryLocation names a registry.
type RegistryLocation struct {
	// domainName is the host, and maybe the port, of the registry. It may hold wildcards.
	//
	// +optional
	DomainName string `json:"domainName,omitempty"`

	// insecure says that the registry is reached without TLS, or with a certificate that nobody vouches for.
	//
	// +optional
	Insecure bool `json:"insecure,omitempty"`
}

// RegistryPattern is a registry or repository: a host with an optional port and path, or a wildcard host such as
// *.example.com.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule=`self.matches('^\\*(?:\\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))+$') || self.matches('^((?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:(?:\\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))+)?(?::[0-9]+)?)(?:(?:/[a-z0-9]+(?:(?:(?:[._]|__|[-]*)[a-z0-9]+)+)?)+)?$')`,message="a registry must look like registry.example.com, registry.example.com:5000/repository or *.example.com"
type RegistryPattern string

// RegistrySources says how nodes treat registries.
//
// +kubebuilder:validation:XValidation:rule="has(self.blockedRegistries) ? !has(self.allowedRegistries) : true",message="blockedRegistries and allowedRegistries cannot both be set"
type RegistrySources struct {
	// insecureRegistries lists registries that are reached without TLS, or with a certificate that nobody vouches for.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	InsecureRegistries []RegistryPattern `json:"insecureRegistries,omitempty"`

	// blockedRegistries lists registries that nothing is pulled from. It excludes allowedRegistries.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	BlockedRegistries []RegistryPattern `json:"blockedRegistries,omitempty"`

	// allowedRegistries lists the only registries that images are pulled from. It excludes blockedRegistries.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	AllowedRegistries []RegistryPattern `json:"allowedRegistries,omitempty"`

	// containerRuntimeSearchRegistries lists registries to look in for images without one.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:Format=hostname
	ContainerRuntimeSearchRegistries []string `json:"containerRuntimeSearchRegistries,omitempty"`
}
