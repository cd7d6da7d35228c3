package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ObjectSlice holds objects that do not fit into their ObjectDeployment.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=objectslices
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type ObjectSlice struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// objects of the slice, in order.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="objects is immutable"
	// +required
	Objects []ObjectSetObject `json:"objects"`
}

// ObjectSliceList is a list of ObjectSlices.
//
// +kubebuilder:object:root=true
type ObjectSliceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ObjectSlice `json:"items"`
}

// ClusterObjectSlice holds objects that do not fit into their ClusterObjectDeployment.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=clusterobjectslices,shortName={clobjslice,cosl}
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterObjectSlice struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// objects of the slice, in order.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="objects is immutable"
	// +required
	Objects []ObjectSetObject `json:"objects"`
}

// ClusterObjectSliceList is a list of ClusterObjectSlices.
//
// +kubebuilder:object:root=true
type ClusterObjectSliceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterObjectSlice `json:"items"`
}
