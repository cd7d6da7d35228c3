package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OAuthSpec configures OpenShift's OAuth server.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tokenConfig) || !has(self.tokenConfig.accessTokenInactivityTimeout) || duration(self.tokenConfig.accessTokenInactivityTimeout).getSeconds() >= 300",message="tokenConfig.accessTokenInactivityTimeout must be at least 300 seconds"
type OAuthSpec struct {
	// identityProviders lists ways to log in.
	//
	// +optional
	// +listType=atomic
	IdentityProviders []IdentityProvider `json:"identityProviders,omitempty"`

	// tokenConfig says how long tokens live.
	//
	// +optional
	TokenConfig TokenConfig `json:"tokenConfig,omitzero"`

	// templates replaces pages.
	//
	// +optional
	Templates OAuthTemplates `json:"templates,omitzero"`
}

// TokenConfig says how long tokens live.
type TokenConfig struct {
	// accessTokenMaxAgeSeconds is the life of access tokens. Unset means a day.
	//
	// +optional
	AccessTokenMaxAgeSeconds int32 `json:"accessTokenMaxAgeSeconds,omitempty"`

	// accessTokenInactivityTimeoutSeconds is not used.
	//
	// +optional
	AccessTokenInactivityTimeoutSeconds int32 `json:"accessTokenInactivityTimeoutSeconds,omitempty"`

	// accessTokenInactivityTimeout is how long a token may go unused, as a Go duration of at least 300s. Unset means for
	// ever.
	//
	// +optional
	AccessTokenInactivityTimeout *metav1.Duration `json:"accessTokenInactivityTimeout,omitempty"`
}

// OAuthTemplates replaces pages.
type OAuthTemplates struct {
	// login names a Secret whose key login.html is the page that asks for name and password.
	//
	// +optional
	Login SecretNameReference `json:"login,omitzero"`

	// providerSelection names a Secret whose key providers.html is the page that offers identity providers.
	//
	// +optional
	ProviderSelection SecretNameReference `json:"providerSelection,omitzero"`

	// error names a Secret whose key errors.html is the page that shows errors.
	//
	// +optional
	Error SecretNameReference `json:"error,omitzero"`
}

// MappingMethodType says what happens when a user of an identity provider meets one of the cluster with that name.
type MappingMethodType string

const (
	// MappingMethodClaim fails when the name is taken; it is the default.
	MappingMethodClaim MappingMethodType = "claim"
	// MappingMethodLookup uses prepared mappings only.
	MappingMethodLookup MappingMethodType = "lookup"
	// MappingMethodAdd makes them one user.
	MappingMethodAdd MappingMethodType = "add"
)

// IdentityProviderType names a kind of identity provider.
type IdentityProviderType string

const (
	// IdentityProviderTypeBasicAuth asks a server with HTTP basic authentication.
	IdentityProviderTypeBasicAuth IdentityProviderType = "BasicAuth"
	// IdentityProviderTypeGitHub asks GitHub.
	IdentityProviderTypeGitHub IdentityProviderType = "GitHub"
	// IdentityProviderTypeGitLab asks GitLab.
	IdentityProviderTypeGitLab IdentityProviderType = "GitLab"
	// IdentityProviderTypeGoogle asks Google.
	IdentityProviderTypeGoogle IdentityProviderType = "Google"
	// IdentityProviderTypeHTPasswd reads a password file.
	IdentityProviderTypeHTPasswd IdentityProviderType = "HTPasswd"
	// IdentityProviderTypeKeystone asks OpenStack Keystone.
	IdentityProviderTypeKeystone IdentityProviderType = "Keystone"
	// IdentityProviderTypeLDAP asks an LDAP server.
	IdentityProviderTypeLDAP IdentityProviderType = "LDAP"
	// IdentityProviderTypeOpenID asks an OpenID Connect server.
	IdentityProviderTypeOpenID IdentityProviderType = "OpenID"
	// IdentityProviderTypeRequestHeader believes a proxy.
	IdentityProviderTypeRequestHeader IdentityProviderType = "RequestHeader"
)

// IdentityProvider is a way to log in.
type IdentityProvider struct {
	// name names the provider; it goes into identities and callback URLs.
	//
	// +optional
	Name string `json:"name,omitempty"`

	// mappingMethod says what happens when the name of a user is taken. Unset means claim.
	//
	// +optional
	MappingMethod MappingMethodType `json:"mappingMethod,omitempty"`

	IdentityProviderConfig `json:",inline"`
}

