package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AuthenticationType names a way to authenticate users.
//
// +kubebuilder:validation:Enum="";None;IntegratedOAuth;OIDC
type AuthenticationType string

const (
	// AuthenticationTypeNone authenticates by certificates and service account tokens only.
	AuthenticationTypeNone AuthenticationType = "None"
	// AuthenticationTypeIntegratedOAuth uses OpenShift's OAuth server.
	AuthenticationTypeIntegratedOAuth AuthenticationType = "IntegratedOAuth"
	// AuthenticationTypeOIDC uses an OIDC provider of the user's.
	AuthenticationTypeOIDC AuthenticationType = "OIDC"
)

// AuthenticationSpec says how users are authenticated.
type AuthenticationSpec struct {
	// type names the way. Unset means IntegratedOAuth where the release has it.
	//
	// +optional
	Type AuthenticationType `json:"type,omitempty"`

	// oauthMetadata names a ConfigMap whose key oauthMetadata holds the discovery document of an OAuth server of the
	// user's.
	//
	// +optional
	OAuthMetadata ConfigMapNameReference `json:"oauthMetadata,omitzero"`

	// webhookTokenAuthenticators is not used.
	//
	// +optional
	// +listType=atomic
	WebhookTokenAuthenticators []DeprecatedWebhookTokenAuthenticator `json:"webhookTokenAuthenticators,omitempty"`

	// webhookTokenAuthenticator is asked about tokens that nothing else knows.
	//
	// +optional
	WebhookTokenAuthenticator *WebhookTokenAuthenticator `json:"webhookTokenAuthenticator,omitempty"`

	// serviceAccountIssuer is ignored: spec.issuerURL of the HostedCluster decides.
	//
	// +optional
	ServiceAccountIssuer string `json:"serviceAccountIssuer,omitempty"`

	// oidcProviders holds the OIDC provider when type is OIDC.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1
	OIDCProviders []OIDCProvider `json:"oidcProviders,omitempty"`
}

// AuthenticationStatus is what was found about authentication.
type AuthenticationStatus struct {
	// integratedOAuthMetadata names a ConfigMap whose key oauthMetadata holds the discovery document of OpenShift's OAuth
	// server.
	//
	// +optional
	IntegratedOAuthMetadata ConfigMapNameReference `json:"integratedOAuthMetadata,omitzero"`

	// oidcClients says which components use which OIDC client.
	//
	// +optional
	// +listType=map
	// +listMapKey=componentNamespace
	// +listMapKey=componentName
	// +kubebuilder:validation:MaxItems=20
	OIDCClients []OIDCClientStatus `json:"oidcClients,omitempty"`
}

// DeprecatedWebhookTokenAuthenticator is not used.
type DeprecatedWebhookTokenAuthenticator struct {
	// kubeConfig names a Secret.
	//
	// +optional
	KubeConfig SecretNameReference `json:"kubeConfig,omitzero"`
}

// WebhookTokenAuthenticator is a webhook that knows tokens.
type WebhookTokenAuthenticator struct {
	// kubeConfig names a Secret whose key kubeConfig says how to reach the webhook.
	//
	// +required
	KubeConfig SecretNameReference `json:"kubeConfig"`
}

// OIDCProvider is an OIDC provider of the user's.
type OIDCProvider struct {
	// name names the provider.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// issuer says whose tokens are accepted.
	//
	// +required
	Issuer TokenIssuer `json:"issuer"`

	// oidcClients lists the clients of components of the cluster.
	//
	// +optional
	// +listType=map
	// +listMapKey=componentNamespace
	// +listMapKey=componentName
	// +kubebuilder:validation:MaxItems=20
	OIDCClients []OIDCClientConfig `json:"oidcClients,omitempty"`

	// claimMappings says how claims of a token become a user.
	//
	// +required
	ClaimMappings TokenClaimMappings `json:"claimMappings"`

	// claimValidationRules must all hold for a token.
	//
	// +optional
	// +listType=atomic
	ClaimValidationRules []TokenClaimValidationRule `json:"claimValidationRules,omitempty"`

	// userValidationRules must all hold for the user that a token becomes.
	//
	// +optional
	// +listType=map
	// +listMapKey=expression
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	UserValidationRules []TokenUserValidationRule `json:"userValidationRules,omitempty"`

	// externalClaimsSources are asked, in order, for claims that the token lacks, before claims become a user. What a source
	// does not answer is left out; what it answers replaces a claim of the token (TechPreview).
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.mappings.all(m, self.filter(t, t.mappings.exists(n, n.name == m.name)).size() == 1))",message="a mapping's name may appear in one source only"
	ExternalClaimsSources []ExternalClaimsSource `json:"externalClaimsSources,omitempty"`
}

