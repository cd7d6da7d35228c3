package monitoring

// Foreign are metrics of others that dashboards, alerts and recording rules ask for, with who tells them.
var Foreign = map[string]string{
	"ALERTS":                              "Prometheus itself",
	"up":                                  "Prometheus itself",
	"apiserver_current_inflight_requests": "kube-apiserver of a hosted cluster",
	"apiserver_request_total":             "kube-apiserver of a hosted cluster",
	"controller_runtime_reconcile_errors_total":   "each of our operators, by controller-runtime",
	"controller_runtime_reconcile_total":          "each of our operators, by controller-runtime",
	"workqueue_depth":                             "each of our operators, by controller-runtime",
	"workqueue_longest_running_processor_seconds": "each of our operators, by controller-runtime",
	"rest_client_requests_total":                  "each of our operators, by client-go",
	"process_resident_memory_bytes":               "each of our operators, by Prometheus' library",
	"container_cpu_usage_seconds_total":           "the kubelet (cAdvisor)",
	"container_memory_rss":                        "the kubelet (cAdvisor)",
	"container_memory_usage_bytes":                "the kubelet (cAdvisor)",
	"kube_pod_container_resource_requests":        "kube-state-metrics",
}
