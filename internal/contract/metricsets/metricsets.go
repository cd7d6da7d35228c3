// Package metricsets says which metrics of a component belong to which set: monitors select them where the management cluster scrapes, and the metrics proxy
// where the hosted cluster does.
package metricsets

import (
	"slices"
	"strings"
)

// Telemetry is the set of few metrics.
const Telemetry = "Telemetry"

// Rules say which metrics of a component are kept.
type Rules struct {
	// SRE is the name of the component in the ConfigMap of the set SRE.
	SRE string
	// Keep are the only metrics of the set Telemetry; none at all when it is empty. Drop are those that the set All leaves out.
	Keep, Drop []string
	// Deprecated are families that no release has any more. The set All leaves them out in payloads, as the published monitors do.
	Deprecated []string
	// DropBuckets are buckets (le) of a histogram that All leaves out.
	Histogram   string
	DropBuckets []string
}

// deprecatedOfAPIServer are metrics that Kubernetes renamed in 1.14.
var deprecatedOfAPIServer = []string{
	"scheduler_(e2e_scheduling_latency_microseconds|scheduling_algorithm_predicate_evaluation|scheduling_algorithm_priority_evaluation|" +
		"scheduling_algorithm_preemption_evaluation|scheduling_algorithm_latency_microseconds|binding_latency_microseconds|scheduling_latency_seconds)",
	"apiserver_(request_count|request_latencies|request_latencies_summary|dropped_requests|storage_data_key_generation_latencies_microseconds|" +
		"storage_transformation_failures_total|storage_transformation_latencies_microseconds|proxy_tunnel_sync_latency_secs)",
	"docker_(operations|operations_latency_microseconds|operations_errors|operations_timeout)",
	"reflector_(items_per_list|items_per_watch|list_duration_seconds|lists_total|short_watches_total|watch_duration_seconds|watches_total)",
	"etcd_(helper_cache_hit_count|helper_cache_miss_count|helper_cache_entry_count|request_cache_get_latencies_summary|request_cache_add_latencies_summary|request_latencies_summary)",
	"transformation_(transformation_latencies_microseconds|failures_total)",
}

// Of has the components whose metrics are selected; those of others are taken as they are.
var Of = map[string]Rules{
	"etcd": {SRE: "etcd", Keep: []string{
		"etcd_disk_wal_fsync_duration_seconds_bucket", "etcd_mvcc_db_total_size_in_bytes", "etcd_mvcc_db_total_size_in_use_in_bytes",
		"etcd_network_peer_round_trip_time_seconds_bucket", "etcd_disk_backend_commit_duration_seconds_bucket", "etcd_server_leader_changes_seen_total",
	}},
	"kube-apiserver": {SRE: "kubeAPIServer",
		Keep:        []string{"apiserver_storage_objects", "apiserver_request_total", "apiserver_current_inflight_requests"},
		Drop:        []string{"etcd_(debugging|disk|server).*", "apiserver_admission_controller_admission_latencies_seconds_.*", "apiserver_admission_step_admission_latencies_seconds_.*"},
		Deprecated:  deprecatedOfAPIServer,
		Histogram:   "apiserver_request_duration_seconds_bucket",
		DropBuckets: strings.Split("0.15 0.25 0.3 0.35 0.4 0.45 0.6 0.7 0.8 0.9 1.25 1.5 1.75 2.5 3 3.5 4.5 6 7 8 9 15 25 30 50", " "),
	},
	"kube-controller-manager": {SRE: "kubeControllerManager", Keep: []string{"pv_collector_total_pv_count"},
		Drop: []string{"etcd_(debugging|disk|request|server).*", "rest_client_request_latency_seconds_.*", "root_ca_cert_publisher_sync_duration_seconds_.*"}},
	"kube-scheduler": {SRE: "kubeScheduler"},

	// Those of OpenShift payloads.
	"openshift-apiserver": {SRE: "openshiftAPIServer",
		Keep:        []string{"apiserver_storage_objects", "apiserver_request_total", "apiserver_current_inflight_requests"},
		Drop:        []string{"etcd_(debugging|disk|server).*", "apiserver_admission_controller_admission_latencies_seconds_.*", "apiserver_admission_step_admission_latencies_seconds_.*"},
		Histogram:   "apiserver_request_duration_seconds_bucket",
		DropBuckets: strings.Split("0.15 0.25 0.3 0.35 0.4 0.45 0.6 0.7 0.8 0.9 1.25 1.5 1.75 2.5 3 3.5 4.5 6 7 8 9 15 25 30 50", " "),
	},
	"cluster-version-operator": {SRE: "cvo", Drop: []string{"etcd_(debugging|disk|server).*"}, Keep: []string{
		"cluster_version", "cluster_version_available_updates", "cluster_operator_up", "cluster_operator_conditions", "cluster_version_payload", "cluster_installer",
	}},
	"cluster-node-tuning-operator": {SRE: "nodeTuningOperator", Keep: []string{"nto_profile_calculated_total"}},
	"openshift-controller-manager": {SRE: "openshiftControllerManager", Keep: []string{"openshift_build_status_phase_total"},
		Drop: []string{"etcd_(debugging|disk|request|server).*"}},
	"openshift-route-controller-manager": {SRE: "openshiftRouteControllerManager", Drop: []string{"etcd_(debugging|disk|request|server).*"}},
	"olm-operator":                       {SRE: "olm", Keep: []string{"csv_succeeded", "csv_abnormal"}, Drop: []string{"etcd_(debugging|disk|server).*"}},
	"catalog-operator": {SRE: "catalogOperator", Keep: []string{"subscription_sync_total", "olm_resolution_duration_seconds"},
		Drop: []string{"etcd_(debugging|disk|server).*"}},
	"cluster-image-registry-operator": {SRE: "registryOperator"},
	"ingress-operator":                {SRE: "registryOperator"},
}

// Keep says of each metric whether the metrics proxy passes it on: of the set Telemetry those that are listed, of others all. Metrics of components that
// nothing is listed of are passed on.
func Keep(component, set string) func(metric string) bool {
	rules, known := Of[component]
	if set != Telemetry || !known {
		return func(string) bool { return true }
	}
	return func(metric string) bool { return slices.Contains(rules.Keep, metric) }
}
