package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

func cluster() *hyperv1.HostedCluster {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo", CreationTimestamp: ago(time.Hour)}}
	hc.Spec.ClusterID, hc.Spec.Platform.Type = "id", hyperv1.NonePlatform
	return hc
}

func TestOfCluster(t *testing.T) {
	history := func(states ...configv1.UpdateState) *hyperv1.ClusterVersionStatus {
		v := &hyperv1.ClusterVersionStatus{}
		for i, s := range states {
			v.History = append(v.History, configv1.UpdateHistory{State: s, Version: fmt.Sprintf("1.%d", 36-i), StartedTime: ago(time.Minute)})
		}
		return v
	}
	for name, tc := range map[string]struct {
		change func(*hyperv1.HostedCluster)
		want   []string
	}{
		"When it is new it should tell how long it has been waited for": {want: []string{
			`hypershift_cluster_waiting_initial_availability_duration_seconds clusters demo id = 3600`,
			`hypershift_cluster_initial_rolling_out_duration_seconds clusters demo id = 3600`}},
		"When it runs it should tell of no waiting": {change: func(hc *hyperv1.HostedCluster) {
			hc.Annotations = map[string]string{hyperv1.HasBeenAvailableAnnotation: "true"}
			hc.Status.Version = history(configv1.CompletedUpdate)
		}},
		"When it is upgraded it should tell from what to what, and since when": {change: func(hc *hyperv1.HostedCluster) {
			hc.Annotations = map[string]string{hyperv1.HasBeenAvailableAnnotation: "true"}
			hc.Status.Version = history(configv1.PartialUpdate, configv1.CompletedUpdate)
		}, want: []string{`hypershift_cluster_upgrading_duration_seconds clusters demo id 1.35 1.36 = 60`}},
		"When an upgrade was given up for another it should tell from the version that it ran": {change: func(hc *hyperv1.HostedCluster) {
			hc.Annotations = map[string]string{hyperv1.HasBeenAvailableAnnotation: "true"}
			hc.Status.Version = history(configv1.PartialUpdate, configv1.PartialUpdate, configv1.CompletedUpdate)
		}, want: []string{`hypershift_cluster_upgrading_duration_seconds clusters demo id 1.34 1.36 = 60`}},
		"When its etcd is lost it should tell since when": {change: func(hc *hyperv1.HostedCluster) {
			hc.Annotations = map[string]string{hyperv1.HasBeenAvailableAnnotation: "true"}
			hc.Status.Version = history(configv1.CompletedUpdate)
			hc.Status.Conditions = []metav1.Condition{
				{Type: hyperv1.EtcdAvailable, Status: metav1.ConditionFalse, LastTransitionTime: ago(time.Minute)},
				{Type: hyperv1.KubeAPIServerAvailable, Status: metav1.ConditionTrue, LastTransitionTime: ago(time.Hour)}}
		}, want: []string{`hypershift_cluster_condition_lost_duration_seconds clusters demo id EtcdAvailable = 60`}},
		"When its control plane waits for room it should tell since when": {change: func(hc *hyperv1.HostedCluster) {
			hc.Status.Conditions = []metav1.Condition{{Type: hyperv1.ControlPlaneAdmitted, Status: metav1.ConditionFalse, LastTransitionTime: ago(time.Minute)}}
		}, want: []string{
			`hypershift_cluster_waiting_initial_availability_duration_seconds clusters demo id = 3600`,
			`hypershift_cluster_initial_rolling_out_duration_seconds clusters demo id = 3600`,
			`hypershift_cluster_waiting_for_capacity_duration_seconds clusters demo id = 60`}},
		"When it goes it should tell since when": {change: func(hc *hyperv1.HostedCluster) {
			hc.Annotations = map[string]string{hyperv1.HasBeenAvailableAnnotation: "true"}
			hc.Status.Version, hc.DeletionTimestamp = history(configv1.CompletedUpdate), ptr.To(ago(time.Second))
		}, want: []string{`hypershift_cluster_deleting_duration_seconds clusters demo id = 1`}},
		"When it has a proxy it should tell which parts are set": {change: func(hc *hyperv1.HostedCluster) {
			hc.Annotations = map[string]string{hyperv1.HasBeenAvailableAnnotation: "true"}
			hc.Status.Version = history(configv1.CompletedUpdate)
			hc.Spec.Configuration = &hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{HTTPSProxy: "https://proxy.example.com"}}
		}, want: []string{`hypershift_cluster_proxy clusters demo id 0 1 0 = 1`}},
		"When an annotation sets its size it should tell which": {change: func(hc *hyperv1.HostedCluster) {
			hc.Annotations = map[string]string{hyperv1.HasBeenAvailableAnnotation: "true", hyperv1.ClusterSizeOverrideAnnotation: "large"}
			hc.Labels = map[string]string{environmentLabel: "staging", internalIDLabel: "2abc"}
			hc.Status.Version = history(configv1.CompletedUpdate)
		}, want: []string{`hypershift_cluster_size_override_instances clusters demo id staging 2abc large = 1`}},
		"When it is on Azure it should tell where": {change: func(hc *hyperv1.HostedCluster) {
			hc.Annotations = map[string]string{hyperv1.HasBeenAvailableAnnotation: "true"}
			hc.Status.Version = history(configv1.CompletedUpdate)
			hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AzurePlatform, Azure: &hyperv1.AzurePlatformSpec{Location: "eastus", ResourceGroupName: "group", SubscriptionID: "sub"}}
		}, want: []string{`hosted_cluster_azure_info clusters demo id eastus group sub = 1`}},
		"When it is on Azure with managed identities it should tell of its resource, and of the registry": {change: func(hc *hyperv1.HostedCluster) {
			hc.Annotations = map[string]string{hyperv1.HasBeenAvailableAnnotation: "true", hyperv1.AzureHCPClusterResourceIDAnnotation: "/subscriptions/s/resourceGroups/rg/providers/x/y/z"}
			hc.Status.Version = history(configv1.CompletedUpdate)
			hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AzurePlatform, Azure: &hyperv1.AzurePlatformSpec{Location: "eastus", ResourceGroupName: "group", SubscriptionID: "sub",
				AzureAuthenticationConfig: hyperv1.AzureAuthenticationConfiguration{ManagedIdentities: &hyperv1.AzureResourceManagedIdentities{}},
				ContainerRegistry:         &hyperv1.AzureContainerRegistry{Credentials: hyperv1.AzureContainerRegistryCredentials{ManagedIdentity: &hyperv1.AzureContainerRegistryManagedIdentity{}}}}}
		}, want: []string{
			`hosted_cluster_azure_info clusters demo id eastus group sub = 1`,
			`hypershift_cluster_acr_pull_identity_configured clusters demo id = 1`,
			`hosted_cluster_managed_azure_info clusters demo id eastus group sub /subscriptions/s/resourceGroups/rg/providers/x/y/z rg = 1`}},
	} {
		t.Run(name, func(t *testing.T) {
			hc := cluster()
			if tc.change != nil {
				tc.change(hc)
			}
			var got []string
			for _, s := range ofCluster(hc, noon) {
				if s.value != 0 && s.metric != controlPlane {
					got = append(got, fmt.Sprintf("%s %s = %v", nameOf(s.metric), strings.Join(s.labels, " "), s.value))
				}
			}
			NewWithT(t).Expect(got).To(Equal(tc.want))
		})
	}
}