// TokenIssuer says whose tokens are accepted.
//
// +kubebuilder:validation:XValidation:rule="!has(self.discoveryURL) || self.discoveryURL.size() == 0 || self.discoveryURL.find('^.*[^/]') != self.issuerURL.find('^.*[^/]')",message="discoveryURL must differ from issuerURL"
type TokenIssuer struct {
	// issuerURL is the issuer of tokens. Unless discoveryURL is set, its discovery document lies below it.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="isURL(self)",message="issuerURL must be an absolute URL"
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https'",message="issuerURL must start with https://"
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getQuery() == {}",message="issuerURL cannot have a query"
	// +kubebuilder:validation:XValidation:rule="self.find('#(.+)$') == \"\"",message="issuerURL cannot have a fragment"
	// +kubebuilder:validation:XValidation:rule="self.find('@') == \"\"",message="issuerURL cannot have a user or password"
	URL string `json:"issuerURL"`

	// audiences lists audiences; a token must be for one of them.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Audiences []TokenAudience `json:"audiences"`

	// issuerCertificateAuthority names a ConfigMap whose key ca-bundle.crt holds the authorities of the issuer's
	// certificate. Unset means the public ones.
	//
	// +optional
	CertificateAuthority ConfigMapNameReference `json:"issuerCertificateAuthority,omitzero"`

	// discoveryURL is where the discovery document is, when that does not lie below issuerURL.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self)",message="discoveryURL must be an absolute URL"
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https'",message="discoveryURL must start with https://"
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getQuery().size() == 0",message="discoveryURL cannot have a query"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^#]*$')",message="discoveryURL cannot have a fragment"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^https://.+:.+@.+/.*$')",message="discoveryURL cannot have a user or password"
	DiscoveryURL string `json:"discoveryURL,omitempty"`
}

// TokenAudience is whom a token is for.
//
// +kubebuilder:validation:MinLength=1
type TokenAudience string

// OIDCClientConfig is the client of one component.
type OIDCClientConfig struct {
	// componentName is the name of the component.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ComponentName string `json:"componentName"`

	// componentNamespace is the namespace of the component.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ComponentNamespace string `json:"componentNamespace"`

	// clientID is the client's ID at the provider.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	ClientID string `json:"clientID"`

	// clientSecret names a Secret whose key clientSecret holds the client's password. Unset for public clients.
	//
	// +optional
	ClientSecret SecretNameReference `json:"clientSecret,omitzero"`

	// extraScopes lists scopes to ask for besides openid.
	//
	// +optional
	// +listType=set
	ExtraScopes []string `json:"extraScopes,omitempty"`
}

// ConsumingUser is a service account.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:Pattern=`^system:serviceaccount:[a-z0-9]([-a-z0-9]*[a-z0-9])?:[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
type ConsumingUser string

// OIDCClientStatus says which OIDC clients a component uses.
type OIDCClientStatus struct {
	// componentName is the name of the component.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ComponentName string `json:"componentName"`

	// componentNamespace is the namespace of the component.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ComponentNamespace string `json:"componentNamespace"`

	// currentOIDCClients lists the clients that the component uses now.
	//
	// +optional
	// +listType=map
	// +listMapKey=issuerURL
	// +listMapKey=clientID
	CurrentOIDCClients []OIDCClientReference `json:"currentOIDCClients,omitempty"`

	// consumingUsers lists the service accounts that must read the client's Secret.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5
	ConsumingUsers []ConsumingUser `json:"consumingUsers,omitempty"`

	// conditions are the component's own: Available, Degraded, Progressing.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// OIDCClientReference names an OIDC client.
type OIDCClientReference struct {
	// oidcProviderName is the name of the provider.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	OIDCProviderName string `json:"oidcProviderName"`

	// issuerURL is the issuer of the provider.
	//
	// +required
	// +kubebuilder:validation:Pattern=`^https:\/\/[^\s]`
	IssuerURL string `json:"issuerURL"`

	// clientID is the client's ID at the provider.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	ClientID string `json:"clientID"`
}
