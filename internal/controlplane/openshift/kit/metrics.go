package kit

import (
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

// ForwardsMetrics says whether the metrics of the control plane are offered to the hosted cluster.
func ForwardsMetrics(hcp *hyperv1.HostedControlPlane) bool {
	_, disabled := hcp.Annotations[hyperv1.DisableMonitoringServices]
	return !disabled && hcp.Spec.Monitoring.MetricsForwarding.Mode == hyperv1.MetricsForwardingForward
}

// WithForwardedMetrics is ForwardsMetrics as a predicate.
func WithForwardedMetrics(ctx component.WorkloadContext) (bool, error) {
	return ForwardsMetrics(ctx.HCP), nil
}
