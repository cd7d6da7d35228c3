package v1beta1

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

// AzureAuthenticationType names a way to prove oneself to Azure.
//
// +kubebuilder:validation:Enum=ManagedIdentities;WorkloadIdentities
type AzureAuthenticationType string

const (
	// AzureAuthenticationTypeManagedIdentities reads credentials of managed identities from a key vault.
	AzureAuthenticationTypeManagedIdentities AzureAuthenticationType = "ManagedIdentities"
	// AzureAuthenticationTypeWorkloadIdentities exchanges service account tokens.
	AzureAuthenticationTypeWorkloadIdentities AzureAuthenticationType = "WorkloadIdentities"
)

// AzureAuthenticationConfiguration is a union over azureAuthenticationConfigType.
//
// +kubebuilder:validation:XValidation:rule="self.azureAuthenticationConfigType == 'ManagedIdentities' ? has(self.managedIdentities) : !has(self.managedIdentities)",message="managedIdentities is required when azureAuthenticationConfigType is ManagedIdentities, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="self.azureAuthenticationConfigType == 'WorkloadIdentities' ? has(self.workloadIdentities) : !has(self.workloadIdentities)",message="workloadIdentities is required when azureAuthenticationConfigType is WorkloadIdentities, and forbidden otherwise"
type AzureAuthenticationConfiguration struct {
	// azureAuthenticationConfigType names the way.
	//
	// +required
	AzureAuthenticationConfigType AzureAuthenticationType `json:"azureAuthenticationConfigType"`

	// managedIdentities lists the identities when the type is ManagedIdentities.
	//
	// +optional
	ManagedIdentities *AzureResourceManagedIdentities `json:"managedIdentities,omitempty"`

	// workloadIdentities lists the identities when the type is WorkloadIdentities.
	//
	// +optional
	WorkloadIdentities *AzureWorkloadIdentities `json:"workloadIdentities,omitempty"`
}

// AzureResourceManagedIdentities lists managed identities.
type AzureResourceManagedIdentities struct {
	// controlPlane lists those of components in the management cluster.
	//
	// +required
	ControlPlane ControlPlaneManagedIdentities `json:"controlPlane"`

	// dataPlane lists those of components in the hosted cluster.
	//
	// +required
	DataPlane DataPlaneManagedIdentities `json:"dataPlane"`
}

// ManagedAzureKeyVault names a key vault with credentials.
type ManagedAzureKeyVault struct {
	// name is the name of the vault.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name"`

	// tenantID is the tenant of the vault.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	TenantID string `json:"tenantID"`
}

// ControlPlaneManagedIdentities lists identities of components in the management cluster.
type ControlPlaneManagedIdentities struct {
	// managedIdentitiesKeyVault is the vault with the credentials.
	//
	// +required
	ManagedIdentitiesKeyVault ManagedAzureKeyVault `json:"managedIdentitiesKeyVault"`

	// cloudProvider is the identity of the cloud controller manager.
	//
	// +required
	CloudProvider ManagedIdentity `json:"cloudProvider"`

	// nodePoolManagement is the identity of the Cluster API provider.
	//
	// +required
	NodePoolManagement ManagedIdentity `json:"nodePoolManagement"`

	// controlPlaneOperator is the identity of the control-plane operator.
	//
	// +required
	ControlPlaneOperator ManagedIdentity `json:"controlPlaneOperator"`

	// imageRegistry is the identity of OpenShift's image registry operator.
	//
	// +optional
	ImageRegistry *ManagedIdentity `json:"imageRegistry,omitempty"`

	// ingress is the identity of OpenShift's ingress operator.
	//
	// +required
	Ingress ManagedIdentity `json:"ingress"`

	// network is the identity of OpenShift's network operator.
	//
	// +required
	Network ManagedIdentity `json:"network"`

	// disk is the identity of the disk driver's controller.
	//
	// +required
	Disk ManagedIdentity `json:"disk"`

	// file is the identity of the file driver's controller.
	//
	// +required
	File ManagedIdentity `json:"file"`
}

// DataPlaneManagedIdentities lists identities of components in the hosted cluster by their client IDs.
type DataPlaneManagedIdentities struct {
	// imageRegistryMSIClientID is the identity of OpenShift's image registry.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	ImageRegistryMSIClientID string `json:"imageRegistryMSIClientID"`

	// diskMSIClientID is the identity of the disk driver.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	DiskMSIClientID string `json:"diskMSIClientID"`

	// fileMSIClientID is the identity of the file driver.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	FileMSIClientID string `json:"fileMSIClientID"`
}

// AzureWorkloadIdentities lists workload identities.
type AzureWorkloadIdentities struct {
	// imageRegistry is the identity of OpenShift's image registry.
	//
	// +required
	ImageRegistry WorkloadIdentity `json:"imageRegistry"`

	// ingress is the identity of OpenShift's ingress operator.
	//
	// +required
	Ingress WorkloadIdentity `json:"ingress"`

	// file is the identity of the file driver.
	//
	// +required
	File WorkloadIdentity `json:"file"`

	// disk is the identity of the disk driver.
	//
	// +required
	Disk WorkloadIdentity `json:"disk"`

	// nodePoolManagement is the identity of the Cluster API provider.
	//
	// +required
	NodePoolManagement WorkloadIdentity `json:"nodePoolManagement"`

	// cloudProvider is the identity of the cloud controller manager.
	//
	// +required
	CloudProvider WorkloadIdentity `json:"cloudProvider"`

	// network is the identity of OpenShift's network operator.
	//
	// +required
	Network WorkloadIdentity `json:"network"`

	// controlPlaneOperator is the identity of the control-plane operator; it is needed for Private Link.
	//
	// +optional
	ControlPlaneOperator *WorkloadIdentity `json:"controlPlaneOperator,omitempty"`
}
