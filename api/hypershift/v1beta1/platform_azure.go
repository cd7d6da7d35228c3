package v1beta1

// AzureClientID is the client ID of an identity: a UUID.
//
// +kubebuilder:validation:MinLength=36
// +kubebuilder:validation:MaxLength=36
// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$')",message="a client ID must be a UUID: 8-4-4-4-12 hexadecimal digits"
type AzureClientID string

// ObjectEncodingFormat says how a credential is written in the key vault.
//
// +kubebuilder:validation:Enum=utf-8;hex;base64
type ObjectEncodingFormat string

// ManagedIdentity is an identity whose credentials are in the key vault of the management cluster.
type ManagedIdentity struct {
	// clientID is the client ID of the identity.
	//
	// +optional
	ClientID AzureClientID `json:"clientID,omitempty"`

	// objectEncoding says how the credential is written in the key vault.
	//
	// +required
	ObjectEncoding ObjectEncodingFormat `json:"objectEncoding"`

	// credentialsSecretName is the name of the credential in the key vault.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=127
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9-]+$`
	CredentialsSecretName string `json:"credentialsSecretName"`
}

// WorkloadIdentity is an identity that a component takes on by its service account token.
type WorkloadIdentity struct {
	// clientID is the client ID of the identity.
	//
	// +required
	ClientID AzureClientID `json:"clientID"`
}

// AzurePlatformSpec describes Microsoft Azure.
type AzurePlatformSpec struct {
	// azureAuthenticationConfig says how components prove themselves to Azure.
	//
	// +required
	AzureAuthenticationConfig AzureAuthenticationConfiguration `json:"azureAuthenticationConfig"`
}

// AzureAuthenticationConfiguration says how components prove themselves to Azure.
type AzureAuthenticationConfiguration struct {
	// azureAuthenticationConfigType names the way.
	//
	// +required
	// +kubebuilder:validation:Enum=ManagedIdentities;WorkloadIdentities
	AzureAuthenticationConfigType string `json:"azureAuthenticationConfigType"`
}