func nameOf(m *metric) string {
	return strings.Split(m.desc.String(), `"`)[1]
}

func TestCollector(t *testing.T) {
	t.Run("When Prometheus asks it should get every family that a fleet has", func(t *testing.T) {
		g := NewWithT(t)
		hc := cluster()
		hc.Status.Conditions = []metav1.Condition{{Type: hyperv1.HostedClusterAvailable, Status: metav1.ConditionTrue}, {Type: hyperv1.HostedClusterDegraded, Status: metav1.ConditionFalse},
			{Type: hyperv1.ControlPlaneAdmitted, Status: metav1.ConditionFalse}}
		np := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "workers", CreationTimestamp: ago(time.Minute)}}
		np.Spec.ClusterName, np.Spec.Replicas, np.Spec.Platform.Type, np.Status.Replicas = "demo", ptr.To[int32](3), hyperv1.NonePlatform, 2
		np.Status.Conditions = []hyperv1.NodePoolCondition{{Type: hyperv1.NodePoolReadyConditionType, Status: corev1.ConditionTrue}}
		scheme := runtime.NewScheme()
		g.Expect(hyperv1.AddToScheme(scheme)).To(Succeed())
		registry := prometheus.NewPedanticRegistry()
		g.Expect(Register(registry, NewCollector(fake.NewClientBuilder().WithScheme(scheme).WithObjects(hc, np).Build(), clocktesting.NewFakePassiveClock(noon)))).To(Succeed())
		families, err := registry.Gather()
		g.Expect(err).NotTo(HaveOccurred())
		values := map[string]float64{}
		for _, f := range families {
			for _, m := range f.Metric {
				var labels []string
				for _, l := range m.Label {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
				slices.Sort(labels)
				values[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = m.GetGauge().GetValue()
			}
		}
		for name, want := range map[string]float64{
			"hypershift_hostedclusters_waiting_for_capacity{platform=None}":                                                                     1,
			"hypershift_hostedclusters{platform=None}":                                                                                          1,
			"hypershift_hostedclusters_failure_conditions{condition=not_Available,platform=None}":                                               0,
			"hypershift_hostedclusters_failure_conditions{condition=not_EtcdAvailable,platform=None}":                                           1,
			"hypershift_hostedclusters_failure_conditions{condition=Degraded,platform=None}":                                                    0,
			"hypershift_hostedclusters_failure_conditions{condition=Progressing,platform=None}":                                                 1,
			"hypershift_hostedcluster_nodepools{_id=id,name=demo,namespace=clusters,platform=None}":                                             1,
			"hypershift_nodepools{platform=None}":                                                                                               1,
			"hypershift_nodepools_failure_conditions{condition=not_Ready,platform=None}":                                                        0,
			"hypershift_cluster_control_plane_info{_id=id,control_plane_namespace=clusters-demo,name=demo,namespace=clusters}":                  1,
			"hypershift_cluster_vcpus{_id=id,name=demo,namespace=clusters,platform=None}":                                                       -1,
			"hypershift_cluster_vcpus_computation_error{_id=id,name=demo,namespace=clusters,platform=None,reason=MachinesUnknown}":              1,
			"hypershift_nodepools_initial_rolling_out_duration_seconds{_id=id,cluster_name=demo,name=workers,namespace=clusters,platform=None}": 60,
			"hypershift_nodepools_size{_id=id,cluster_name=demo,name=workers,namespace=clusters,platform=None}":                                 3,
			"hypershift_nodepools_available_replicas{_id=id,cluster_name=demo,name=workers,namespace=clusters,platform=None}":                   2,
		} {
			g.Expect(values).To(HaveKeyWithValue(name, want))
		}
	})
}

