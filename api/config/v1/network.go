package v1

import (
	corev1 "k8s.io/api/core/v1"
)

// NetworkSpec configures the network beyond spec.networking of the HostedCluster, which wins where both say something.
//
// +kubebuilder:validation:XValidation:rule="!has(self.networkDiagnostics) || !has(self.networkDiagnostics.mode) || self.networkDiagnostics.mode != 'Disabled' || (!has(self.networkDiagnostics.sourcePlacement) && !has(self.networkDiagnostics.targetPlacement))",message="networkDiagnostics.sourcePlacement and targetPlacement are forbidden when mode is Disabled"
type NetworkSpec struct {
	// clusterNetwork is ignored: spec.networking of the HostedCluster decides.
	//
	// +optional
	// +listType=atomic
	ClusterNetwork []ClusterNetworkEntry `json:"clusterNetwork,omitempty"`

	// serviceNetwork is ignored: spec.networking of the HostedCluster decides.
	//
	// +optional
	// +listType=atomic
	ServiceNetwork []string `json:"serviceNetwork,omitempty"`

	// networkType is ignored: spec.networking of the HostedCluster decides.
	//
	// +optional
	NetworkType string `json:"networkType,omitempty"`

	// externalIP says which external addresses Services may have.
	//
	// +optional
	ExternalIP *ExternalIPConfig `json:"externalIP,omitempty"`

	// serviceNodePortRange is the range of node ports, as first-last. Unset means 30000-32767.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])-([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$`
	ServiceNodePortRange string `json:"serviceNodePortRange,omitempty"`

	// networkDiagnostics says whether, and from where, OpenShift checks connections in the cluster.
	//
	// +optional
	NetworkDiagnostics NetworkDiagnostics `json:"networkDiagnostics,omitzero"`

	// networkObservability says whether the cluster records which workloads talk to each other. Unset means that the release
	// decides (TechPreview).
	//
	// +optional
	NetworkObservability *NetworkObservability `json:"networkObservability,omitempty"`
}

// NetworkObservabilityInstallationPolicy says whether network observability is installed.
//
// +kubebuilder:validation:Enum=InstallAndEnable;NoAction
type NetworkObservabilityInstallationPolicy string

const (
	// NetworkObservabilityInstallAndEnable installs it and has it on.
	NetworkObservabilityInstallAndEnable NetworkObservabilityInstallationPolicy = "InstallAndEnable"
	// NetworkObservabilityNoAction leaves what is there.
	NetworkObservabilityNoAction NetworkObservabilityInstallationPolicy = "NoAction"
)

// NetworkObservability says whether the cluster records which workloads talk to each other.
type NetworkObservability struct {
	// installationPolicy says whether it is installed. What is installed stays when this goes back to NoAction.
	//
	// +required
	InstallationPolicy NetworkObservabilityInstallationPolicy `json:"installationPolicy"`
}

// ClusterNetworkEntry is one network of pods.
type ClusterNetworkEntry struct {
	// cidr is the network.
	//
	// +optional
	CIDR string `json:"cidr,omitempty"`

	// hostPrefix is the prefix length of the part that each node gets.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	HostPrefix uint32 `json:"hostPrefix,omitempty"`
}

// ExternalIPConfig says which external addresses Services may have.
type ExternalIPConfig struct {
	// policy restricts spec.externalIPs of Services. Unset means none are allowed.
	//
	// +optional
	Policy *ExternalIPPolicy `json:"policy,omitempty"`

	// autoAssignCIDRs lists networks that Services of type LoadBalancer get addresses from.
	//
	// +optional
	// +listType=atomic
	AutoAssignCIDRs []string `json:"autoAssignCIDRs,omitempty"`
}

// ExternalIPPolicy restricts spec.externalIPs of Services.
type ExternalIPPolicy struct {
	// allowedCIDRs lists networks that addresses may be of.
	//
	// +optional
	// +listType=atomic
	AllowedCIDRs []string `json:"allowedCIDRs,omitempty"`

	// rejectedCIDRs lists networks that addresses may not be of; it wins over allowedCIDRs.
	//
	// +optional
	// +listType=atomic
	RejectedCIDRs []string `json:"rejectedCIDRs,omitempty"`
}

// NetworkDiagnosticsMode says whether connections are checked.
//
// +kubebuilder:validation:Enum="";All;Disabled
type NetworkDiagnosticsMode string

const (
	// NetworkDiagnosticsNoOpinion leaves it to the release.
	NetworkDiagnosticsNoOpinion NetworkDiagnosticsMode = ""
	// NetworkDiagnosticsAll checks every kind of connection.
	NetworkDiagnosticsAll NetworkDiagnosticsMode = "All"
	// NetworkDiagnosticsDisabled checks none.
	NetworkDiagnosticsDisabled NetworkDiagnosticsMode = "Disabled"
)

// NetworkDiagnostics says whether, and from where, connections are checked.
type NetworkDiagnostics struct {
	// mode says whether connections are checked.
	//
	// +optional
	Mode NetworkDiagnosticsMode `json:"mode,omitempty"`

	// sourcePlacement says on which node the checker runs.
	//
	// +optional
	SourcePlacement NetworkDiagnosticsPlacement `json:"sourcePlacement,omitzero"`

	// targetPlacement says on which nodes what is checked runs.
	//
	// +optional
	TargetPlacement NetworkDiagnosticsPlacement `json:"targetPlacement,omitzero"`
}

// NetworkDiagnosticsPlacement selects nodes.
type NetworkDiagnosticsPlacement struct {
	// nodeSelector selects nodes by their labels. Unset means Linux nodes.
	//
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations lists taints that do not matter.
	//
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}
