package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// NodePool is a set of workers of a hosted cluster that are alike.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=nodepools,shortName=np;nps,scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".spec.clusterName",description="HostedCluster that the workers belong to"
// +kubebuilder:printcolumn:name="Desired Nodes",type="integer",JSONPath=".spec.replicas",description="How many workers are wanted"
// +kubebuilder:printcolumn:name="Current Nodes",type="integer",JSONPath=".status.replicas",description="How many workers there are"
// +kubebuilder:printcolumn:name="Autoscaling",type="string",JSONPath=".status.conditions[?(@.type==\"AutoscalingEnabled\")].status",description="Whether the cluster autoscaler sets the size"
// +kubebuilder:printcolumn:name="Autorepair",type="string",JSONPath=".status.conditions[?(@.type==\"AutorepairEnabled\")].status",description="Whether unhealthy workers are replaced"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".status.version",description="Release that every worker runs"
// +kubebuilder:printcolumn:name="UpdatingVersion",type="string",JSONPath=".status.conditions[?(@.type==\"UpdatingVersion\")].status",description="Whether a release is being rolled out"
// +kubebuilder:printcolumn:name="UpdatingConfig",type="string",JSONPath=".status.conditions[?(@.type==\"UpdatingConfig\")].status",description="Whether a configuration is being rolled out"
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message",description="Why the pool is, or is not, ready"
type NodePool struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants.
	//
	// +optional
	Spec NodePoolSpec `json:"spec,omitzero"`

	// status is what the operators found.
	//
	// +optional
	Status NodePoolStatus `json:"status,omitzero"`
}

// NodePoolList is a list of NodePools.
//
// +kubebuilder:object:root=true
type NodePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodePool `json:"items"`
}

// Architectures of workers, as spec.arch of a NodePool spells them.
const (
	ArchitectureAMD64   = "amd64"
	ArchitectureARM64   = "arm64"
	ArchitecturePPC64LE = "ppc64le"
	ArchitectureS390X   = "s390x"
)

