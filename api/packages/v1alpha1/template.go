package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// ObjectSetTemplate is what an ObjectDeployment makes ObjectSets from.
type ObjectSetTemplate struct {
	// metadata of the ObjectSets. Only labels are used.
	// +required
	Metadata metav1.ObjectMeta `json:"metadata"`
	// spec of the ObjectSets.
	// +required
	Spec ObjectSetTemplateSpec `json:"spec"`
}

// ObjectSetTemplateSpec says which objects there shall be, in which order, and when they count as available.
type ObjectSetTemplateSpec struct {
	// phases are rolled out one after the other, and torn down in reverse. A phase begins when the probes of the one before pass.
	// +optional
	Phases []ObjectSetTemplatePhase `json:"phases,omitempty"`
	// availabilityProbes must all pass for the objects that they select.
	// +optional
	AvailabilityProbes []ObjectSetProbe `json:"availabilityProbes,omitempty"`
	// successDelaySeconds is how long the set must be available before it counts as having succeeded.
	// +optional
	SuccessDelaySeconds int32 `json:"successDelaySeconds,omitempty"`
}

// ObjectSetTemplatePhase is a group of objects that is rolled out together.
type ObjectSetTemplatePhase struct {
	// name of the phase, unique in its set.
	// +required
	Name string `json:"name"`
	// class says who rolls the phase out: empty for the controller of the ObjectSet, "default" for the package operator's
	// controller of ObjectSetPhases, anything else for somebody else's.
	// +optional
	Class string `json:"class,omitempty"`
	// objects of the phase, in the order in which they are written.
	// +optional
	Objects []ObjectSetObject `json:"objects,omitempty"`
	// slices are the names of ObjectSlices, or ClusterObjectSlices, with further objects.
	// +optional
	Slices []string `json:"slices,omitempty"`
}

// CollisionProtection says what happens when an object is there already and belongs to no previous revision.
type CollisionProtection string

const (
	// CollisionProtectionPrevent leaves such an object alone and reports it.
	CollisionProtectionPrevent CollisionProtection = "Prevent"
	// CollisionProtectionIfNoController adopts such an object unless it has a controller.
	CollisionProtectionIfNoController CollisionProtection = "IfNoController"
	// CollisionProtectionNone adopts such an object, even from another controller. Two controllers may then fight about it.
	CollisionProtectionNone CollisionProtection = "None"
)

// ObjectSetObject is an object and how it is looked after.
type ObjectSetObject struct {
	// object is any object, with apiVersion, kind and metadata.
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:pruning:PreserveUnknownFields
	// +required
	Object unstructured.Unstructured `json:"object"`
	// collisionProtection is Prevent, IfNoController or None. Anything else counts as Prevent.
	// +kubebuilder:default=Prevent
	// +optional
	CollisionProtection CollisionProtection `json:"collisionProtection,omitempty"`
	// conditionMappings copy conditions of the object to whatever it belongs to.
	// +optional
	ConditionMappings []ConditionMapping `json:"conditionMappings,omitempty"`
}

// ConditionMapping copies a condition of an object under another type.
type ConditionMapping struct {
	// sourceType is the type of the object's condition.
	// +required
	SourceType string `json:"sourceType"`
	// destinationType is the type of the copy: prefix/Name.
	// +kubebuilder:validation:Pattern=`[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`
	// +required
	DestinationType string `json:"destinationType"`
}

// ObjectSetProbe are probes and the objects that they are for.
type ObjectSetProbe struct {
	// probes must all pass.
	// +required
	Probes []Probe `json:"probes"`
	// selector chooses objects.
	// +required
	Selector ProbeSelector `json:"selector"`
}

// ProbeSelector chooses objects by kind and labels. Both must match.
type ProbeSelector struct {
	// kind of the objects.
	// +required
	Kind *PackageProbeKindSpec `json:"kind"`
	// selector of the objects' labels; absent, all match.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// PackageProbeKindSpec is a kind in any version.
type PackageProbeKindSpec struct {
	// group of the kind; empty for the core group.
	// +required
	Group string `json:"group"`
	// kind itself.
	// +required
	Kind string `json:"kind"`
}

// Probe holds exactly one check.
type Probe struct {
	// condition checks the status of a condition.
	// +optional
	Condition *ProbeConditionSpec `json:"condition,omitempty"`
	// fieldsEqual checks that two fields have the same value.
	// +optional
	FieldsEqual *ProbeFieldsEqualSpec `json:"fieldsEqual,omitempty"`
	// cel checks a rule.
	// +optional
	CEL *ProbeCELSpec `json:"cel,omitempty"`
}

// ProbeConditionSpec checks .status.conditions.
type ProbeConditionSpec struct {
	// type of the condition.
	// +required
	Type string `json:"type"`
	// status that the condition must have.
	// +kubebuilder:default="True"
	// +required
	Status string `json:"status"`
}

// ProbeFieldsEqualSpec names two fields by paths such as .spec.replicas.
type ProbeFieldsEqualSpec struct {
	// fieldA is the path of the one field.
	// +required
	FieldA string `json:"fieldA"`
	// fieldB is the path of the other field.
	// +required
	FieldB string `json:"fieldB"`
}

// ProbeCELSpec is a rule in the Common Expression Language.
type ProbeCELSpec struct {
	// rule is an expression that is true when the object, self, passes.
	// +required
	Rule string `json:"rule"`
	// message says what is wrong when the rule is false.
	// +required
	Message string `json:"message"`
}

// PreviousRevisionReference names a revision whose objects may be adopted.
type PreviousRevisionReference struct {
	// name of the ObjectSet or ClusterObjectSet.
	// +required
	Name string `json:"name"`
}

// ControlledObjectReference names an object that has its reporter as controller.
type ControlledObjectReference struct {
	// kind of the object.
	// +required
	Kind string `json:"kind"`
	// group of the object.
	// +required
	Group string `json:"group"`
	// name of the object.
	// +required
	Name string `json:"name"`
	// namespace of the object; empty when its kind is cluster-scoped.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// version of the object's kind. ObjectTemplates fill it in, everybody else leaves it empty.
	// +required
	Version string `json:"version"`
}

// RemotePhaseReference names the ObjectSetPhase that has a phase of an ObjectSet.
type RemotePhaseReference struct {
	// name of the ObjectSetPhase or ClusterObjectSetPhase.
	// +required
	Name string `json:"name"`
	// uid of it.
	// +required
	UID types.UID `json:"uid"`
}
