package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ObjectSetPhase is a phase of an ObjectSet, for the controller of its class.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=objectsetphases,shortName={objsetphase,osp}
// +kubebuilder:printcolumn:name=Available,type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name=Paused,type=string,JSONPath=`.status.conditions[?(@.type=="Paused")].status`
// +kubebuilder:printcolumn:name=Revision,type=string,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type ObjectSetPhase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +optional
	Spec ObjectSetPhaseSpec `json:"spec,omitempty"`
	// +optional
	Status ObjectSetPhaseStatus `json:"status,omitempty"`
}

// ObjectSetPhaseList is a list of ObjectSetPhases.
//
// +kubebuilder:object:root=true
type ObjectSetPhaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ObjectSetPhase `json:"items"`
}

// ClusterObjectSetPhase is a phase of a ClusterObjectSet, for the controller of its class.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=clusterobjectsetphases,shortName={clobjsetphase,cosp}
// +kubebuilder:printcolumn:name=Available,type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name=Paused,type=string,JSONPath=`.status.conditions[?(@.type=="Paused")].status`
// +kubebuilder:printcolumn:name=Revision,type=string,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterObjectSetPhase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +optional
	Spec ObjectSetPhaseSpec `json:"spec,omitempty"`
	// +optional
	Status ObjectSetPhaseStatus `json:"status,omitempty"`
}

// ClusterObjectSetPhaseList is a list of ClusterObjectSetPhases.
//
// +kubebuilder:object:root=true
type ClusterObjectSetPhaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterObjectSetPhase `json:"items"`
}

// ObjectSetPhaseSpec is a phase of a revision: all of it but paused is immutable. Its class is the label
// package-operator.run/phase-class.
//
// +kubebuilder:validation:XValidation:rule="has(self.previous) == has(oldSelf.previous)",message="previous is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.availabilityProbes) == has(oldSelf.availabilityProbes)",message="availabilityProbes is immutable"
type ObjectSetPhaseSpec struct {
	// paused lets the controller look at the objects and change none.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// revision of the ObjectSet that the phase belongs to.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="revision is immutable"
	// +required
	Revision int64 `json:"revision"`
	// previous are the revisions whose objects may be adopted.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="previous is immutable"
	// +optional
	Previous []PreviousRevisionReference `json:"previous,omitempty"`
	// availabilityProbes must all pass for the objects that they select.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="availabilityProbes is immutable"
	// +optional
	AvailabilityProbes []ObjectSetProbe `json:"availabilityProbes,omitempty"`
	// objects of the phase, in the order in which they are written.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="objects is immutable"
	// +required
	Objects []ObjectSetObject `json:"objects"`
}

// ObjectSetPhaseStatus says how far the phase is.
type ObjectSetPhaseStatus struct {
	// conditions are Available and Paused, and mapped ones.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// controllerOf are the objects that this phase controls.
	// +optional
	ControllerOf []ControlledObjectReference `json:"controllerOf,omitempty"`
}
