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

// RHOBSOfROSA says whether the management clusters of the managed service have a monitoring stack of their own.
func RHOBSOfROSA(ctx component.WorkloadContext) bool {
	return ctx.Environment.RHOBSMonitoring && ctx.Environment.ManagedService == "ROSA-HCP"
}

// ReadsManagementMetrics says whether the cluster-version-operator asks the monitoring of the management cluster about the hosted cluster, to judge the risks
// of updates.
func ReadsManagementMetrics(ctx component.WorkloadContext) bool {
	return ctx.Environment.CVOMetricsAccess || RHOBSOfROSA(ctx)
}

// WithManagementMetrics is ReadsManagementMetrics as a predicate.
func WithManagementMetrics(ctx component.WorkloadContext) (bool, error) {
	return ReadsManagementMetrics(ctx), nil
}
