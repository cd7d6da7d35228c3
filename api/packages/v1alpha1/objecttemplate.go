package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ObjectTemplate makes an object from values of others in its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=objecttemplates,shortName={objtmpl,ot}
// +kubebuilder:printcolumn:name=Invalid,type=string,JSONPath=`.status.conditions[?(@.type=="package-operator.run/Invalid")].status`
type ObjectTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +optional
	Spec ObjectTemplateSpec `json:"spec,omitempty"`
	// +optional
	Status ObjectTemplateStatus `json:"status,omitempty"`
}

// ObjectTemplateList is a list of ObjectTemplates.
//
// +kubebuilder:object:root=true
type ObjectTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ObjectTemplate `json:"items"`
}

// ClusterObjectTemplate makes an object from values of others in any namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=clusterobjecttemplates,shortName={clobjtmpl,cot}
// +kubebuilder:printcolumn:name=Invalid,type=string,JSONPath=`.status.conditions[?(@.type=="package-operator.run/Invalid")].status`
type ClusterObjectTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +optional
	Spec ObjectTemplateSpec `json:"spec,omitempty"`
	// +optional
	Status ObjectTemplateStatus `json:"status,omitempty"`
}

// ClusterObjectTemplateList is a list of ClusterObjectTemplates.
//
// +kubebuilder:object:root=true
type ClusterObjectTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterObjectTemplate `json:"items"`
}

// ObjectTemplateSpec says what to make, and from what.
type ObjectTemplateSpec struct {
	// template is a Go template that gives the YAML of one object.
	// +required
	Template string `json:"template"`
	// sources of the values that the template sees as .config.
	// +required
	// +kubebuilder:validation:MaxItems=256
	Sources []ObjectTemplateSource `json:"sources"`
}

// ObjectTemplateSource is an object that values are taken from.
type ObjectTemplateSource struct {
	// apiVersion of the object.
	// +required
	APIVersion string `json:"apiVersion"`
	// kind of the object.
	// +required
	Kind string `json:"kind"`
	// namespace of the object; empty means the template's own.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	// +required
	Name string `json:"name"`
	// items are the values to take.
	// +required
	// +kubebuilder:validation:MaxItems=1024
	Items []ObjectTemplateSourceItem `json:"items"`
	// optional lets the template be rendered without this object.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// ObjectTemplateSourceItem says where a value is and where it goes.
type ObjectTemplateSourceItem struct {
	// key is the JSONPath of the value in the source. Unions, filters and recursion may look at a million values in all; range and end are not supported.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Key string `json:"key"`
	// destination is the path below .config, with a leading dot, and at most 32 levels deep.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Destination string `json:"destination"`
}

// ObjectTemplateStatus says what was made.
type ObjectTemplateStatus struct {
	// conditions are package-operator.run/Invalid and those of the object.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// controllerOf is the object.
	// +optional
	ControllerOf *ControlledObjectReference `json:"controllerOf,omitempty"`
}
