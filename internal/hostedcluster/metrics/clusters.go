package metrics

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/pause"
)

var (
	clusterCount = newMetric("hypershift_hostedclusters", "Hosted clusters by platform.", "platform")
	clusterFails = newMetric("hypershift_hostedclusters_failure_conditions",
		"Hosted clusters whose condition is not as expected, by platform; not_ is before conditions that should be True.", "platform", "condition")
	identityProviders = newMetric("hypershift_cluster_identity_providers", "Identity providers that hosted clusters are configured with, by type.", "identity_provider")

	waitingCount = newMetric("hypershift_hostedclusters_waiting_for_capacity",
		"Hosted clusters whose control plane waits for room on the nodes of the management cluster, by platform.", "platform")

	waitingCapacity = newMetric("hypershift_cluster_waiting_for_capacity_duration_seconds",
		"How long the control plane of a hosted cluster has waited for room on the nodes of the management cluster.", identity...)
	waitingAvailability = newMetric("hypershift_cluster_waiting_initial_availability_duration_seconds",
		"Age of a hosted cluster that has not been available yet.", identity...)
	rollingOut = newMetric("hypershift_cluster_initial_rolling_out_duration_seconds",
		"Age of a hosted cluster whose first version is not rolled out completely yet.", identity...)
	upgrading = newMetric("hypershift_cluster_upgrading_duration_seconds", "How long the upgrade that is under way has taken.",
		with(identity, "previous_version", "new_version")...)
	limitedSupport = newMetric("hypershift_cluster_limited_support_enabled", "1 when the hosted cluster has limited support.", identity...)
	silenceAlerts  = newMetric("hypershift_cluster_silence_alerts", "1 when alerts about the hosted cluster are silenced.", identity...)
	proxy          = newMetric("hypershift_cluster_proxy", "1 for a hosted cluster with a proxy; the labels say which parts of it are set.",
		with(identity, "proxy_http", "proxy_https", "proxy_trusted_ca")...)
	controlPlane = newMetric("hypershift_cluster_control_plane_info",
		"Constant 1; label control_plane_namespace is where the control plane of the hosted cluster runs.", with(identity, "control_plane_namespace")...)
	proxyCAValid  = newMetric("hypershift_cluster_proxy_ca_valid", "1 when the certificates that the proxy's are checked with are usable.", identity...)
	invalidAWS    = newMetric("hypershift_cluster_invalid_aws_creds", "1 when AWS does not accept the credentials of the hosted cluster.", identity...)
	invalidGCP    = newMetric("hypershift_cluster_invalid_gcp_creds", "1 when Google Cloud does not accept the credentials of the hosted cluster.", identity...)
	deleting      = newMetric("hypershift_cluster_deleting_duration_seconds", "How long the deletion of the hosted cluster has taken.", identity...)
	deletingGuest = newMetric("hypershift_cluster_guest_cloud_resources_deleting_duration_seconds",
		"How long the deletion has waited for cloud resources that the hosted cluster made.", identity...)
	conditionLost = newMetric("hypershift_cluster_condition_lost_duration_seconds",
		"How long a condition that should be True has been False, of a hosted cluster that has been available.", with(identity, "condition")...)
	hibernation = newMetric("hypershift_cluster_hibernated",
		"1 while a hosted cluster sleeps, 0 on its way there and back; there is no series for one that is awake.", identity...)
	etcdNeedsHelp = newMetric("hypershift_etcd_manual_intervention_required", "1 when etcd could not be recovered without a person.",
		with(identity, "environment", "internal_id")...)
	sizeOverride = newMetric("hypershift_cluster_size_override_instances", "1 for a hosted cluster whose size an annotation sets; label size is that size.",
		with(identity, "environment", "internal_id", "size")...)
	encryptionMigration = newMetric("hypershift_encryption_migration_state",
		"1 for the state of the change of encryption key that is under way: ReadOnlyDeploy, WritePromote, Migrating, or Failing when old data can't be written again. No series when none is.",
		with(identity, "state")...)
)

// Labels by which a fleet manager knows the cluster.
const (
	environmentLabel = "api.openshift.com/environment"
	internalIDLabel  = "api.openshift.com/id"
)

