package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Package installs a package into its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=packages,shortName={pkg}
// +kubebuilder:printcolumn:name=Available,type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name=Progressing,type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`
// +kubebuilder:printcolumn:name=Unpacked,type=string,JSONPath=`.status.conditions[?(@.type=="Unpacked")].status`
// +kubebuilder:printcolumn:name=Invalid,type=string,JSONPath=`.status.conditions[?(@.type=="Invalid")].status`
// +kubebuilder:printcolumn:name=Revision,type=string,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type Package struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +optional
	Spec PackageSpec `json:"spec,omitempty"`
	// +optional
	Status PackageStatus `json:"status,omitempty"`
}

// PackageList is a list of Packages.
//
// +kubebuilder:object:root=true
type PackageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Package `json:"items"`
}

// ClusterPackage installs a package into the cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=clusterpackages,shortName={clpkg}
// +kubebuilder:printcolumn:name=Available,type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name=Progressing,type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`
// +kubebuilder:printcolumn:name=Unpacked,type=string,JSONPath=`.status.conditions[?(@.type=="Unpacked")].status`
// +kubebuilder:printcolumn:name=Invalid,type=string,JSONPath=`.status.conditions[?(@.type=="Invalid")].status`
// +kubebuilder:printcolumn:name=Revision,type=string,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterPackage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +optional
	Spec PackageSpec `json:"spec,omitempty"`
	// +optional
	Status PackageStatus `json:"status,omitempty"`
}

// ClusterPackageList is a list of ClusterPackages.
//
// +kubebuilder:object:root=true
type ClusterPackageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterPackage `json:"items"`
}

// PackageSpec says what to install.
type PackageSpec struct {
	// image is the package image.
	// +required
	Image string `json:"image"`
	// config holds the parameters of the package, as its manifest declares them.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Config *runtime.RawExtension `json:"config,omitempty"`
	// component to install when the image has several.
	// +optional
	Component string `json:"component,omitempty"`
	// paused stops the package and everything below it from being changed.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// PackageStatus says how far the installation is.
type PackageStatus struct {
	// conditions are Available, Progressing, Unpacked, Invalid and Paused, and mapped ones.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// unpackedHash is the hash of the spec that was unpacked last.
	// +optional
	UnpackedHash string `json:"unpackedHash,omitempty"`
	// revision that is installed, counted from 1.
	// +optional
	Revision int64 `json:"revision,omitempty"`
}

// PackageTemplateSpec is what Packages are made from.
type PackageTemplateSpec struct {
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec of the Packages.
	// +required
	Spec PackageSpec `json:"spec"`
}
