package kit

import (
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/endpoints"
)

// ForwardsMetrics says whether the metrics of the control plane are offered to the hosted cluster.
func ForwardsMetrics(hcp *hyperv1.HostedControlPlane) bool { return payload.ForwardsMetrics(hcp) }

// WithForwardedMetrics is ForwardsMetrics as a predicate.
func WithForwardedMetrics(ctx component.WorkloadContext) (bool, error) {
	return ForwardsMetrics(ctx.HCP), nil
}

// MetricsProxyHost is the name by which the hosted cluster reaches the metrics of the control plane; see endpoints.MetricsRouteHost.
func MetricsProxyHost(hcp *hyperv1.HostedControlPlane) string { return endpoints.MetricsRouteHost(hcp) }
