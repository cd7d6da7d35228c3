package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
)

// AgentPlatformSpec describes the pool of the assisted installer.
type AgentPlatformSpec struct {
	// agentNamespace is the namespace in which Agents are looked for.
	//
	// +required
	// +kubebuilder:validation:MaxLength=63
	AgentNamespace string `json:"agentNamespace"`
}

// IBMCloudPlatformSpec describes IBM Cloud.
type IBMCloudPlatformSpec struct {
	// providerType is the kind of infrastructure: VPC, Classic or UPI.
	//
	// +optional
	ProviderType string `json:"providerType,omitempty"`
}

// PowerVSPlatformSpec describes IBM Power Virtual Server.
type PowerVSPlatformSpec struct {
	// accountID is the IBM Cloud account.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	AccountID string `json:"accountID"`

	// cisInstanceCRN is the resource name of the Cloud Internet Services instance with the DNS zone.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^crn:`
	CISInstanceCRN string `json:"cisInstanceCRN"`

	// resourceGroup is the resource group of the cluster.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	ResourceGroup string `json:"resourceGroup"`

	// region is the IBM Cloud region that machines live in.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Region string `json:"region"`

	// zone is the availability zone that machines live in.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Zone string `json:"zone"`

	// subnet is the subnet of machines.
	//
	// +required
	Subnet *PowerVSResourceReference `json:"subnet"`

	// serviceInstanceID is the Power VS workspace.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	ServiceInstanceID string `json:"serviceInstanceID"`

	// vpc is the VPC of load balancers.
	//
	// +required
	VPC *PowerVSVPC `json:"vpc"`

	// kubeCloudControllerCreds names a Secret with credentials for the cloud controller manager.
	//
	// +required
	KubeCloudControllerCreds corev1.LocalObjectReference `json:"kubeCloudControllerCreds"`

	// nodePoolManagementCreds names a Secret with credentials for the Cluster API provider.
	//
	// +required
	NodePoolManagementCreds corev1.LocalObjectReference `json:"nodePoolManagementCreds"`

	// ingressOperatorCloudCreds names a Secret with credentials for OpenShift's ingress operator.
	//
	// +required
	IngressOperatorCloudCreds corev1.LocalObjectReference `json:"ingressOperatorCloudCreds"`

	// storageOperatorCloudCreds names a Secret with credentials for OpenShift's storage operator.
	//
	// +required
	StorageOperatorCloudCreds corev1.LocalObjectReference `json:"storageOperatorCloudCreds"`

	// imageRegistryOperatorCloudCreds names a Secret with credentials for OpenShift's image registry.
	//
	// +required
	ImageRegistryOperatorCloudCreds corev1.LocalObjectReference `json:"imageRegistryOperatorCloudCreds"`
}

// PowerVSVPC describes a VPC for load balancers.
type PowerVSVPC struct {
	// name is the name of the VPC.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name"`

	// region is the region of the VPC.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Region string `json:"region"`

	// zone is the zone of the VPC.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Zone string `json:"zone,omitempty"`

	// subnet is the subnet of load balancers.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Subnet string `json:"subnet,omitempty"`
}

// PowerVSResourceReference names a Power VS resource by its ID or its name.
type PowerVSResourceReference struct {
	// id is the ID of the resource.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	ID *string `json:"id,omitempty"`

	// name is the name of the resource.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Name *string `json:"name,omitempty"`
}
