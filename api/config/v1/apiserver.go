package v1

// APIServerSpec configures kube-apiserver.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.tlsAdherence) || has(self.tlsAdherence)",message="tlsAdherence cannot be removed once it is set"
type APIServerSpec struct {
	// servingCerts lists serving certificates for names that the user chooses.
	//
	// +optional
	ServingCerts APIServerServingCerts `json:"servingCerts,omitzero"`

	// clientCA names a ConfigMap whose key ca-bundle.crt holds certificates of authorities, besides the internal ones,
	// whose client certificates are accepted.
	//
	// +optional
	ClientCA ConfigMapNameReference `json:"clientCA,omitzero"`

	// additionalCORSAllowedOrigins lists regular expressions for origins that browsers may call the API from.
	//
	// +optional
	// +listType=atomic
	AdditionalCORSAllowedOrigins []string `json:"additionalCORSAllowedOrigins,omitempty"`

	// encryption is accepted and ignored: spec.secretEncryption of the HostedCluster decides.
	//
	// +optional
	Encryption APIServerEncryption `json:"encryption,omitzero"`

	// tlsSecurityProfile says which TLS versions and ciphers servers accept. Unset means Intermediate.
	//
	// +optional
	TLSSecurityProfile *TLSSecurityProfile `json:"tlsSecurityProfile,omitempty"`

	// tlsAdherence says which components keep to tlsSecurityProfile: those that always did, or every one. It can change, but
	// not be removed (TechPreview).
	//
	// +optional
	TLSAdherence TLSAdherencePolicy `json:"tlsAdherence,omitempty"`

	// audit says what is written to the audit log.
	//
	// +optional
	// +kubebuilder:default:={profile: "Default"}
	Audit Audit `json:"audit,omitzero"`
}

// AuditProfileType names a choice of requests and details to log.
//
// +kubebuilder:validation:Enum=Default;WriteRequestBodies;AllRequestBodies;None
type AuditProfileType string

const (
	// NoneAuditProfileType logs nothing.
	NoneAuditProfileType AuditProfileType = "None"
	// DefaultAuditProfileType logs metadata of requests.
	DefaultAuditProfileType AuditProfileType = "Default"
	// WriteRequestBodiesAuditProfileType logs metadata of every request and bodies of writing ones.
	WriteRequestBodiesAuditProfileType AuditProfileType = "WriteRequestBodies"
	// AllRequestBodiesAuditProfileType logs metadata and bodies of every request.
	AllRequestBodiesAuditProfileType AuditProfileType = "AllRequestBodies"
)

// Audit says what is written to the audit log.
type Audit struct {
	// profile holds for every request that no custom rule matches.
	//
	// +optional
	// +kubebuilder:default:="Default"
	Profile AuditProfileType `json:"profile,omitempty"`

	// customRules hold for requests of members of certain groups. The first match decides.
	//
	// +optional
	// +listType=map
	// +listMapKey=group
	CustomRules []AuditCustomRule `json:"customRules,omitempty"`
}

// AuditCustomRule is a profile for members of a group.
type AuditCustomRule struct {
	// group is the name of the group.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	Group string `json:"group"`

	// profile holds for members of the group.
	//
	// +required
	Profile AuditProfileType `json:"profile"`
}

// APIServerServingCerts lists serving certificates.
type APIServerServingCerts struct {
	// namedCertificates are chosen by the name that a client asks for (SNI). The internal names cannot be replaced.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	NamedCertificates []APIServerNamedServingCert `json:"namedCertificates,omitempty"`
}

// APIServerNamedServingCert is a serving certificate for certain names.
type APIServerNamedServingCert struct {
	// names lists DNS names, possibly with a leading wildcard. Unset means those of the certificate.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Names []string `json:"names,omitempty"`

	// servingCertificate names a Secret of type kubernetes.io/tls.
	//
	// +optional
	ServingCertificate SecretNameReference `json:"servingCertificate,omitzero"`
}

// TLSAdherencePolicy says which components keep to the TLS security profile.
//
// +kubebuilder:validation:Enum=LegacyAdheringComponentsOnly;StrictAllComponents
type TLSAdherencePolicy string

const (
	// TLSAdherenceLegacyAdheringComponentsOnly means those that always did.
	TLSAdherenceLegacyAdheringComponentsOnly TLSAdherencePolicy = "LegacyAdheringComponentsOnly"
	// TLSAdherenceStrictAllComponents means every component.
	TLSAdherenceStrictAllComponents TLSAdherencePolicy = "StrictAllComponents"
)

// EncryptionType names a way to encrypt data at rest. KMS is a preview.
//
// +kubebuilder:validation:Enum="";identity;aescbc;aesgcm;KMS
type EncryptionType string

// APIServerEncryption says how data is encrypted at rest. It is a union over type.
//
// +kubebuilder:validation:XValidation:rule="has(self.type) && self.type == 'KMS' ? has(self.kms) : !has(self.kms)",message="kms is required when type is KMS, and forbidden otherwise"
type APIServerEncryption struct {
	// type names the way; empty means none.
	//
	// +optional
	Type EncryptionType `json:"type,omitempty"`

	// kms says which service holds the keys when type is KMS (TechPreview).
	//
	// +optional
	KMS *KMSPluginConfig `json:"kms,omitempty"`
}
