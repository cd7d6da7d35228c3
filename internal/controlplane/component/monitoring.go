package component

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

// Sets of metrics; everything else counts as metricsTelemetry.
const (
	metricsAll = "All"
	metricsSRE = "SRE"
)

// ConfigMap with the relabellings of metricsSRE, by component.
const (
	sreMetricSet    = "sre-metric-set"
	sreMetricSetKey = "config"
)

// metricRules say which metrics of a component are kept.
type metricRules struct {
	// sre is the name of the component in the ConfigMap of metricsSRE.
	sre string
	// keep are the only metrics of the set Telemetry; none at all when it is empty. drop are those that the set All leaves out.
	keep, drop []string
	// dropBuckets are buckets (le) of a histogram that All leaves out.
	histogram   string
	dropBuckets []string
}

// metricRulesOf has the components whose metrics are selected; those of others are taken as they are.
var metricRulesOf = map[string]metricRules{
	"etcd": {sre: "etcd", keep: []string{
		"etcd_disk_wal_fsync_duration_seconds_bucket", "etcd_mvcc_db_total_size_in_bytes", "etcd_mvcc_db_total_size_in_use_in_bytes",
		"etcd_network_peer_round_trip_time_seconds_bucket", "etcd_disk_backend_commit_duration_seconds_bucket", "etcd_server_leader_changes_seen_total",
	}},
	"kube-apiserver": {sre: "kubeAPIServer",
		keep:        []string{"apiserver_storage_objects", "apiserver_request_total", "apiserver_current_inflight_requests"},
		drop:        []string{"etcd_(debugging|disk|server).*", "apiserver_admission_controller_admission_latencies_seconds_.*", "apiserver_admission_step_admission_latencies_seconds_.*"},
		histogram:   "apiserver_request_duration_seconds_bucket",
		dropBuckets: strings.Split("0.15 0.25 0.3 0.35 0.4 0.45 0.6 0.7 0.8 0.9 1.25 1.5 1.75 2.5 3 3.5 4.5 6 7 8 9 15 25 30 50", " "),
	},
	"kube-controller-manager": {sre: "kubeControllerManager", keep: []string{"pv_collector_total_pv_count"},
		drop: []string{"etcd_(debugging|disk|request|server).*", "rest_client_request_latency_seconds_.*", "root_ca_cert_publisher_sync_duration_seconds_.*"}},
	"kube-scheduler": {sre: "kubeScheduler"},

	// Those of OpenShift payloads.
	"openshift-apiserver": {sre: "openshiftAPIServer",
		keep:        []string{"apiserver_storage_objects", "apiserver_request_total", "apiserver_current_inflight_requests"},
		drop:        []string{"etcd_(debugging|disk|server).*", "apiserver_admission_controller_admission_latencies_seconds_.*", "apiserver_admission_step_admission_latencies_seconds_.*"},
		histogram:   "apiserver_request_duration_seconds_bucket",
		dropBuckets: strings.Split("0.15 0.25 0.3 0.35 0.4 0.45 0.6 0.7 0.8 0.9 1.25 1.5 1.75 2.5 3 3.5 4.5 6 7 8 9 15 25 30 50", " "),
	},
	"cluster-version-operator": {sre: "cvo", drop: []string{"etcd_(debugging|disk|server).*"}, keep: []string{
		"cluster_version", "cluster_version_available_updates", "cluster_operator_up", "cluster_operator_conditions", "cluster_version_payload", "cluster_installer",
	}},
	"cluster-node-tuning-operator": {sre: "nodeTuningOperator", keep: []string{"nto_profile_calculated_total"}},
	"openshift-controller-manager": {sre: "openshiftControllerManager", keep: []string{"openshift_build_status_phase_total"},
		drop: []string{"etcd_(debugging|disk|request|server).*"}},
	"openshift-route-controller-manager": {sre: "openshiftRouteControllerManager", drop: []string{"etcd_(debugging|disk|request|server).*"}},
	"olm-operator":                       {sre: "olm", keep: []string{"csv_succeeded", "csv_abnormal"}, drop: []string{"etcd_(debugging|disk|server).*"}},
	"catalog-operator": {sre: "catalogOperator", keep: []string{"subscription_sync_total", "olm_resolution_duration_seconds"},
		drop: []string{"etcd_(debugging|disk|server).*"}},
	"cluster-image-registry-operator": {sre: "registryOperator"},
	"ingress-operator":                {sre: "registryOperator"},
}

