package cloudcontrollermanager

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

const (
	// clusterNameLabel on the HostedControlPlane is its Cluster of Cluster API.
	clusterNameLabel = "cluster.x-k8s.io/cluster-name"
	infraDir         = "/etc/kubernetes/infra-kubeconfig"
)

// NewKubeVirt makes the component of this platform.
func NewKubeVirt() *component.WorkloadComponent {
	return builder("kubevirt", hyperv1.KubevirtPlatform, component.Options{MultiZoneSpread: true, NeedsManagementKASAccess: true}, adaptKubeVirt).
		WithManifestAdapter("config.yaml", component.AdaptManifest(kubeVirtConfig)).
		Build()
}

func adaptKubeVirt(ctx component.WorkloadContext, pod *corev1.PodSpec) error {
	name := ctx.HCP.Labels[clusterNameLabel]
	if name == "" && ctx.HCP.Spec.Platform.Type == hyperv1.KubevirtPlatform { // a preview may ask for the component on any platform
		return fmt.Errorf("the HostedControlPlane lacks label %s, the name of its cluster among virtual machines: the hypershift-operator sets it", clusterNameLabel)
	}
	main := component.Container(pod, Container)
	main.Args = append(main.Args, "--cluster-name="+name)
	if kit.ExternalInfra(ctx.HCP) {
		kit.Mount(pod, Container, component.SecretVolume("infra-kubeconfig", kit.InfraKubeconfig), infraDir)
	}
	return nil
}

func kubeVirtConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	return kit.EditConfig(cm, "cloud-config", func(config map[string]any) error {
		config["kubeconfig"] = ""
		if k := ctx.HCP.Spec.Platform.Kubevirt; k != nil && k.Credentials != nil {
			config["kubeconfig"] = infraDir + "/kubeconfig"
		}
		config["namespace"] = kit.InfraNamespace(ctx.HCP)
		config["infraLabels"] = map[string]any{"hypershift.openshift.io/infra-id": ctx.HCP.Spec.InfraID}
		kit.Section(config, "loadBalancer")["creationPollInterval"] = 0
		kit.Section(config, "instancesV2")["zoneAndRegionEnabled"] = false
		return nil
	})
}