// expectedTrue and expectedFalse are the steady state of a hosted cluster.
var (
	expectedTrue = []string{
		hyperv1.HostedClusterAvailable, hyperv1.EtcdAvailable, hyperv1.KubeAPIServerAvailable, hyperv1.InfrastructureReady,
		hyperv1.ValidHostedClusterConfiguration, hyperv1.SupportedHostedCluster, hyperv1.ClusterVersionSucceeding, hyperv1.ClusterVersionAvailable,
		hyperv1.ClusterVersionReleaseAccepted, hyperv1.ReconciliationActive, hyperv1.ReconciliationSucceeded, hyperv1.ConfigOperatorReconciliationSucceeded,
		hyperv1.ValidHostedControlPlaneConfiguration, hyperv1.ValidReleaseImage, hyperv1.ValidReleaseInfo, hyperv1.PlatformCredentialsFound,
		hyperv1.IgnitionEndpointAvailable,
	}
	expectedFalse = []string{hyperv1.HostedClusterProgressing, hyperv1.HostedClusterDegraded, hyperv1.ClusterVersionProgressing}
)

// notAsleep are the conditions that nobody expects of a cluster that sleeps.
var notAsleep = []string{hyperv1.HostedClusterAvailable, hyperv1.EtcdAvailable, hyperv1.KubeAPIServerAvailable, hyperv1.IgnitionEndpointAvailable}

// lostMatters are the conditions whose loss is told per hosted cluster, for alerts. There is no series while all is well.
var lostMatters = []string{hyperv1.HostedClusterAvailable, hyperv1.EtcdAvailable, hyperv1.KubeAPIServerAvailable, hyperv1.ReconciliationSucceeded, encryption.KeysAvailable}

// samples are all values, in no particular order.
func samples(clusters []hyperv1.HostedCluster, pools []hyperv1.NodePool, now time.Time) []sample {
	out := slices.Concat(fleet(clusters), poolSamples(clusters, pools, now))
	for i := range clusters {
		out = append(out, slices.Concat(ofCluster(&clusters[i], now), vcpuSamples(&clusters[i], pools))...)
	}
	return out
}

// fleet are the counts over all clusters.
func fleet(clusters []hyperv1.HostedCluster) (out []sample) {
	count, waiting, providers := map[string]int{}, map[string]int{}, map[string]int{}
	fails := map[[2]string]int{}
	for i := range clusters {
		hc := &clusters[i]
		platform := string(hc.Spec.Platform.Type)
		count[platform]++
		waiting[platform] += one(waitsForCapacity(hc) != nil)
		for _, kind := range expectedTrue {
			if pause.Asleep(hc.Status.Conditions) && slices.Contains(notAsleep, kind) {
				fails[[2]string{platform, "not_" + kind}] += 0
				continue
			}
			fails[[2]string{platform, "not_" + kind}] += one(!conditions.IsTrue(hc.Status.Conditions, kind))
		}
		for _, kind := range expectedFalse {
			fails[[2]string{platform, kind}] += one(!conditions.IsFalse(hc.Status.Conditions, kind))
		}
		if c := hc.Spec.Configuration; c != nil && c.OAuth != nil {
			for _, p := range c.OAuth.IdentityProviders {
				providers[string(p.Type)]++
			}
		}
	}
	for _, platform := range slices.Sorted(maps.Keys(count)) {
		out = append(out, sample{clusterCount, float64(count[platform]), []string{platform}}, sample{waitingCount, float64(waiting[platform]), []string{platform}})
	}
	for key, n := range fails {
		out = append(out, sample{clusterFails, float64(n), key[:]})
	}
	for provider, n := range providers {
		out = append(out, sample{identityProviders, float64(n), []string{provider}})
	}
	return out
}

