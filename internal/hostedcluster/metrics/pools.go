package metrics

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// poolLabels name a NodePool and its cluster; _id is the cluster's.
var poolLabels = []string{"namespace", "name", "_id", "cluster_name", "platform"}

var (
	poolCount = newMetric("hypershift_nodepools", "NodePools by platform.", "platform")
	poolFails = newMetric("hypershift_nodepools_failure_conditions",
		"NodePools whose condition is not as expected, by platform; not_ is before conditions that should be True.", "platform", "condition")
	clusterPools   = newMetric("hypershift_hostedcluster_nodepools", "NodePools of a hosted cluster.", with(identity, "platform")...)
	poolSize       = newMetric("hypershift_nodepools_size", "Nodes that a NodePool should have.", poolLabels...)
	poolAvailable  = newMetric("hypershift_nodepools_available_replicas", "Nodes that a NodePool has.", poolLabels...)
	poolRollingOut = newMetric("hypershift_nodepools_initial_rolling_out_duration_seconds",
		"Age of a NodePool whose first version is not rolled out completely yet.", poolLabels...)
	poolDeleting = newMetric("hypershift_nodepools_deleting_duration_seconds", "How long the deletion of the NodePool has taken.", poolLabels...)
)

var (
	poolExpectedTrue = []string{
		hyperv1.NodePoolReadyConditionType, hyperv1.NodePoolValidReleaseImageConditionType, hyperv1.NodePoolValidGeneratedPayloadConditionType,
		hyperv1.NodePoolValidMachineConfigConditionType, hyperv1.NodePoolValidTuningConfigConditionType, hyperv1.NodePoolAllMachinesReadyConditionType,
		hyperv1.NodePoolAllNodesHealthyConditionType, hyperv1.NodePoolReconciliationActiveConditionType, hyperv1.NodePoolReachedIgnitionEndpoint,
		hyperv1.NodePoolUpdateManagementEnabledConditionType, hyperv1.NodePoolValidArchPlatform,
	}
	poolExpectedFalse = []string{hyperv1.NodePoolUpdatingVersionConditionType, hyperv1.NodePoolUpdatingConfigConditionType}
)

func poolSamples(clusters []hyperv1.HostedCluster, pools []hyperv1.NodePool, now time.Time) (out []sample) {
	count, fails := map[string]int{}, map[[2]string]int{}
	for i := range pools {
		np := &pools[i]
		platform := string(np.Spec.Platform.Type)
		count[platform]++
		for _, kind := range poolExpectedTrue {
			fails[[2]string{platform, "not_" + kind}] += one(!poolCondition(np, kind, corev1.ConditionTrue))
		}
		for _, kind := range poolExpectedFalse {
			fails[[2]string{platform, kind}] += one(!poolCondition(np, kind, corev1.ConditionFalse))
		}
		labels := []string{np.Namespace, np.Name, clusterID(clusters, np), np.Spec.ClusterName, platform}
		if size, known := wantedNodes(np); known {
			out = append(out, sample{poolSize, float64(size), labels})
		}
		out = append(out, sample{poolAvailable, float64(np.Status.Replicas), labels})
		switch {
		case np.DeletionTimestamp != nil:
			out = append(out, sample{poolDeleting, now.Sub(np.DeletionTimestamp.Time).Seconds(), labels})
		case np.Status.Version == "": // set once the first rollout is done
			out = append(out, sample{poolRollingOut, now.Sub(np.CreationTimestamp.Time).Seconds(), labels})
		}
	}
	for platform, n := range count {
		out = append(out, sample{poolCount, float64(n), []string{platform}})
	}
	for key, n := range fails {
		out = append(out, sample{poolFails, float64(n), key[:]})
	}
	for i := range clusters {
		hc, n := &clusters[i], 0
		for j := range pools {
			n += one(pools[j].Namespace == hc.Namespace && pools[j].Spec.ClusterName == hc.Name)
		}
		out = append(out, sample{clusterPools, float64(n), []string{hc.Namespace, hc.Name, hc.Spec.ClusterID, string(hc.Spec.Platform.Type)}})
	}
	return out
}

// wantedNodes is what a person asked for; with autoscaling it is what the autoscaler has chosen.
func wantedNodes(np *hyperv1.NodePool) (int32, bool) {
	if np.Spec.AutoScaling != nil {
		return np.Status.Replicas, true
	}
	return ptr.Deref(np.Spec.Replicas, 0), np.Spec.Replicas != nil
}

func poolCondition(np *hyperv1.NodePool, kind string, status corev1.ConditionStatus) bool {
	return slices.ContainsFunc(np.Status.Conditions, func(c hyperv1.NodePoolCondition) bool { return c.Type == kind && c.Status == status })
}

func clusterID(clusters []hyperv1.HostedCluster, np *hyperv1.NodePool) string {
	for i := range clusters {
		if clusters[i].Namespace == np.Namespace && clusters[i].Name == np.Spec.ClusterName {
			return clusters[i].Spec.ClusterID
		}
	}
	return ""
}