// NodePoolSpec is what a user wants of a set of workers.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.osImageStream) || has(self.osImageStream)",message="osImageStream cannot be removed once set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.arch) || has(self.arch)",message="arch cannot be removed once set"
// +kubebuilder:validation:XValidation:rule="(self.arch != 'arm64' || has(self.platform.aws) || has(self.platform.azure) || has(self.platform.agent) || self.platform.type in ['GCP', 'None', 'Local']) || (oldSelf.hasValue() && oldSelf.value().arch == self.arch && oldSelf.value().platform.type == self.platform.type)",message="arch arm64 is supported on the platforms AWS, Azure, Agent, GCP, None and Local",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="(!has(self.replicas) || !has(self.autoScaling)) || (oldSelf.hasValue() && has(oldSelf.value().replicas) && has(oldSelf.value().autoScaling) && oldSelf.value().replicas == self.replicas && oldSelf.value().autoScaling == self.autoScaling)",message="replicas and autoScaling cannot both be set",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="(self.arch != 's390x' || has(self.platform.kubevirt)) || (oldSelf.hasValue() && oldSelf.value().arch == self.arch && oldSelf.value().platform.type == self.platform.type)",message="arch s390x is supported on the platform KubeVirt",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="(!has(self.platform.aws) || !has(self.platform.aws.imageType) || self.platform.aws.imageType != 'Windows' || self.arch == 'amd64') || (oldSelf.hasValue() && oldSelf.value().arch == self.arch && has(oldSelf.value().platform.aws) && has(oldSelf.value().platform.aws.imageType) && oldSelf.value().platform.aws.imageType == self.platform.aws.imageType)",message="platform.aws.imageType Windows needs arch amd64",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="(!has(self.autoScaling) || self.autoScaling.min > 0 || self.platform.type in ['AWS', 'Azure', 'Local']) || (oldSelf.hasValue() && has(oldSelf.value().autoScaling) && oldSelf.value().autoScaling.min == self.autoScaling.min)",message="autoScaling.min may be 0 only on the platforms AWS, Azure and Local",optionalOldSelf=true
type NodePoolSpec struct {
	// clusterName is the name of the HostedCluster, in the same namespace, that the workers belong to. It cannot change.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterName is immutable"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="clusterName must consist of lower-case letters, digits and '-', and start and end with a letter or digit"
	ClusterName string `json:"clusterName"`

	// release names the release that the workers run. Changing it rolls the pool.
	//
	// +required
	Release Release `json:"release"`

	// platform describes the machines.
	//
	// +required
	Platform NodePoolPlatform `json:"platform"`

	// replicas is how many workers there are to be. Unset, with autoScaling unset too, means 0.
	//
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// management says how the pool changes its workers.
	//
	// +required
	Management NodePoolManagement `json:"management"`

	// autoScaling lets the cluster autoscaler choose the number of workers. It excludes replicas.
	//
	// +optional
	AutoScaling *NodePoolAutoScaling `json:"autoScaling,omitempty"`

	// config names ConfigMaps in this namespace whose key config holds a manifest that configures nodes: MachineConfig,
	// KubeletConfig, ContainerRuntimeConfig, ImageContentSourcePolicy, ImageDigestMirrorSet. Changing what they hold rolls
	// the pool.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=10
	Config []corev1.LocalObjectReference `json:"config,omitempty"`

	// nodeDrainTimeout is how long a node may take to drain before its machine is deleted anyway, as a Go duration. Unset,
	// or 0, means for ever.
	//
	// +optional
	NodeDrainTimeout *metav1.Duration `json:"nodeDrainTimeout,omitempty"`

	// nodeVolumeDetachTimeout is how long volumes may take to detach before the machine is deleted anyway, as a Go duration.
	// Unset, or 0, means for ever.
	//
	// +optional
	NodeVolumeDetachTimeout *metav1.Duration `json:"nodeVolumeDetachTimeout,omitempty"`

	// nodeLabels are put on nodes. Changing them does not roll the pool.
	//
	// +optional
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`

	// taints are put on new nodes.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=50
	Taints []Taint `json:"taints,omitempty"`

	// pausedUntil stops the operators from changing the pool: "true" until it is removed, an RFC 3339 time until then.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=35
	// +kubebuilder:validation:XValidation:rule=`self.matches('^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}.*$') || self in ['true', 'false', 'True', 'False']`,message="pausedUntil must be an RFC 3339 time such as 2027-01-31T12:00:00Z, or true or false"
	PausedUntil *string `json:"pausedUntil,omitempty"`

	// tuningConfig names ConfigMaps in this namespace whose key tuning holds a Tuned or a PerformanceProfile (OpenShift).
	//
	// +optional
	// +kubebuilder:validation:MaxItems=10
	TuningConfig []corev1.LocalObjectReference `json:"tuningConfig,omitempty"`

	// arch is the CPU architecture of the workers. It cannot change.
	//
	// +optional
	// +kubebuilder:default:="amd64"
	// +kubebuilder:validation:Enum=arm64;amd64;ppc64le;s390x
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="arch is immutable"
	Arch string `json:"arch,omitempty"`

	// osImageStream chooses the operating system (TechPreview). It cannot go back from rhel-10 to rhel-9.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.name) || oldSelf.name != 'rhel-10' || (has(self.name) && self.name != 'rhel-9')",message="osImageStream cannot go back from rhel-10 to rhel-9"
	OSImageStream OSImageStreamReference `json:"osImageStream,omitzero"`
}

// OSImageStreamReference names an operating system.
type OSImageStreamReference struct {
	// name is the name of the stream in the release.
	//
	// +required
	// +kubebuilder:validation:Enum=rhel-9;rhel-10
	Name string `json:"name"`
}

// UpgradeType says how workers get a new release or configuration.
//
// +kubebuilder:validation:Enum=Replace;InPlace
type UpgradeType string

const (
	// UpgradeTypeReplace makes new machines and deletes the old ones.
	UpgradeTypeReplace UpgradeType = "Replace"
	// UpgradeTypeInPlace changes the machines that there are.
	UpgradeTypeInPlace UpgradeType = "InPlace"
)

// UpgradeStrategy says when Replace makes new machines.
//
// +kubebuilder:validation:Enum=RollingUpdate;OnDelete
type UpgradeStrategy string

const (
	// UpgradeStrategyRollingUpdate replaces machines a few at a time.
	UpgradeStrategyRollingUpdate UpgradeStrategy = "RollingUpdate"
	// UpgradeStrategyOnDelete replaces a machine when somebody deletes it.
	UpgradeStrategyOnDelete UpgradeStrategy = "OnDelete"
)

// NodePoolManagement says how a pool changes its workers.
//
// +kubebuilder:validation:XValidation:rule="!has(self.inPlace) || self.upgradeType == 'InPlace'",message="inPlace is allowed only when upgradeType is InPlace"
type NodePoolManagement struct {
	// upgradeType says how workers get a new release or configuration. It cannot change.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="upgradeType is immutable"
	UpgradeType UpgradeType `json:"upgradeType"`

	// replace configures upgradeType Replace.
	//
	// +optional
	// +kubebuilder:default:={strategy: "RollingUpdate", rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
	Replace *ReplaceUpgrade `json:"replace,omitempty"`

	// inPlace configures upgradeType InPlace.
	//
	// +optional
	InPlace *InPlaceUpgrade `json:"inPlace,omitempty"`

	// autoRepair replaces machines whose node is unhealthy.
	//
	// +optional
	// +kubebuilder:default:=false
	AutoRepair bool `json:"autoRepair"`
}

// ReplaceUpgrade configures upgrades that replace machines.
//
// +kubebuilder:validation:XValidation:rule="!has(self.rollingUpdate) || (has(self.strategy) && self.strategy == 'RollingUpdate')",message="rollingUpdate is allowed only when strategy is RollingUpdate"
type ReplaceUpgrade struct {
	// strategy says when machines are replaced.
	//
	// +optional
	Strategy UpgradeStrategy `json:"strategy,omitempty"`

	// rollingUpdate says how many machines are replaced at a time.
	//
	// +optional
	RollingUpdate *RollingUpdate `json:"rollingUpdate,omitempty"`
}

// RollingUpdate says how many machines are replaced at a time. Percentages are of the size of the pool.
type RollingUpdate struct {
	// maxUnavailable is how many machines, or what percentage rounded down, may be missing. It cannot be 0 when maxSurge
	// is. Unset means 0.
	//
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxSurge is how many machines, or what percentage rounded up, may be there in excess. It cannot be 0 when
	// maxUnavailable is. Unset means 1.
	//
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
}

// InPlaceUpgrade configures upgrades that change machines.
type InPlaceUpgrade struct {
	// maxUnavailable is how many machines, or what percentage of the pool rounded down, are changed at a time. Unset
	// means 1.
	//
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// NodePoolAutoScaling bounds what the cluster autoscaler does with a pool.
//
// +kubebuilder:validation:XValidation:rule="self.max >= self.min",message="max must be at least min"
type NodePoolAutoScaling struct {
	// min is the least number of workers. It may be 0 only where the platform tells the autoscaler what a machine would
	// offer.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Min *int32 `json:"min"`

	// max is the greatest number of workers.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	Max int32 `json:"max"`
}

// Taint keeps pods that do not tolerate it from a node.
type Taint struct {
	// key is the key of the taint.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')`,message="key must be a qualified name: an optional DNS prefix and '/', then up to 63 letters, digits, '-', '_' or '.'"
	Key string `json:"key"`

	// value is the value of the taint.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$')`,message="value must be empty, or letters, digits, '-', '_' and '.' that start and end with a letter or digit"
	Value string `json:"value,omitempty"`

	// effect says what happens to pods that do not tolerate the taint.
	//
	// +required
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect"`
}

