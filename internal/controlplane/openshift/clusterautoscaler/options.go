package clusterautoscaler

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// ignoredLabels differ between nodes of otherwise similar pools.
var ignoredLabels = []string{
	"hypershift.openshift.io/nodePool", "topology.ebs.csi.aws.com/zone", "topology.disk.csi.azure.com/zone", "ibm-cloud.kubernetes.io/worker-id",
	"vpc-block-csi-driver-labels", "hypershift.openshift.io/nodepool-globalps-enabled",
}

// platformLabels are ignoredLabels of one platform.
var platformLabels = map[hyperv1.PlatformType][]string{
	hyperv1.AWSPlatform:   {"lifecycle", "k8s.amazonaws.com/eniConfig", "topology.k8s.aws/zone-id"},
	hyperv1.AzurePlatform: {"agentpool", "kubernetes.azure.com/agentpool"},
}

// expanders by their names in the API.
var expanders = map[hyperv1.ExpanderString]string{
	hyperv1.LeastWasteExpander: "least-waste", hyperv1.PriorityExpander: "priority", hyperv1.RandomExpander: "random",
}

// options say what spec.autoscaling asks for. What is not given is left to the autoscaler.
func options(hcp *hyperv1.HostedControlPlane) []string {
	a := hcp.Spec.Autoscaling
	args := scaleDown(a)
	number := func(flag string, n *int32) {
		if n != nil {
			args = append(args, flag+"="+strconv.Itoa(int(*n)))
		}
	}
	number("--max-nodes-total", a.MaxNodesTotal)
	number("--max-graceful-termination-sec", a.MaxPodGracePeriod)
	if a.MaxNodeProvisionTime != "" {
		args = append(args, "--max-node-provision-time="+a.MaxNodeProvisionTime)
	}
	if n := a.MaxFreeDifferenceRatioPercent; n != nil {
		args = append(args, "--max-free-difference-ratio="+hundredth(*n))
	}
	number("--expendable-pods-priority-cutoff", a.PodPriorityThreshold)
	ignore := func(labels []string) {
		for _, label := range labels {
			args = append(args, "--balancing-ignore-label="+label)
		}
	}
	ignore(a.BalancingIgnoredLabels)
	var names []string
	for _, e := range a.Expanders {
		names = append(names, cmp.Or(expanders[e], string(e)))
	}
	args = append(args, "--expander="+cmp.Or(strings.Join(names, ","), "priority,least-waste"))
	ignore(ignoredLabels)
	ignore(platformLabels[hcp.Spec.Platform.Type])
	return args
}

// scaleDown says when nodes are taken away.
func scaleDown(a hyperv1.ClusterAutoscaling) []string {
	if a.Scaling == hyperv1.ScaleUpOnly {
		return []string{"--scale-down-enabled=false"}
	}
	d := a.ScaleDown
	if d == nil {
		return nil
	}
	args := []string{"--scale-down-enabled=true"}
	for _, delay := range []struct {
		flag    string
		seconds *int32
	}{
		{"--scale-down-delay-after-add", d.DelayAfterAddSeconds},
		{"--scale-down-delay-after-delete", d.DelayAfterDeleteSeconds},
		{"--scale-down-delay-after-failure", d.DelayAfterFailureSeconds},
		{"--scale-down-unneeded-time", d.UnneededDurationSeconds},
	} {
		if delay.seconds != nil {
			args = append(args, fmt.Sprintf("%s=%ds", delay.flag, *delay.seconds))
		}
	}
	if n := d.UtilizationThresholdPercent; n != nil {
		args = append(args, "--scale-down-utilization-threshold="+hundredth(*n))
	}
	return args
}

// hundredth is a number of percent as a fraction with two decimals.
func hundredth(percent int32) string { return strconv.FormatFloat(float64(percent)/100, 'f', 2, 64) }