func ofCluster(hc *hyperv1.HostedCluster, now time.Time) (out []sample) {
	id := []string{hc.Namespace, hc.Name, hc.Spec.ClusterID}
	add := func(m *metric, value float64, more ...string) { out = append(out, sample{m, value, with(id, more...)}) }
	age := now.Sub(hc.CreationTimestamp.Time).Seconds()

	if hc.Annotations[hyperv1.HasBeenAvailableAnnotation] != "true" {
		add(waitingAvailability, age)
	}
	if v := hc.Status.Version; v == nil || !slices.ContainsFunc(v.History, func(h configv1.UpdateHistory) bool { return h.State == configv1.CompletedUpdate }) {
		add(rollingOut, age)
	} else if current := v.History[0]; current.State == configv1.PartialUpdate {
		// What lies between may have been given up.
		from := v.History[slices.IndexFunc(v.History, func(h configv1.UpdateHistory) bool { return h.State == configv1.CompletedUpdate })]
		add(upgrading, now.Sub(current.StartedTime.Time).Seconds(), from.Version, current.Version)
	}
	if c := waitsForCapacity(hc); c != nil {
		add(waitingCapacity, now.Sub(c.LastTransitionTime.Time).Seconds())
	}
	if h := conditions.Get(hc.Status.Conditions, hyperv1.HostedClusterHibernated); h != nil && h.Reason != hyperv1.InvalidHibernateValueReason {
		add(hibernation, float64(one(h.Status == metav1.ConditionTrue)))
	}
	for _, kind := range lostMatters {
		c := conditions.Get(hc.Status.Conditions, kind)
		if pause.Asleep(hc.Status.Conditions) && kind != hyperv1.ReconciliationSucceeded {
			continue // it is not expected to serve
		}
		if c != nil && c.Status == metav1.ConditionFalse && hc.DeletionTimestamp == nil && hc.Annotations[hyperv1.HasBeenAvailableAnnotation] == "true" {
			since := c.LastTransitionTime.Time
			if h := conditions.Get(hc.Status.Conditions, hyperv1.HostedClusterHibernated); h != nil && h.LastTransitionTime.After(since) {
				since = h.LastTransitionTime.Time // it wakes
			}
			add(conditionLost, now.Sub(since).Seconds(), kind)
		}
	}
	add(controlPlane, 1, names.NamespaceOf(hc))
	if state := encryptionState(hc); state != "" {
		add(encryptionMigration, 1, state)
	}
	add(limitedSupport, float64(one(hc.Labels[hyperv1.LimitedSupportLabel] == "true")))
	add(silenceAlerts, float64(one(hc.Labels[hyperv1.SilenceClusterAlertsLabel] == "true")))
	if c := hc.Spec.Configuration; c != nil && c.Proxy != nil {
		flag := func(set bool) string { return map[bool]string{true: "1", false: "0"}[set] }
		add(proxy, 1, flag(c.Proxy.HTTPProxy != ""), flag(c.Proxy.HTTPSProxy != ""), flag(c.Proxy.TrustedCA.Name != ""))
		if c.Proxy.TrustedCA.Name != "" {
			add(proxyCAValid, float64(one(conditions.IsTrue(hc.Status.Conditions, hyperv1.ValidProxyConfiguration))))
		}
	}
	switch hc.Spec.Platform.Type {
	case hyperv1.AWSPlatform:
		add(invalidAWS, float64(one(conditions.IsFalse(hc.Status.Conditions, hyperv1.ValidAWSIdentityProvider))))
	case hyperv1.GCPPlatform:
		add(invalidGCP, float64(one(conditions.IsFalse(hc.Status.Conditions, hyperv1.ValidGCPCredentials))))
	}
	if deleted := hc.DeletionTimestamp; deleted != nil {
		add(deleting, now.Sub(deleted.Time).Seconds())
		if conditions.IsFalse(hc.Status.Conditions, hyperv1.CloudResourcesDestroyed) {
			add(deletingGuest, now.Sub(deleted.Time).Seconds())
		}
	}
	recovery := conditions.Get(hc.Status.Conditions, hyperv1.EtcdRecoveryActive)
	failed := recovery != nil && recovery.Reason == hyperv1.EtcdRecoveryJobFailedReason
	add(etcdNeedsHelp, float64(one(failed)), hc.Labels[environmentLabel], hc.Labels[internalIDLabel])
	if size := hc.Annotations[hyperv1.ClusterSizeOverrideAnnotation]; size != "" {
		add(sizeOverride, 1, hc.Labels[environmentLabel], hc.Labels[internalIDLabel], size)
	}
	return append(out, ofAzure(hc)...)
}

// waitsForCapacity is the condition that says so; nil when it doesn't wait.
func waitsForCapacity(hc *hyperv1.HostedCluster) *metav1.Condition {
	c := conditions.Get(hc.Status.Conditions, hyperv1.ControlPlaneAdmitted)
	if c == nil || c.Status != metav1.ConditionFalse || hc.DeletionTimestamp != nil {
		return nil
	}
	return c
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
