package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "hcp.internal/api/config/v1"
)

// ClusterVersionStatus is the rollout state of a release, in the form of OpenShift's ClusterVersion.
type ClusterVersionStatus struct {
	// desired is the release that the cluster is to run.
	//
	// +required
	Desired configv1.Release `json:"desired"`

	// history lists rollouts, newest first. The first entry is Partial while a rollout is under way.
	//
	// +optional
	History []configv1.UpdateHistory `json:"history,omitempty"`

	// observedGeneration is the generation of the object that this status reflects.
	//
	// +required
	ObservedGeneration int64 `json:"observedGeneration"`

	// availableUpdates lists the releases that the update service recommends; null when it was not asked.
	//
	// +required
	// +nullable
	// +kubebuilder:validation:MaxItems=100
	AvailableUpdates []configv1.Release `json:"availableUpdates"`

	// conditionalUpdates lists releases that are recommended only to clusters that certain risks do not concern.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	ConditionalUpdates []configv1.ConditionalUpdate `json:"conditionalUpdates,omitempty"`
}

// ControlPlaneVersionStatus is the rollout state of the parts of a control plane that run in the management cluster.
type ControlPlaneVersionStatus struct {
	// desired is the release that these parts are to run.
	//
	// +required
	Desired configv1.Release `json:"desired"`

	// history lists rollouts, newest first, the last 100 of them.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	History []ControlPlaneUpdateHistory `json:"history,omitempty"`

	// observedGeneration is the generation of the HostedControlPlane that this status reflects.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740992
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// ControlPlaneUpdateHistory is one rollout.
type ControlPlaneUpdateHistory struct {
	// state is Completed when every component runs the version, Partial before.
	//
	// +required
	// +kubebuilder:validation:Enum=Completed;Partial
	State configv1.UpdateState `json:"state"`

	// startedTime is when the rollout began.
	//
	// +required
	StartedTime metav1.Time `json:"startedTime"`

	// completionTime is when the rollout was completed, or given up for the next one. Unset while it is under way.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// version is the version of the release.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches('^\\d+\\.\\d+\\.\\d+.*')`,message="version must start with three numbers, such as 4.20.1"
	Version string `json:"version"`

	// image is the pull specification of the release.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=447
	Image string `json:"image"`
}