// adaptMonitor points a ServiceMonitor or PodMonitor at this control plane, says whose its metrics are, and keeps those of the
// chosen set.
func adaptMonitor(ctx WorkloadContext, name string, obj client.Object) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("it is a %T", obj)
	}
	if err := unstructured.SetNestedStringSlice(u.Object, []string{ctx.HCP.Namespace}, "spec", "namespaceSelector", "matchNames"); err != nil {
		return err
	}
	rules, err := metricRelabelings(ctx, name)
	if err != nil {
		return err
	}
	for _, field := range []string{"endpoints", "podMetricsEndpoints"} {
		endpoints, found, err := unstructured.NestedSlice(u.Object, "spec", field)
		if err != nil || !found {
			continue
		}
		for _, e := range endpoints {
			endpoint, ok := e.(map[string]any)
			if !ok {
				return fmt.Errorf("spec.%s holds something that is no endpoint", field)
			}
			id := map[string]any{"action": "replace", "targetLabel": "_id", "replacement": ctx.HCP.Spec.ClusterID}
			relabelings, _ := endpoint["relabelings"].([]any)
			endpoint["relabelings"] = append(relabelings, id)
			endpoint["metricRelabelings"] = append(append([]any{}, rules...), map[string]any{"action": "replace", "targetLabel": "_id", "replacement": ctx.HCP.Spec.ClusterID})
		}
		if err := unstructured.SetNestedSlice(u.Object, endpoints, "spec", field); err != nil {
			return err
		}
	}
	return nil
}

// metricRelabelings select the metrics of a component.
func metricRelabelings(ctx WorkloadContext, name string) ([]any, error) {
	if isEtcd(name) {
		name = names.Etcd
	}
	r, selected := metricRulesOf[name]
	if !selected {
		return nil, nil
	}
	byName := func(action string, names []string) map[string]any {
		regex := strings.Join(names, "|")
		if !ctx.Release.Kubernetes && len(names) > 1 {
			regex = "(" + regex + ")"
		}
		return map[string]any{"action": action, "sourceLabels": []any{"__name__"}, "regex": regex}
	}
	switch cmp.Or(string(ctx.HCP.Spec.Monitoring.MetricsSet), ctx.MetricsSet) {
	case metricsSRE:
		return sreRelabelings(ctx, r.sre)
	case metricsAll:
		var rules []any
		if len(r.drop) > 0 {
			rules = append(rules, byName("drop", r.drop))
		}
		if r.histogram != "" {
			rules = append(rules, map[string]any{"action": "drop", "sourceLabels": []any{"__name__", "le"},
				"regex": r.histogram + ";(" + strings.ReplaceAll(strings.Join(r.dropBuckets, "|"), ".", `\.`) + ")"})
		}
		return rules, nil
	}
	if len(r.keep) == 0 {
		all := ".*"
		if !ctx.Release.Kubernetes {
			all = "(.*)"
		}
		return []any{byName("drop", []string{all})}, nil
	}
	return []any{byName("keep", r.keep)}, nil
}

// sreRelabelings are those that the operators of the service chose; without their ConfigMap all metrics are kept.
func sreRelabelings(ctx WorkloadContext, component string) ([]any, error) {
	cm := &corev1.ConfigMap{}
	err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: sreMetricSet}, cm)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", sreMetricSet, err)
	}
	sets := map[string][]any{}
	if err := yaml.Unmarshal([]byte(cm.Data[sreMetricSetKey]), &sets); err != nil {
		return nil, fmt.Errorf("parsing key %s of ConfigMap %s: it must hold a list of relabellings for each component", sreMetricSetKey, sreMetricSet)
	}
	return sets[component], nil
}

// monitored says whether monitors are wanted at all.
func monitored(ctx WorkloadContext) bool {
	_, disabled := ctx.HCP.Annotations[hyperv1.DisableMonitoringServices]
	return !disabled
}
