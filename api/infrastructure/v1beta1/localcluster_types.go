package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LocalCluster stands for where the API of a hosted cluster is reached. There is nothing to provision: the control plane is the
// HostedControlPlane's, and machines need no network of their own.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=localclusters,shortName=lc,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:printcolumn:name="Host",type="string",JSONPath=".spec.controlPlaneEndpoint.host",description="Host of the hosted cluster's API"
// +kubebuilder:printcolumn:name="Port",type="integer",JSONPath=".spec.controlPlaneEndpoint.port",description="Port of the hosted cluster's API"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether machines may be made"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type LocalCluster struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says where the API of the hosted cluster is.
	//
	// +optional
	Spec LocalClusterSpec `json:"spec,omitzero"`

	// status says whether machines may be made.
	//
	// +optional
	Status LocalClusterStatus `json:"status,omitzero"`
}

// LocalClusterList is a list of LocalClusters.
//
// +kubebuilder:object:root=true
type LocalClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LocalCluster `json:"items"`
}

// LocalClusterSpec says where the API of the hosted cluster is.
type LocalClusterSpec struct {
	// controlPlaneEndpoint is where machines reach the hosted cluster's API. The operator copies it from the HostedControlPlane.
	//
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint,omitzero"`
}

// APIEndpoint is where an API is reached.
type APIEndpoint struct {
	// host is a name or an address.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Host string `json:"host,omitempty"`

	// port is the TCP port.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// LocalClusterStatus says whether machines may be made.
type LocalClusterStatus struct {
	// conditions of the cluster. Ready: machines may be made.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization holds what Cluster API waits for.
	//
	// +optional
	Initialization InitializationStatus `json:"initialization,omitzero"`
}

// InitializationStatus holds what Cluster API waits for. Once true, a value stays true.
type InitializationStatus struct {
	// provisioned tells that the infrastructure exists.
	//
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}
