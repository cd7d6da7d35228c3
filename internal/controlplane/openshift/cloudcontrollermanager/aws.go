package cloudcontrollermanager

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

// NewAWS makes the component of this platform.
func NewAWS() *component.WorkloadComponent {
	adapt := func(ctx component.WorkloadContext, pod *corev1.PodSpec) error {
		main := component.Container(pod, Container)
		component.ManagementProxy(ctx, main)
		main.Env = append(main.Env, component.AWSEndpoints(ctx)...)
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
	if aws := ctx.HCP.Spec.Platform.AWS; aws != nil {
		for i, e := range aws.ServiceEndpoints {
			conf.section(fmt.Sprintf("ServiceOverride %q", strconv.Itoa(i+1)), setting{"Service", e.Name}, setting{"Region", aws.Region}, setting{"URL", e.URL}, setting{"SigningRegion", aws.Region})
		}
	}
	cm.Data = map[string]string{"aws.conf": conf.text.String()}
	return conf.err
}
