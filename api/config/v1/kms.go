package v1

// KMSProviderType names a kind of key management service.
//
// +kubebuilder:validation:Enum=Vault
type KMSProviderType string

// VaultKMSProvider is HashiCorp Vault.
const VaultKMSProvider KMSProviderType = "Vault"

// KMSPluginConfig says which service holds the keys of encryption at rest. It is a union over type.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'Vault' ? has(self.vault) : !has(self.vault)",message="vault is required when type is Vault, and forbidden otherwise"
// +union
type KMSPluginConfig struct {
	// type names the kind of service.
	//
	// +required
	// +unionDiscriminator
	Type KMSProviderType `json:"type"`

	// vault says how to reach a Vault server when type is Vault.
	//
	// +optional
	// +unionMember
	Vault *VaultKMSPluginConfig `json:"vault,omitempty"`
}

// VaultKMSPluginConfig says how the plugin beside kube-apiserver reaches a Vault server of the user's.
type VaultKMSPluginConfig struct {
	// kmsPluginImage is the plugin's image, by digest: host[:port]/path@sha256:, then 64 hexadecimal digits. The host must have
	// a dot; tags and short names are refused.
	//
	// +required
	// +kubebuilder:validation:MinLength=75
	// +kubebuilder:validation:MaxLength=447
	// +kubebuilder:validation:XValidation:rule="self.split('@').size() == 2 && self.split('@')[1].matches('^sha256:[a-f0-9]{64}$')",message="kmsPluginImage must end with @sha256: and 64 hexadecimal digits in lower case"
	// +kubebuilder:validation:XValidation:rule="self.split('@')[0].matches('^([a-zA-Z0-9-]+[.])+[a-zA-Z0-9-]+(:[0-9]{2,5})?(/[a-zA-Z0-9-_.]+)+$')",message="kmsPluginImage must name a registry with a dot in its host, possibly a port, and a path: host[:port]/path"
	KMSPluginImage string `json:"kmsPluginImage"`

	// vaultAddress is https://, the host of the server, and possibly a port.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="isURL(self)",message="vaultAddress must be an absolute URL"
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https'",message="vaultAddress must start with https://"
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getEscapedPath() in ['', '/']",message="vaultAddress cannot have a path"
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getQuery() == {}",message="vaultAddress cannot have a query"
	// +kubebuilder:validation:XValidation:rule="self.find('#(.+)$') == ''",message="vaultAddress cannot have a fragment"
	// +kubebuilder:validation:XValidation:rule="!self.contains('@')",message="vaultAddress cannot have a user or password"
	VaultAddress string `json:"vaultAddress"`

	// vaultNamespace is the Vault namespace of the keys; Vault Enterprise has namespaces. Unset means none.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="!self.endsWith('/')",message="vaultNamespace cannot end with '/'"
	// +kubebuilder:validation:XValidation:rule="!self.contains(' ')",message="vaultNamespace cannot hold a space"
	// +kubebuilder:validation:XValidation:rule="!(self in ['root', 'sys', 'audit', 'auth', 'cubbyhole', 'identity'])",message="vaultNamespace cannot be one of the reserved names root, sys, audit, auth, cubbyhole and identity"
	VaultNamespace string `json:"vaultNamespace,omitempty"`

	// vaultAuthNamespace is the Vault namespace to log in to. Unset means vaultNamespace.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="!self.endsWith('/')",message="vaultAuthNamespace cannot end with '/'"
	// +kubebuilder:validation:XValidation:rule="!self.contains(' ')",message="vaultAuthNamespace cannot hold a space"
	// +kubebuilder:validation:XValidation:rule="!(self in ['root', 'sys', 'audit', 'auth', 'cubbyhole', 'identity'])",message="vaultAuthNamespace cannot be one of the reserved names root, sys, audit, auth, cubbyhole and identity"
	VaultAuthNamespace string `json:"vaultAuthNamespace,omitempty"`

	// tls says which certificate the server has. Unset means one of a public authority, for the host of vaultAddress.
	//
	// +optional
	TLS *VaultTLSConfig `json:"tls,omitempty"`

	// authentication says how to log in.
	//
	// +required
	Authentication VaultAuthentication `json:"authentication"`

	// vaultKeyPath is where the key is: the path of a Transit engine, /keys/ and the key's name, as in transit/keys/demo.
	//
	// +required
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=1542
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/')",message="vaultKeyPath cannot start with '/'"
	// +kubebuilder:validation:XValidation:rule="!self.endsWith('/')",message="vaultKeyPath cannot end with '/'"
	// +kubebuilder:validation:XValidation:rule="!self.contains('//')",message="vaultKeyPath cannot hold '//'"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9._~/-]+$')",message="vaultKeyPath may hold letters, digits and . _ ~ / - only"
	// +kubebuilder:validation:XValidation:rule="self.split('/').all(part, part != '.' && part != '..')",message="vaultKeyPath cannot hold the parts '.' and '..'"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9._~-]+(/[a-zA-Z0-9._~-]+)*/keys/[a-zA-Z0-9_]([a-zA-Z0-9_.-]*[a-zA-Z0-9_])?$')",message="vaultKeyPath must be the path of an engine, /keys/ and the name of a key that starts and ends with a letter, digit or underscore"
	VaultKeyPath string `json:"vaultKeyPath"`
}

// VaultTLSConfig says which certificate a Vault server has.
//
// +kubebuilder:validation:MinProperties=1
type VaultTLSConfig struct {
	// caBundle names a ConfigMap whose key ca-bundle.crt holds the authorities of the server's certificate. Unset means the
	// public ones.
	//
	// +optional
	CABundle *VaultConfigMapReference `json:"caBundle,omitempty"`

	// serverName is a name that the server's certificate is for. Unset means the host of vaultAddress.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="serverName must be a DNS name in lower case"
	ServerName string `json:"serverName,omitempty"`
}

// VaultAuthenticationType names a way to log in to Vault.
//
// +kubebuilder:validation:Enum=AppRole
type VaultAuthenticationType string

// VaultAuthenticationTypeAppRole logs in with an AppRole.
const VaultAuthenticationTypeAppRole VaultAuthenticationType = "AppRole"

// VaultAuthentication says how to log in to Vault. It is a union over type.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'AppRole' ? has(self.appRole) : !has(self.appRole)",message="appRole is required when type is AppRole, and forbidden otherwise"
// +union
type VaultAuthentication struct {
	// type names the way.
	//
	// +required
	// +unionDiscriminator
	Type VaultAuthenticationType `json:"type"`

	// appRole says where the credentials of the AppRole are when type is AppRole.
	//
	// +optional
	// +unionMember
	AppRole *VaultAppRoleAuthentication `json:"appRole,omitempty"`
}

// VaultAppRoleAuthentication says where the credentials of an AppRole are.
type VaultAppRoleAuthentication struct {
	// secret names a Secret with the keys role-id and secret-id.
	//
	// +required
	Secret VaultSecretReference `json:"secret"`
}

// VaultSecretReference names a Secret.
type VaultSecretReference struct {
	// name is the Secret's.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must consist of lower-case letters, digits, '-' and '.', and start and end with a letter or digit"
	Name string `json:"name"`
}

// VaultConfigMapReference names a ConfigMap.
type VaultConfigMapReference struct {
	// name is the ConfigMap's.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must consist of lower-case letters, digits, '-' and '.', and start and end with a letter or digit"
	Name string `json:"name"`
}
