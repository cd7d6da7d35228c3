package v1

// TLSProfileType names a TLS security profile.
//
// +kubebuilder:validation:Enum=Old;Intermediate;Modern;Custom
type TLSProfileType string

const (
	// TLSProfileOldType is for clients that nothing else works with.
	TLSProfileOldType TLSProfileType = "Old"
	// TLSProfileIntermediateType is the default.
	TLSProfileIntermediateType TLSProfileType = "Intermediate"
	// TLSProfileModernType accepts TLS 1.3 only.
	TLSProfileModernType TLSProfileType = "Modern"
	// TLSProfileCustomType is spelled out.
	TLSProfileCustomType TLSProfileType = "Custom"
)

// TLSSecurityProfile is a union over type.
//
// +union
type TLSSecurityProfile struct {
	// type names the profile.
	//
	// +unionDiscriminator
	// +optional
	Type TLSProfileType `json:"type,omitempty"`

	// old is empty.
	//
	// +optional
	// +nullable
	Old *OldTLSProfile `json:"old,omitempty"`

	// intermediate is empty.
	//
	// +optional
	// +nullable
	Intermediate *IntermediateTLSProfile `json:"intermediate,omitempty"`

	// modern is empty.
	//
	// +optional
	// +nullable
	Modern *ModernTLSProfile `json:"modern,omitempty"`

	// custom lists ciphers and the lowest version when type is Custom.
	//
	// +optional
	// +nullable
	Custom *CustomTLSProfile `json:"custom,omitempty"`
}

// OldTLSProfile is empty.
type OldTLSProfile struct{}

// IntermediateTLSProfile is empty.
type IntermediateTLSProfile struct{}

// ModernTLSProfile is empty.
type ModernTLSProfile struct{}

// CustomTLSProfile spells a profile out.
type CustomTLSProfile struct {
	// ciphers lists cipher suites by their OpenSSL names. TLS 1.3 has its own fixed set.
	//
	// +optional
	// +listType=atomic
	Ciphers []string `json:"ciphers,omitempty"`

	// minTLSVersion is the lowest version to accept.
	//
	// +optional
	MinTLSVersion TLSProtocolVersion `json:"minTLSVersion,omitempty"`

	// groups lists groups for the exchange of keys, from the preferred one down. Unset means those of the server's library
	// (TechPreview).
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=7
	Groups []TLSGroup `json:"groups,omitempty"`
}

// TLSGroup names a group for the exchange of keys.
//
// +kubebuilder:validation:Enum=X25519;secp256r1;secp384r1;secp521r1;X25519MLKEM768;SecP256r1MLKEM768;SecP384r1MLKEM1024
type TLSGroup string

// TLSProtocolVersion names a version of TLS.
//
// +kubebuilder:validation:Enum=VersionTLS10;VersionTLS11;VersionTLS12;VersionTLS13
type TLSProtocolVersion string

const (
	// VersionTLS10 is TLS 1.0.
	VersionTLS10 TLSProtocolVersion = "VersionTLS10"
	// VersionTLS11 is TLS 1.1.
	VersionTLS11 TLSProtocolVersion = "VersionTLS11"
	// VersionTLS12 is TLS 1.2.
	VersionTLS12 TLSProtocolVersion = "VersionTLS12"
	// VersionTLS13 is TLS 1.3.
	VersionTLS13 TLSProtocolVersion = "VersionTLS13"
)
