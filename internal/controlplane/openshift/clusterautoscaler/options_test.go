package clusterautoscaler

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestOptions(t *testing.T) {
	builtIn := []string{
		"--balancing-ignore-label=hypershift.openshift.io/nodePool", "--balancing-ignore-label=topology.ebs.csi.aws.com/zone",
		"--balancing-ignore-label=topology.disk.csi.azure.com/zone", "--balancing-ignore-label=ibm-cloud.kubernetes.io/worker-id",
		"--balancing-ignore-label=vpc-block-csi-driver-labels", "--balancing-ignore-label=hypershift.openshift.io/nodepool-globalps-enabled",
	}
	for name, tc := range map[string]struct {
		platform    hyperv1.PlatformType
		autoscaling hyperv1.ClusterAutoscaling
		want        []string
	}{
		"When nothing is asked for it should have an expander and the labels": {platform: hyperv1.AzurePlatform,
			want: append(append([]string{"--expander=priority,least-waste"}, builtIn...), "--balancing-ignore-label=agentpool", "--balancing-ignore-label=kubernetes.azure.com/agentpool")},
		"When nodes are only added it should say so": {autoscaling: hyperv1.ClusterAutoscaling{Scaling: hyperv1.ScaleUpOnly, ScaleDown: &hyperv1.ScaleDownConfig{}},
			want: append([]string{"--scale-down-enabled=false", "--expander=priority,least-waste"}, builtIn...)},
		"When all is asked for it should be in order": {autoscaling: hyperv1.ClusterAutoscaling{
			Scaling: hyperv1.ScaleUpAndScaleDown, ScaleDown: &hyperv1.ScaleDownConfig{DelayAfterAddSeconds: ptr.To[int32](300), UtilizationThresholdPercent: ptr.To[int32](50)},
			BalancingIgnoredLabels: []string{"mine"}, MaxNodesTotal: ptr.To[int32](9), MaxPodGracePeriod: ptr.To[int32](600), MaxNodeProvisionTime: "15m",
			MaxFreeDifferenceRatioPercent: ptr.To[int32](5), PodPriorityThreshold: ptr.To[int32](-10), Expanders: []hyperv1.ExpanderString{hyperv1.LeastWasteExpander, hyperv1.RandomExpander},
		}, want: append([]string{
			"--scale-down-enabled=true", "--scale-down-delay-after-add=300s", "--scale-down-utilization-threshold=0.50", "--max-nodes-total=9",
			"--max-graceful-termination-sec=600", "--max-node-provision-time=15m", "--max-free-difference-ratio=0.05", "--expendable-pods-priority-cutoff=-10",
			"--balancing-ignore-label=mine", "--expander=least-waste,random",
		}, builtIn...)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hcp := &hyperv1.HostedControlPlane{}
			hcp.Spec.Platform.Type, hcp.Spec.Autoscaling = tc.platform, tc.autoscaling
			g.Expect(options(hcp)).To(Equal(tc.want))
		})
	}
}