// IdentityProviderConfig is a union over type.
type IdentityProviderConfig struct {
	// type names the kind of provider.
	//
	// +optional
	Type IdentityProviderType `json:"type,omitempty"`

	// basicAuth configures type BasicAuth.
	//
	// +optional
	BasicAuth *BasicAuthIdentityProvider `json:"basicAuth,omitempty"`

	// github configures type GitHub.
	//
	// +optional
	GitHub *GitHubIdentityProvider `json:"github,omitempty"`

	// gitlab configures type GitLab.
	//
	// +optional
	GitLab *GitLabIdentityProvider `json:"gitlab,omitempty"`

	// google configures type Google.
	//
	// +optional
	Google *GoogleIdentityProvider `json:"google,omitempty"`

	// htpasswd configures type HTPasswd.
	//
	// +optional
	HTPasswd *HTPasswdIdentityProvider `json:"htpasswd,omitempty"`

	// keystone configures type Keystone.
	//
	// +optional
	Keystone *KeystoneIdentityProvider `json:"keystone,omitempty"`

	// ldap configures type LDAP.
	//
	// +optional
	LDAP *LDAPIdentityProvider `json:"ldap,omitempty"`

	// openID configures type OpenID.
	//
	// +optional
	OpenID *OpenIDIdentityProvider `json:"openID,omitempty"`

	// requestHeader configures type RequestHeader.
	//
	// +optional
	RequestHeader *RequestHeaderIdentityProvider `json:"requestHeader,omitempty"`
}

// OAuthRemoteConnectionInfo says how to reach a server.
type OAuthRemoteConnectionInfo struct {
	// url is the URL of the server.
	//
	// +optional
	URL string `json:"url"`

	// ca names a ConfigMap whose key ca.crt holds the authorities of the server's certificate. Unset means the public ones.
	//
	// +optional
	CA ConfigMapNameReference `json:"ca,omitzero"`

	// tlsClientCert names a Secret whose key tls.crt holds a client certificate.
	//
	// +optional
	TLSClientCert SecretNameReference `json:"tlsClientCert,omitzero"`

	// tlsClientKey names a Secret whose key tls.key holds the key of the client certificate.
	//
	// +optional
	TLSClientKey SecretNameReference `json:"tlsClientKey,omitzero"`
}

// BasicAuthIdentityProvider asks a server with HTTP basic authentication.
type BasicAuthIdentityProvider struct {
	OAuthRemoteConnectionInfo `json:",inline"`
}

// HTPasswdIdentityProvider reads a password file.
type HTPasswdIdentityProvider struct {
	// fileData names a Secret whose key htpasswd holds the file.
	//
	// +optional
	FileData SecretNameReference `json:"fileData,omitzero"`
}

// LDAPIdentityProvider asks an LDAP server.
type LDAPIdentityProvider struct {
	// url is an RFC 2255 URL: host, base, attribute and filter of the search.
	//
	// +optional
	URL string `json:"url"`

	// bindDN is the name that the search is made under. Unset means anonymously.
	//
	// +optional
	BindDN string `json:"bindDN,omitempty"`

	// bindPassword names a Secret whose key bindPassword holds the password for the search.
	//
	// +optional
	BindPassword SecretNameReference `json:"bindPassword,omitzero"`

	// insecure says not to use TLS.
	//
	// +optional
	Insecure bool `json:"insecure"`

	// ca names a ConfigMap whose key ca.crt holds the authorities of the server's certificate.
	//
	// +optional
	CA ConfigMapNameReference `json:"ca,omitzero"`

	// attributes says which attributes make a user.
	//
	// +optional
	Attributes LDAPAttributeMapping `json:"attributes,omitzero"`
}

// LDAPAttributeMapping says which attributes make a user. The first that is not empty counts.
type LDAPAttributeMapping struct {
	// id lists attributes for the ID of the user; one is needed.
	//
	// +optional
	ID []string `json:"id,omitempty"`

	// preferredUsername lists attributes for the name of the user.
	//
	// +optional
	PreferredUsername []string `json:"preferredUsername,omitempty"`

	// name lists attributes for the name to show.
	//
	// +optional
	Name []string `json:"name,omitempty"`

	// email lists attributes for the mail address.
	//
	// +optional
	Email []string `json:"email,omitempty"`
}

// KeystoneIdentityProvider asks OpenStack Keystone.
type KeystoneIdentityProvider struct {
	OAuthRemoteConnectionInfo `json:",inline"`

	// domainName is the Keystone domain.
	//
	// +optional
	DomainName string `json:"domainName,omitempty"`
}

