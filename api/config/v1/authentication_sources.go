package v1

// ExternalClaimsSource is a server that is asked for claims which tokens lack.
type ExternalClaimsSource struct {
	// authentication says how the server knows who asks. Unset means that it does not.
	//
	// +optional
	Authentication *ExternalSourceAuthentication `json:"authentication,omitempty"`

	// tls says which certificate the server has. Unset means one of a public authority.
	//
	// +optional
	TLS *ExternalSourceTLS `json:"tls,omitempty"`

	// url is what is asked.
	//
	// +required
	URL SourceURL `json:"url"`

	// mappings make claims out of the answer. A name may appear in one source only.
	//
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Mappings []SourcedClaimMapping `json:"mappings"`

	// predicates must all be true, or the server is not asked. Unset means that it always is.
	//
	// +optional
	// +listType=map
	// +listMapKey=expression
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Predicates []ExternalSourcePredicate `json:"predicates,omitempty"`
}

// ExternalSourceAuthenticationType names a way to tell a source of claims who asks.
//
// +kubebuilder:validation:Enum=RequestProvidedToken;ClientCredential
type ExternalSourceAuthenticationType string

const (
	// ExternalSourceAuthenticationTypeRequestProvidedToken shows the token that the claims are for.
	ExternalSourceAuthenticationTypeRequestProvidedToken ExternalSourceAuthenticationType = "RequestProvidedToken"
	// ExternalSourceAuthenticationTypeClientCredential shows a token that was got with OAuth 2.0 client credentials.
	ExternalSourceAuthenticationTypeClientCredential ExternalSourceAuthenticationType = "ClientCredential"
)

// ExternalSourceAuthentication says how a source of claims knows who asks. It is a union over type.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'ClientCredential' ? has(self.clientCredential) : !has(self.clientCredential)",message="clientCredential is required when type is ClientCredential, and forbidden otherwise"
type ExternalSourceAuthentication struct {
	// type names the way.
	//
	// +required
	Type ExternalSourceAuthenticationType `json:"type"`

	// clientCredential says how a token is got when type is ClientCredential.
	//
	// +optional
	ClientCredential *ClientCredentialConfig `json:"clientCredential,omitempty"`
}

// ClientCredentialConfig says how a token is got with OAuth 2.0 client credentials.
type ClientCredentialConfig struct {
	// clientID is the ID of the client.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[[:print:]]+$')",message="clientID may hold printable ASCII characters only"
	ClientID string `json:"clientID"`

	// clientSecret names a Secret whose key client-secret holds the password of the client.
	//
	// +required
	ClientSecret ClientSecretReference `json:"clientSecret"`

	// tokenEndpoint is the HTTPS URL that gives tokens. It has a path, and neither query nor fragment nor user.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self)",message="tokenEndpoint must be an absolute URL"
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https'",message="tokenEndpoint must start with https://"
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getHost() != ''",message="tokenEndpoint must have a host"
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getEscapedPath() != ''",message="tokenEndpoint must have a path"
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getQuery() == {}",message="tokenEndpoint cannot have a query"
	// +kubebuilder:validation:XValidation:rule="self.find('#(.+)$') == ''",message="tokenEndpoint cannot have a fragment"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^https://[^/]+@.+$')",message="tokenEndpoint cannot have a user or password"
	TokenEndpoint string `json:"tokenEndpoint"`

	// scopes lists what the token is to be good for. Unset means what the endpoint gives by itself.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Scopes []OAuth2Scope `json:"scopes,omitempty"`

	// tls says which certificate the endpoint has. Unset means one of a public authority.
	//
	// +optional
	TLS *ExternalSourceTLS `json:"tls,omitempty"`
}

// OAuth2Scope is what a token is good for (RFC 6749, appendix A.4).
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule=`self.matches('^[!#-\\[\\]-~]+$')`,message="a scope may hold printable ASCII characters only, and neither spaces nor double quotes nor backslashes"
type OAuth2Scope string

// ExternalSourceTLS says which certificate a server has.
type ExternalSourceTLS struct {
	// certificateAuthority names a ConfigMap whose key ca-bundle.crt holds the authorities of the certificate.
	//
	// +required
	CertificateAuthority CertificateAuthorityReference `json:"certificateAuthority"`
}

// SourceURL is what a source of claims is asked.
type SourceURL struct {
	// hostname is the server's name, and possibly ':' and a port up to 65535.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=259
	// +kubebuilder:validation:XValidation:rule="isURL('https://' + self)",message="hostname must be the name of a host, and possibly ':' and a port"
	// +kubebuilder:validation:XValidation:rule="self.split(':')[0].size() <= 253 && self.split(':')[0].matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="hostname must be a DNS name of at most 253 characters in lower case, and possibly ':' and a port"
	// +kubebuilder:validation:XValidation:rule="self.split(':').size() < 2 || int(self.split(':')[1]) <= 65535",message="the port in hostname cannot be greater than 65535"
	Hostname string `json:"hostname"`

	// pathExpression is a CEL expression that gives a list of strings, the parts of the path; it knows the variable claims.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	PathExpression string `json:"pathExpression"`
}

// SourcedClaimMapping makes one claim out of an answer.
type SourcedClaimMapping struct {
	// name is the claim's.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z_]+$')",message="name may hold lower-case letters and underscores only"
	Name string `json:"name"`

	// expression is a CEL expression that gives the claim; it knows the variable response.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Expression string `json:"expression"`
}

// ExternalSourcePredicate says when a source of claims is asked.
type ExternalSourcePredicate struct {
	// expression is a CEL expression that gives a boolean; it knows the variable claims.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Expression string `json:"expression"`
}

// ClientSecretReference names a Secret.
type ClientSecretReference struct {
	// name is the Secret's.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must consist of lower-case letters, digits, '-' and '.', and start and end with a letter or digit"
	Name string `json:"name"`
}

// CertificateAuthorityReference names a ConfigMap.
type CertificateAuthorityReference struct {
	// name is the ConfigMap's.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must consist of lower-case letters, digits, '-' and '.', and start and end with a letter or digit"
	Name string `json:"name"`
}
