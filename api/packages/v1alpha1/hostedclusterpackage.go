package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// HostedClusterPackage installs a package for every hosted cluster that it selects. It is experimental.
//
// Annotations ask for more than its fields can, and are all off by default:
// package-operator.run/rollout-soak is how long a group has to stay done before the next one starts, as "10m".
// package-operator.run/rollout-deadline is how long after its change a Package may be down before it counts as failed.
// package-operator.run/rollout-on-failure is what to do then: "hold", which is the default, waits for a person; "return-cluster" and "return-group"
// return the cluster, or all of its group, to the last template that was completed.
// package-operator.run/rollout-paused is "true" while no Package is to be changed.
// package-operator.run/rollout-remove is how many Packages may be removed at once when a change of the selector leaves out more than half of them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName={hcpkg}
// +kubebuilder:printcolumn:name=Available,type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name=Progressing,type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`
// +kubebuilder:printcolumn:name=HasPausedPackage,type=string,JSONPath=`.status.conditions[?(@.type=="HasPausedPackage")].status`
// +kubebuilder:printcolumn:name=ObservedGeneration,type=string,JSONPath=`.status.observedGeneration`
// +kubebuilder:printcolumn:name=Image,type=string,JSONPath=`.spec.template.spec.image`,priority=1
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type HostedClusterPackage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +optional
	Spec HostedClusterPackageSpec `json:"spec,omitempty"`
	// +optional
	Status HostedClusterPackageStatus `json:"status,omitempty"`
}

// HostedClusterPackageList is a list of HostedClusterPackages.
//
// +kubebuilder:object:root=true
type HostedClusterPackageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HostedClusterPackage `json:"items"`
}

// HostedClusterPackageSpec says what to install, where, and in which order.
type HostedClusterPackageSpec struct {
	// strategy of a change: all hosted clusters at once, or some at a time.
	// +kubebuilder:default={instant: {}}
	// +required
	Strategy HostedClusterPackageStrategy `json:"strategy"`
	// hostedClusterSelector chooses hosted clusters by label; absent, all are chosen.
	// +optional
	HostedClusterSelector *metav1.LabelSelector `json:"hostedClusterSelector,omitempty"`
	// template of the Packages.
	// +required
	Template PackageTemplateSpec `json:"template"`
	// partition divides the hosted clusters into groups that are upgraded one after the other.
	// +optional
	Partition *HostedClusterPackagePartitionSpec `json:"partition,omitempty"`
}

// HostedClusterPackageStrategy is one of its fields.
type HostedClusterPackageStrategy struct {
	// instant changes all Packages at once.
	// +optional
	Instant *HostedClusterPackageStrategyInstant `json:"instant,omitempty"`
	// rollingUpgrade changes some Packages at a time.
	// +optional
	RollingUpgrade *HostedClusterPackageStrategyRollingUpgrade `json:"rollingUpgrade,omitempty"`
}

// HostedClusterPackageStrategyInstant has no settings.
type HostedClusterPackageStrategyInstant struct{}

// HostedClusterPackageStrategyRollingUpgrade bounds how much is changed at a time.
type HostedClusterPackageStrategyRollingUpgrade struct {
	// maxUnavailable is how many Packages may be unavailable at a time.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +required
	MaxUnavailable int `json:"maxUnavailable"`
}

// HostedClusterPackagePartitionSpec groups hosted clusters by the value of a label.
type HostedClusterPackagePartitionSpec struct {
	// labelKey is the key of the label.
	// +kubebuilder:validation:MinLength=1
	// +required
	LabelKey string `json:"labelKey"`
	// order of the groups; absent, it is alphanumericAsc.
	// +optional
	Order *HostedClusterPackagePartitionOrderSpec `json:"order,omitempty"`
}

// HostedClusterPackagePartitionOrderSpec is one of its fields.
//
// +kubebuilder:validation:XValidation:rule="self.static.size() > 0 || has(self.alphanumericAsc)",message="either .static or .alphanumericAsc must be specified"
type HostedClusterPackagePartitionOrderSpec struct {
	// static lists values of the label; "*" stands for all that are not listed.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.all(entry, entry == '*' || entry.matches('^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$'))",message="must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character or '*'"
	// +kubebuilder:validation:XValidation:rule="self.filter(entry, entry == '*').size() <= 1",message="catch all '*' group may only be used once"
	// +listType=set
	// +optional
	Static []string `json:"static,omitempty"`
	// alphanumericAsc sorts the values of the label.
	// +optional
	AlphanumericAsc *HostedClusterPackagePartitionOrderAlphanumericAsc `json:"alphanumericAsc,omitempty"`
}

// HostedClusterPackagePartitionOrderAlphanumericAsc has no settings.
type HostedClusterPackagePartitionOrderAlphanumericAsc struct{}

// HostedClusterPackageStatus says how far the rollout is.
type HostedClusterPackageStatus struct {
	HostedClusterPackageCountsStatus `json:",inline"`
	// conditions are Available, Progressing and HasPausedPackage.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// partitions are the counts of each group.
	// +optional
	Partitions []HostedClusterPackagePartitionStatus `json:"partitions,omitempty"`
	// processing are the Packages that are being changed.
	// +optional
	Processing []HostedClusterPackageRefStatus `json:"processing,omitempty"`
}

// HostedClusterPackageCountsStatus counts Packages.
type HostedClusterPackageCountsStatus struct {
	// observedGeneration is the generation of the HostedClusterPackage that the counts are for.
	// +optional
	ObservedGeneration int32 `json:"observedGeneration,omitempty"`
	// availablePackages are available.
	// +optional
	AvailablePackages int32 `json:"availablePackages,omitempty"`
	// unavailablePackages are not known to be available, or are missing. They count against maxUnavailable, whether or not their hosted cluster is
	// Available; those of hosted clusters that are being deleted don't.
	// +optional
	UnavailablePackages int32 `json:"unavailablePackages,omitempty"`
	// progressedPackages have rolled out what their spec says.
	// +optional
	ProgressedPackages int32 `json:"progressedPackages,omitempty"`
	// updatedPackages have the spec of the template.
	// +optional
	UpdatedPackages int32 `json:"updatedPackages,omitempty"`
	// totalPackages is how many there are.
	// +optional
	TotalPackages int32 `json:"totalPackages,omitempty"`
}

// HostedClusterPackagePartitionStatus counts the Packages of a group.
type HostedClusterPackagePartitionStatus struct {
	// name is the value of the label.
	// +required
	Name string `json:"name"`

	HostedClusterPackageCountsStatus `json:",inline"`
}

// HostedClusterPackageRefStatus names a Package.
type HostedClusterPackageRefStatus struct {
	// uid of the Package.
	// +required
	UID types.UID `json:"uid"`
	// name of the Package.
	// +required
	Name string `json:"name"`
	// namespace of the Package.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}
