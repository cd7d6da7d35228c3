package cloudcontrollermanager

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

// NewAWS makes the component of this platform.
func NewAWS() *component.WorkloadComponent {
	adapt := func(ctx component.WorkloadContext, pod *corev1.PodSpec) error {
		component.ManagementProxy(ctx, component.Container(pod, Container))
		return nil
	}
	return builder("aws", hyperv1.AWSPlatform, component.Options{MultiZoneSpread: true}, adapt).
		InjectTokenMinterContainer(component.TokenMinter{Type: component.CloudToken, ServiceAccountNamespace: "kube-system", ServiceAccountName: "kube-controller-manager"}).
		WithManifestAdapter("config.yaml", component.AdaptManifest(awsConfig)).
		Build()
}

func awsConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	probe, err := healthProbeOf(ctx.HCP, hyperv1.AWSLoadBalancerHealthProbeModeAnnotation, "Shared", "ServiceNodePort")
	if err != nil {
		return err
	}
	var provider hyperv1.AWSCloudProviderConfig
	if aws := ctx.HCP.Spec.Platform.AWS; aws != nil && aws.CloudProviderConfig != nil {
		provider = *aws.CloudProviderConfig
	}
	subnet := ""
	if provider.Subnet != nil {
		subnet = ptr.Deref(provider.Subnet.ID, "")
	}
	settings := []setting{
		{"Zone", provider.Zone}, {"VPC", provider.VPC}, {"KubernetesClusterID", ctx.HCP.Spec.InfraID}, {"SubnetID", subnet},
		{"ClusterServiceLoadBalancerHealthProbeMode", probe.mode}, {"NLBSecurityGroupMode", "Managed"},
	}
	if probe.path != "" {
		settings = append(settings, setting{"ClusterServiceSharedLoadBalancerHealthProbePath", probe.path})
	}
	if probe.port != 0 {
		settings = append(settings, setting{"ClusterServiceSharedLoadBalancerHealthProbePort", strconv.Itoa(probe.port)})
	}
	var conf ini
	conf.section("Global", settings...)
	cm.Data = map[string]string{"aws.conf": conf.text.String()}
	return conf.err
}
