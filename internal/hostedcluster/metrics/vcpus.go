package metrics

import (
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

var (
	vcpus = newMetric("hypershift_cluster_vcpus",
		"Virtual processors of the workers of a hosted cluster; -1 when they can't be counted, for the reason that hypershift_cluster_vcpus_computation_error has.",
		with(identity, "platform")...)
	vcpusError = newMetric("hypershift_cluster_vcpus_computation_error",
		"1 when the virtual processors of a hosted cluster can't be counted, by reason.", with(identity, "platform", "reason")...)
)

// Reasons why processors can't be counted.
const (
	// instanceTypeUnknown: machines are of a type whose processors only the cloud knows.
	instanceTypeUnknown = "InstanceTypeUnknown"
	// machinesUnknown: the platform's machines are made elsewhere, and nothing in the NodePool tells of their size.
	machinesUnknown = "MachinesUnknown"
)

// vcpuSamples count the processors of a hosted cluster's NodePools, and those that Karpenter brought.
func vcpuSamples(hc *hyperv1.HostedCluster, pools []hyperv1.NodePool) []sample {
	labels := []string{hc.Namespace, hc.Name, hc.Spec.ClusterID, string(hc.Spec.Platform.Type)}
	sum := int64(ptr.Deref(hc.Status.AutoNode.VCPUs, 0))
	for i := range pools {
		np := &pools[i]
		if np.Namespace != hc.Namespace || np.Spec.ClusterName != hc.Name || np.Status.Replicas == 0 {
			continue
		}
		each, reason := processors(np)
		if reason != "" {
			return []sample{{vcpus, -1, labels}, {vcpusError, 1, with(labels, reason)}}
		}
		sum += each * int64(np.Status.Replicas)
	}
	return []sample{{vcpus, float64(sum), labels}}
}

// processors of one machine of a pool, or the reason why they aren't known.
func processors(np *hyperv1.NodePool) (int64, string) {
	switch p := np.Spec.Platform; p.Type {
	case hyperv1.KubevirtPlatform:
		if p.Kubevirt == nil || p.Kubevirt.Compute == nil || p.Kubevirt.Compute.Cores == nil {
			return 0, machinesUnknown
		}
		return int64(*p.Kubevirt.Compute.Cores), ""
	case hyperv1.AWSPlatform, hyperv1.AzurePlatform, hyperv1.GCPPlatform, hyperv1.OpenStackPlatform, hyperv1.PowerVSPlatform:
		return 0, instanceTypeUnknown
	}
	return 0, machinesUnknown
}
