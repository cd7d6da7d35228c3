package kit

import (
	corev1 "k8s.io/api/core/v1"

	"hcp.internal/platform/internal/controlplane/component"
)

// AdaptControllerConfig has a GenericControllerConfig, key config.yaml of a ConfigMap, serve by the TLS profile of the hosted cluster.
func AdaptControllerConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	return EditConfig(cm, "config.yaml", func(config map[string]any) error {
		TLSOf(ctx.HCP).ServingInfo(Section(config, "servingInfo"))
		return nil
	})
}
