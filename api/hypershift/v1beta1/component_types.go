package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ControlPlaneComponent reports on one component of a hosted control plane. The control-plane operator keeps one per
// component in the control-plane namespace; it bears the name of the component's workload.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=controlplanecomponents,shortName=cpc;cpcs,scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".status.version",description="Release that is completely rolled out"
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=".status.conditions[?(@.type==\"Available\")].status",description="Whether the component serves"
// +kubebuilder:printcolumn:name="RolloutComplete",type="string",JSONPath=".status.conditions[?(@.type==\"RolloutComplete\")].status",description="Whether every replica runs what is wanted"
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=".status.conditions[?(@.type==\"Available\")].message",description="Why the component does, or does not, serve"
// +kubebuilder:printcolumn:name="RolloutCompleteMessage",type="string",JSONPath=".status.conditions[?(@.type==\"RolloutComplete\")].message",description="What the rollout waits for",priority=1
type ControlPlaneComponent struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is empty.
	//
	// +optional
	Spec ControlPlaneComponentSpec `json:"spec,omitzero"`

	// status is what the control-plane operator found.
	//
	// +optional
	Status ControlPlaneComponentStatus `json:"status,omitzero"`
}

// ControlPlaneComponentList is a list of ControlPlaneComponents.
//
// +kubebuilder:object:root=true
type ControlPlaneComponentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ControlPlaneComponent `json:"items"`
}

// ControlPlaneComponentSpec is empty: a component is configured by the HostedControlPlane.
type ControlPlaneComponentSpec struct{}

// ControlPlaneComponentStatus is what the control-plane operator found.
type ControlPlaneComponentStatus struct {
	// conditions are Available and RolloutComplete.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=10
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// version is the release that every replica runs. It moves only when the rollout is complete.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Version string `json:"version,omitempty"`

	// resources lists the objects that make up the component.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	Resources []ComponentResource `json:"resources,omitempty"`

	// observedGeneration is the generation of the HostedControlPlane that this status reflects.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740992
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
}

// ComponentResource names one object of a component, in the namespace of the component.
type ComponentResource struct {
	// kind is the kind of the object.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Kind string `json:"kind"`

	// group is the API group of the object; empty for the core group.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Group string `json:"group"`

	// name is the name of the object.
	//
	// +required
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name"`
}
