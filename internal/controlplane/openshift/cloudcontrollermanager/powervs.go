package cloudcontrollermanager

import (
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// NewPowerVS makes the component of this platform.
func NewPowerVS() *component.WorkloadComponent {
	adapt := func(ctx component.WorkloadContext, pod *corev1.PodSpec) error {
		kit.Volume(pod, "cloud-creds").Secret.SecretName = powerVS(ctx.HCP).KubeCloudControllerCreds.Name
		return nil
	}
	return builder("powervs", hyperv1.PowerVSPlatform, component.Options{MultiZoneSpread: true}, adapt).
		WithManifestAdapter("config.yaml", component.AdaptManifest(powerVSConfig)).
		Build()
}

// powerVS is spec.platform.powervs; empty when there is none.
func powerVS(hcp *hyperv1.HostedControlPlane) hyperv1.PowerVSPlatformSpec {
	if p := hcp.Spec.Platform.PowerVS; p != nil {
		return *p
	}
	return hyperv1.PowerVSPlatformSpec{}
}

func powerVSConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	p, vpc := powerVS(ctx.HCP), hyperv1.PowerVSVPC{}
	if p.VPC != nil {
		vpc = *p.VPC
	}
	var conf ini
	conf.section("global", setting{"version", "1.1.0"})
	conf.section("kubernetes", setting{"config-file", "/etc/kubernetes/kubeconfig"})
	conf.section("provider",
		setting{"cluster-default-provider", "g2"}, setting{"g2Credentials", "/etc/vpc/ibmcloud_api_key"},
		setting{"g2workerServiceAccountID", p.AccountID}, setting{"accountID", p.AccountID},
		setting{"g2ResourceGroupName", p.ResourceGroup}, setting{"g2VpcSubnetNames", vpc.Subnet}, setting{"g2VpcName", vpc.Name},
		setting{"clusterID", ctx.HCP.Name}, setting{"region", vpc.Region},
		setting{"powerVSCloudInstanceID", p.ServiceInstanceID}, setting{"powerVSRegion", p.Region}, setting{"powerVSZone", p.Zone})
	cm.Data = map[string]string{"ccm-config": conf.text.String()}
	return conf.err
}