func TestNewlyTrue(t *testing.T) {
	g := NewWithT(t)
	before, after := cluster(), cluster()
	after.Status.Conditions = []metav1.Condition{{Type: hyperv1.EtcdAvailable, Status: metav1.ConditionTrue, LastTransitionTime: ago(0)}}
	g.Expect(newlyTrue(before, after)).To(Equal([]string{"EtcdAvailable"}))
	g.Expect(newlyTrue(after, after)).To(BeEmpty())
	before.Annotations = map[string]string{hyperv1.HasBeenAvailableAnnotation: "true"}
	g.Expect(newlyTrue(before, after)).To(BeEmpty(), "it was available once")
}

func TestPoolSamples(t *testing.T) {
	pool := func(change func(*hyperv1.NodePool)) []hyperv1.NodePool {
		np := hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "workers", CreationTimestamp: ago(time.Hour)}}
		np.Spec.ClusterName, np.Spec.Platform.Type, np.Status.Replicas = "demo", hyperv1.KubevirtPlatform, 3
		np.Spec.Platform.Kubevirt = &hyperv1.KubevirtNodePoolPlatform{Compute: &hyperv1.KubevirtCompute{Cores: ptr.To[int32](4)}}
		np.Status.Version = "1.36.0"
		if change != nil {
			change(&np)
		}
		return []hyperv1.NodePool{np}
	}
	for name, tc := range map[string]struct {
		pools []hyperv1.NodePool
		want  map[string]float64
	}{
		"When a pool has been rolled out it should tell of no waiting": {pool(nil), map[string]float64{"hypershift_cluster_vcpus": 12}},
		"When a pool is new it should tell since when": {pool(func(np *hyperv1.NodePool) { np.Status.Version = "" }), map[string]float64{
			"hypershift_cluster_vcpus": 12, "hypershift_nodepools_initial_rolling_out_duration_seconds": 3600}},
		"When a pool goes it should tell since when": {pool(func(np *hyperv1.NodePool) { np.DeletionTimestamp = ptr.To(ago(time.Minute)) }), map[string]float64{
			"hypershift_cluster_vcpus": 12, "hypershift_nodepools_deleting_duration_seconds": 60}},
		"When machines are of a type that only a cloud knows it should say so": {pool(func(np *hyperv1.NodePool) { np.Spec.Platform.Type = hyperv1.AWSPlatform }), map[string]float64{
			"hypershift_cluster_vcpus": -1, "hypershift_cluster_vcpus_computation_error": 1}},
		"When there are no machines it should count none": {pool(func(np *hyperv1.NodePool) {
			np.Spec.Platform.Type, np.Status.Replicas = hyperv1.AWSPlatform, 0
		}), map[string]float64{"hypershift_cluster_vcpus": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			hc, got := cluster(), map[string]float64{}
			for _, s := range append(poolSamples([]hyperv1.HostedCluster{*hc}, tc.pools, noon), vcpuSamples(hc, tc.pools)...) {
				if n := nameOf(s.metric); strings.Contains(n, "duration") || strings.Contains(n, "vcpus") {
					got[n] = s.value
				}
			}
			NewWithT(t).Expect(got).To(Equal(tc.want))
		})
	}
}

