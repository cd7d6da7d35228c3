package v1beta1

// MetricsSet names a choice of metrics.
//
// +kubebuilder:validation:Enum=Telemetry;SRE;All
type MetricsSet string

const (
	// MetricsSetTelemetry is what telemetry needs.
	MetricsSetTelemetry MetricsSet = "Telemetry"
	// MetricsSetSRE is what the operators' configuration lists.
	MetricsSetSRE MetricsSet = "SRE"
	// MetricsSetAll is nearly everything.
	MetricsSetAll MetricsSet = "All"
)

// MetricsForwardingMode says whether users of the hosted cluster see metrics of its control plane.
//
// +kubebuilder:validation:Enum=Forward;None
type MetricsForwardingMode string

const (
	// MetricsForwardingForward has them see these.
	MetricsForwardingForward MetricsForwardingMode = "Forward"
	// MetricsForwardingNone does not.
	MetricsForwardingNone MetricsForwardingMode = "None"
)

// MonitoringSpec says which metrics of the control plane go where.
//
// +kubebuilder:validation:MinProperties=1
type MonitoringSpec struct {
	// metricsSet chooses the metrics that the management cluster collects. Unset means as the operator was installed.
	//
	// +optional
	MetricsSet MetricsSet `json:"metricsSet,omitempty"`

	// metricsForwarding says which metrics users of the hosted cluster see.
	//
	// +optional
	MetricsForwarding MetricsForwardingSpec `json:"metricsForwarding,omitzero"`
}

// MetricsForwardingSpec says which metrics of the control plane users of the hosted cluster see.
type MetricsForwardingSpec struct {
	// mode says whether they see any.
	//
	// +required
	Mode MetricsForwardingMode `json:"mode"`

	// metricsSet chooses the metrics. Unset means those that the management cluster collects.
	//
	// +optional
	MetricsSet MetricsSet `json:"metricsSet,omitempty"`
}
