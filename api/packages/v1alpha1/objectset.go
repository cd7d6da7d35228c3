package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ObjectSet is a revision of objects in its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=objectsets,shortName={objset,os}
// +kubebuilder:printcolumn:name=Available,type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name=Paused,type=string,JSONPath=`.status.conditions[?(@.type=="Paused")].status`
// +kubebuilder:printcolumn:name=Archived,type=string,JSONPath=`.status.conditions[?(@.type=="Archived")].status`,priority=1
// +kubebuilder:printcolumn:name=Succeeded,type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`,priority=1
// +kubebuilder:printcolumn:name=InTransition,type=string,JSONPath=`.status.conditions[?(@.type=="InTransition")].status`,priority=1
// +kubebuilder:printcolumn:name=Revision,type=string,JSONPath=`.spec.revision`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type ObjectSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +optional
	Spec ObjectSetSpec `json:"spec,omitempty"`
	// +optional
	Status ObjectSetStatus `json:"status,omitempty"`
}

// ObjectSetList is a list of ObjectSets.
//
// +kubebuilder:object:root=true
type ObjectSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ObjectSet `json:"items"`
}

// ClusterObjectSet is a revision of objects in any namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=clusterobjectsets,shortName={clobjset,cos}
// +kubebuilder:printcolumn:name=Available,type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name=Paused,type=string,JSONPath=`.status.conditions[?(@.type=="Paused")].status`
// +kubebuilder:printcolumn:name=Archived,type=string,JSONPath=`.status.conditions[?(@.type=="Archived")].status`,priority=1
// +kubebuilder:printcolumn:name=Succeeded,type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`,priority=1
// +kubebuilder:printcolumn:name=InTransition,type=string,JSONPath=`.status.conditions[?(@.type=="InTransition")].status`,priority=1
// +kubebuilder:printcolumn:name=Revision,type=string,JSONPath=`.spec.revision`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterObjectSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +optional
	Spec ObjectSetSpec `json:"spec,omitempty"`
	// +optional
	Status ObjectSetStatus `json:"status,omitempty"`
}

// ClusterObjectSetList is a list of ClusterObjectSets.
//
// +kubebuilder:object:root=true
type ClusterObjectSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterObjectSet `json:"items"`
}

// LifecycleState says what a revision does.
//
// +kubebuilder:validation:Enum=Active;Paused;Archived
type LifecycleState string

const (
	// LifecycleStateActive keeps the objects as they should be.
	LifecycleStateActive LifecycleState = "Active"
	// LifecycleStatePaused looks at the objects and changes none.
	LifecycleStatePaused LifecycleState = "Paused"
	// LifecycleStateArchived removes the objects that no other revision has taken over. It is final.
	LifecycleStateArchived LifecycleState = "Archived"
)

// ObjectSetSpec is a revision: all of it but lifecycleState is immutable.
//
// +kubebuilder:validation:XValidation:rule="(has(self.previous) == has(oldSelf.previous)) && (!has(self.previous) || self.previous == oldSelf.previous)",message="previous is immutable"
// +kubebuilder:validation:XValidation:rule="(has(self.phases) == has(oldSelf.phases)) && (!has(self.phases) || self.phases == oldSelf.phases)",message="phases is immutable"
// +kubebuilder:validation:XValidation:rule="(has(self.availabilityProbes) == has(oldSelf.availabilityProbes)) && (!has(self.availabilityProbes) || self.availabilityProbes == oldSelf.availabilityProbes)",message="availabilityProbes is immutable"
// +kubebuilder:validation:XValidation:rule="(has(self.successDelaySeconds) == has(oldSelf.successDelaySeconds)) && (!has(self.successDelaySeconds) || self.successDelaySeconds == oldSelf.successDelaySeconds)",message="successDelaySeconds is immutable"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.revision) || (has(self.revision) && self.revision == oldSelf.revision)",message="revision is immutable"
type ObjectSetSpec struct {
	// lifecycleState says what the revision does.
	// +kubebuilder:default=Active
	// +optional
	LifecycleState LifecycleState `json:"lifecycleState,omitempty"`
	// previous are the revisions whose objects may be adopted.
	// +optional
	Previous []PreviousRevisionReference `json:"previous,omitempty"`
	// revision is higher than that of every revision before. It may be set once.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	ObjectSetTemplateSpec `json:",inline"`
}

// ObjectSetStatus says how far the revision is.
type ObjectSetStatus struct {
	// conditions are Available, Paused, Archived, Succeeded and InTransition, and mapped ones.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// revision is the same as in spec. Deprecated: read spec.revision.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// remotePhases are the ObjectSetPhases of phases that have a class.
	// +optional
	RemotePhases []RemotePhaseReference `json:"remotePhases,omitempty"`
	// controllerOf are the objects that this revision controls; others may have been taken over by the next one.
	// +optional
	ControllerOf []ControlledObjectReference `json:"controllerOf,omitempty"`
}