func TestEncryption(t *testing.T) {
	changing := func(state hyperv1.EncryptionMigrationState, reason string) *hyperv1.HostedCluster {
		hc := cluster()
		hc.Status.SecretEncryption.History = []hyperv1.EncryptionMigrationHistory{{State: state, StartedTime: ago(time.Hour), CompletionTime: ago(time.Minute)}}
		if state != hyperv1.EncryptionMigrationCompleted {
			hc.Status.SecretEncryption.TargetKey.Provider = hyperv1.SecretEncryptionProviderAESCBC
		}
		hc.Status.Conditions = []metav1.Condition{{Type: hyperv1.EtcdDataEncryptionUpToDate, Status: metav1.ConditionFalse, Reason: reason}}
		return hc
	}
	t.Run("When no key changes it should have no state", func(t *testing.T) {
		NewWithT(t).Expect(encryptionState(changing(hyperv1.EncryptionMigrationCompleted, ""))).To(BeEmpty())
	})
	t.Run("When a key changes it should have that state", func(t *testing.T) {
		NewWithT(t).Expect(encryptionState(changing(hyperv1.EncryptionMigrationMigrating, hyperv1.ReEncryptionInProgressReason))).To(Equal("Migrating"))
	})
	t.Run("When data can't be written again it should say so", func(t *testing.T) {
		NewWithT(t).Expect(encryptionState(changing(hyperv1.EncryptionMigrationMigrating, hyperv1.ReEncryptionFailedReason))).To(Equal("Failing"))
	})
	t.Run("When a change ends it should tell once how long it took", func(t *testing.T) {
		g := NewWithT(t)
		during, after := changing(hyperv1.EncryptionMigrationMigrating, ""), changing(hyperv1.EncryptionMigrationCompleted, "")
		seconds, ended := migrated(during, after)
		g.Expect(ended).To(BeTrue())
		g.Expect(seconds).To(Equal(3540.0))
		_, ended = migrated(after, after)
		g.Expect(ended).To(BeFalse())
	})
}