// RequestHeaderIdentityProvider believes a proxy.
type RequestHeaderIdentityProvider struct {
	// loginURL is where browsers are sent to log in; ${url} and ${query} in it stand for the original request.
	//
	// +optional
	LoginURL string `json:"loginURL,omitempty"`

	// challengeURL is where other clients are sent to log in.
	//
	// +optional
	ChallengeURL string `json:"challengeURL,omitempty"`

	// ca names a ConfigMap whose key ca.crt holds the authorities of the proxy's client certificate.
	//
	// +optional
	ClientCA ConfigMapNameReference `json:"ca,omitzero"`

	// clientCommonNames lists names that the client certificate may have. Empty means any.
	//
	// +optional
	ClientCommonNames []string `json:"clientCommonNames,omitempty"`

	// headers lists headers with the ID of the user.
	//
	// +optional
	Headers []string `json:"headers,omitempty"`

	// preferredUsernameHeaders lists headers with the name of the user.
	//
	// +optional
	PreferredUsernameHeaders []string `json:"preferredUsernameHeaders,omitempty"`

	// nameHeaders lists headers with the name to show.
	//
	// +optional
	NameHeaders []string `json:"nameHeaders,omitempty"`

	// emailHeaders lists headers with the mail address.
	//
	// +optional
	EmailHeaders []string `json:"emailHeaders,omitempty"`
}

// GitHubIdentityProvider asks GitHub.
type GitHubIdentityProvider struct {
	// clientID is the ID of the OAuth application.
	//
	// +optional
	ClientID string `json:"clientID"`

	// clientSecret names a Secret whose key clientSecret holds the password of the OAuth application.
	//
	// +optional
	ClientSecret SecretNameReference `json:"clientSecret,omitzero"`

	// organizations lists organizations; users must be a member of one.
	//
	// +optional
	Organizations []string `json:"organizations,omitempty"`

	// teams lists teams, as organization/team; users must be a member of one.
	//
	// +optional
	Teams []string `json:"teams,omitempty"`

	// hostname is the host of a GitHub Enterprise instance.
	//
	// +optional
	Hostname string `json:"hostname,omitempty"`

	// ca names a ConfigMap whose key ca.crt holds the authorities of that instance's certificate.
	//
	// +optional
	CA ConfigMapNameReference `json:"ca,omitzero"`
}

// GitLabIdentityProvider asks GitLab.
type GitLabIdentityProvider struct {
	// clientID is the ID of the OAuth application.
	//
	// +optional
	ClientID string `json:"clientID"`

	// clientSecret names a Secret whose key clientSecret holds the password of the OAuth application.
	//
	// +optional
	ClientSecret SecretNameReference `json:"clientSecret,omitzero"`

	// url is the URL of the GitLab instance.
	//
	// +optional
	URL string `json:"url"`

	// ca names a ConfigMap whose key ca.crt holds the authorities of the instance's certificate.
	//
	// +optional
	CA ConfigMapNameReference `json:"ca,omitzero"`
}

// GoogleIdentityProvider asks Google.
type GoogleIdentityProvider struct {
	// clientID is the ID of the OAuth application.
	//
	// +optional
	ClientID string `json:"clientID"`

	// clientSecret names a Secret whose key clientSecret holds the password of the OAuth application.
	//
	// +optional
	ClientSecret SecretNameReference `json:"clientSecret,omitzero"`

	// hostedDomain is the domain that accounts must be of.
	//
	// +optional
	HostedDomain string `json:"hostedDomain,omitempty"`
}

// OpenIDIdentityProvider asks an OpenID Connect server.
type OpenIDIdentityProvider struct {
	// clientID is the ID of the OAuth application.
	//
	// +optional
	ClientID string `json:"clientID"`

	// clientSecret names a Secret whose key clientSecret holds the password of the OAuth application.
	//
	// +optional
	ClientSecret SecretNameReference `json:"clientSecret,omitzero"`

	// ca names a ConfigMap whose key ca.crt holds the authorities of the server's certificate.
	//
	// +optional
	CA ConfigMapNameReference `json:"ca,omitzero"`

	// extraScopes lists scopes to ask for besides openid.
	//
	// +optional
	ExtraScopes []string `json:"extraScopes,omitempty"`

	// extraAuthorizeParameters are added to the request for authorization.
	//
	// +optional
	ExtraAuthorizeParameters map[string]string `json:"extraAuthorizeParameters,omitempty"`

	// issuer is the URL of the server.
	//
	// +optional
	Issuer string `json:"issuer"`

	// claims says which claims make a user.
	//
	// +optional
	Claims OpenIDClaims `json:"claims,omitzero"`
}

// OpenIDClaim is the name of a claim.
//
// +kubebuilder:validation:MinLength=1
type OpenIDClaim string

// OpenIDClaims says which claims make a user. The first that is not empty counts; the ID is always sub.
type OpenIDClaims struct {
	// preferredUsername lists claims for the name of the user.
	//
	// +optional
	// +listType=atomic
	PreferredUsername []string `json:"preferredUsername,omitempty"`

	// name lists claims for the name to show.
	//
	// +optional
	// +listType=atomic
	Name []string `json:"name,omitempty"`

	// email lists claims for the mail address.
	//
	// +optional
	// +listType=atomic
	Email []string `json:"email,omitempty"`

	// groups lists claims for the groups of the user.
	//
	// +optional
	// +listType=atomic
	Groups []OpenIDClaim `json:"groups,omitempty"`
}
