package cloudcontrollermanager

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

// NewGCP makes the component of this platform.
func NewGCP() *component.WorkloadComponent {
	adapt := func(component.WorkloadContext, *corev1.PodSpec) error { return nil }
	return builder("gcp", hyperv1.GCPPlatform, component.Options{MultiZoneSpread: true}, adapt).
		InjectTokenMinterContainer(component.TokenMinter{Type: component.CloudToken, ServiceAccountNamespace: "kube-system", ServiceAccountName: "cloud-controller-manager"}).
		WithManifestAdapter("config.yaml", component.AdaptManifest(gcpConfig)).
		Build()
}

func gcpConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	var gcp hyperv1.GCPPlatformSpec
	if of := ctx.HCP.Spec.Platform.GCP; of != nil {
		gcp = *of
	}
	var conf ini
	conf.section("Global",
		setting{"project-id", gcp.Project}, setting{"network-name", string(gcp.NetworkConfig.Network.Name)},
		setting{"node-tags", strings.ToLower(ctx.HCP.Spec.InfraID + "-worker")}, setting{"multizone", "true"}, setting{"token-url", `"nil"`})
	cm.Data = map[string]string{"cloud.conf": conf.text.String()}
	return conf.err
}
