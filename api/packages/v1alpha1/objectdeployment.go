package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ObjectDeployment keeps objects of its namespace equal to a template, one revision after the other.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=objectdeployments,shortName={objdeploy,od}
// +kubebuilder:printcolumn:name=Available,type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name=Progressing,type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`
// +kubebuilder:printcolumn:name=Paused,type=string,JSONPath=`.status.conditions[?(@.type=="Paused")].status`
// +kubebuilder:printcolumn:name=Revision,type=string,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type ObjectDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +optional
	Spec ObjectDeploymentSpec `json:"spec,omitempty"`
	// +optional
	Status ObjectDeploymentStatus `json:"status,omitempty"`
}

// ObjectDeploymentList is a list of ObjectDeployments.
//
// +kubebuilder:object:root=true
type ObjectDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ObjectDeployment `json:"items"`
}

// ClusterObjectDeployment keeps objects of any namespace equal to a template, one revision after the other.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=clusterobjectdeployments,shortName={clobjdeploy,cod}
// +kubebuilder:printcolumn:name=Available,type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name=Revision,type=string,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name=Progressing,type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`
// +kubebuilder:printcolumn:name=Paused,type=string,JSONPath=`.status.conditions[?(@.type=="Paused")].status`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterObjectDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +optional
	Spec ObjectDeploymentSpec `json:"spec,omitempty"`
	// +optional
	Status ObjectDeploymentStatus `json:"status,omitempty"`
}

// ClusterObjectDeploymentList is a list of ClusterObjectDeployments.
//
// +kubebuilder:object:root=true
type ClusterObjectDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterObjectDeployment `json:"items"`
}

// ObjectDeploymentSpec says which objects there shall be.
type ObjectDeploymentSpec struct {
	// revisionHistoryLimit is how many old revisions are kept.
	// +kubebuilder:default=10
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// selector of the ObjectSets that are revisions of this deployment; it must match the labels of template.
	// +required
	Selector metav1.LabelSelector `json:"selector"`
	// template of the ObjectSets. Every change makes a new revision.
	// +required
	Template ObjectSetTemplate `json:"template"`
	// paused stops new revisions, and pauses those that there are.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// ObjectDeploymentStatus says how far the rollout is.
type ObjectDeploymentStatus struct {
	// conditions are Available, Progressing and Paused, and mapped ones.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// collisionCount is added to the hash of the template when the name that it gives is taken.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// templateHash is the hash of the template, and the end of the current ObjectSet's name.
	// +optional
	TemplateHash string `json:"templateHash,omitempty"`
	// revision that is rolled out, counted from 1.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// controllerOf are the revisions.
	// +optional
	ControllerOf []ControlledObjectReference `json:"controllerOf,omitempty"`
}