// NodePoolCondition is one finding about a NodePool.
type NodePoolCondition struct {
	// type names the finding.
	//
	// +required
	// +kubebuilder:validation:MaxLength=316
	Type string `json:"type"`

	// status is True, False or Unknown.
	//
	// +required
	Status corev1.ConditionStatus `json:"status"`

	// severity says how bad it is when status is False; empty otherwise.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Severity string `json:"severity,omitempty"`

	// lastTransitionTime is when status changed last.
	//
	// +required
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`

	// reason is a CamelCase word for machines.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// message is for people.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`

	// observedGeneration is the generation of the NodePool that the finding is about.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// NodePoolStatus is what the operators found.
type NodePoolStatus struct {
	// replicas is how many workers there are.
	//
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// version is the release that every worker runs. It moves when a rollout is complete.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// conditions are the findings, one per type. The list is not a map on the wire.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	Conditions []NodePoolCondition `json:"conditions,omitempty"`

	// nodesInfo says which versions nodes run.
	//
	// +optional
	NodesInfo NodePoolNodesInfo `json:"nodesInfo,omitzero"`

	// platform is what was found on the platform.
	//
	// +optional
	Platform *NodePoolPlatformStatus `json:"platform,omitempty"`

	// osImageStream is the operating system that every worker runs (TechPreview).
	//
	// +optional
	OSImageStream OSImageStreamReference `json:"osImageStream,omitzero"`
}

// NodePoolNodesInfo says which versions nodes run.
type NodePoolNodesInfo struct {
	// nodeVersions lists the versions and how many nodes run each.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	NodeVersions []NodeVersion `json:"nodeVersions"`
}

// NodeVersion counts nodes of one version.
type NodeVersion struct {
	// ocpVersion is the version of the release.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches('^\\d+\\.\\d+\\.\\d+.*$')`,message="ocpVersion must start with three numbers, such as 4.20.1"
	OCPVersion string `json:"ocpVersion"`

	// kubeletVersion is the version of the kubelet.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches('^v?\\d+\\.\\d+\\.\\d+.*$')`,message="kubeletVersion must start with three numbers, such as v1.36.3"
	KubeletVersion string `json:"kubeletVersion"`

	// readyNodeCount is how many nodes of the version are ready.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	ReadyNodeCount int32 `json:"readyNodeCount"`

	// unreadyNodeCount is how many nodes of the version are not ready.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	UnreadyNodeCount int32 `json:"unreadyNodeCount"`
}
