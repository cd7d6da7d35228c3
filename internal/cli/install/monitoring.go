package install

import (
	"fmt"
	"strconv"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/capiproxy"
)

// Values of --platform-monitoring.
const (
	MonitorNone     = "None"
	MonitorOperator = "OperatorOnly"
	MonitorAll      = "All"
)

// monitoringGroup is the API of the Prometheus operator.
const monitoringGroup = "monitoring.coreos.com"

// sloAvailability is within how many seconds a new cluster has to be available: a control plane needs a few minutes, so by
// then somebody should look.
const sloAvailability = 1800

// Monitoring says what Prometheus is told about.
type Monitoring struct {
	// Platform is how much the monitoring of an OpenShift management cluster looks at: MonitorNone, MonitorOperator or MonitorAll.
	Platform string
	// Objects: install ServiceMonitors and rules. Run sets it when the management cluster serves them.
	Objects bool
	// SLOAlerts: install alerts on service level objectives, too.
	SLOAlerts bool
	// Dashboards: install dashboards as ConfigMaps that Grafana's sidecar finds.
	Dashboards bool
	// Namespace and Account are those of the Prometheus that asks, which gets the rights for it and is let in by network policies. Empty: those of
	// an OpenShift management cluster.
	Namespace, Account string
	// Labels are put on ServiceMonitors, PodMonitors and PrometheusRules, so that a Prometheus that selects by labels takes them.
	Labels map[string]string
	// RunbookURL is the page that alerts lead to, to which #name-of-the-alert is added. Empty: docs/alerts.md of this repository.
	RunbookURL string
}

// asked tells that somebody wants something of monitoring, so that its objects are rendered.
func (m Monitoring) asked() bool {
	return m.Platform != MonitorNone || m.SLOAlerts || len(m.Labels) > 0 || m.Namespace != ""
}

// monitoringObjects returns what tells Prometheus of the operator. It is made of unstructured objects: their Go types would bring the
// Prometheus operator into this binary for four objects that never change.
func monitoringObjects(o Options) []client.Object {
	if !o.Monitoring.Objects {
		return nil
	}
	role, binding := prometheusRole(o, o.Namespace)
	objs := []client.Object{
		role, binding,
		monitoringObject(o, "ServiceMonitor", operatorName, map[string]any{
			"jobLabel":          "component",
			"selector":          map[string]any{"matchLabels": anyMap(operatorLabels())},
			"namespaceSelector": map[string]any{"matchNames": []any{o.Namespace}},
			// Our metrics of hosted clusters have a label namespace, which is not that of the operator.
			"endpoints": []any{o.Metrics.endpoint(operatorName, o.Namespace, map[string]any{"honorLabels": true})},
		}),
		monitoringObject(o, "PrometheusRule", "metrics", ruleGroup("hypershift.rules", recordingRules())),
		monitoringObject(o, "PrometheusRule", "operations", ruleGroup("hypershift.operations", operationAlerts(o.Namespace))),
	}
	objs = append(objs, packageMonitoring(o)...)
	if o.Monitoring.SLOAlerts {
		objs = append(objs, monitoringObject(o, "PrometheusRule", "alerts", ruleGroup("hypershift.slos", []any{
			alert("HypershiftSLOTimeToAvailability", "hypershift_cluster_waiting_initial_availability_duration_seconds > "+strconv.Itoa(sloAvailability), "1m", critical,
				"Hosted cluster {{ $labels.namespace }}/{{ $labels.name }} did not become available in time",
				"See its conditions: kubectl describe hostedcluster {{ $labels.name }} --namespace {{ $labels.namespace }}"),
		})))
	}
	return objs
}

// packageMonitoring tells Prometheus of the operator of packages, in its namespace.
func packageMonitoring(o Options) []client.Object {
	if !o.PackageOperator {
		return nil
	}
	role, binding := prometheusRole(o, PackageOperatorNamespace)
	monitor := monitoringObject(o, "ServiceMonitor", packageOperatorName, map[string]any{
		"jobLabel":          "app.kubernetes.io/name",
		"selector":          map[string]any{"matchLabels": anyMap(packageOperatorLabels())},
		"namespaceSelector": map[string]any{"matchNames": []any{PackageOperatorNamespace}},
		"endpoints":         []any{o.Metrics.endpoint(packageMetricsName, PackageOperatorNamespace, nil)},
	})
	rules := monitoringObject(o, "PrometheusRule", packageOperatorName, ruleGroup("hypershift.packages", packageAlerts()))
	monitor.SetNamespace(PackageOperatorNamespace)
	rules.SetNamespace(PackageOperatorNamespace)
	return []client.Object{role, binding, monitor, rules}
}

// prometheusRole lets the Prometheus of the management cluster find what it asks in a namespace.
func prometheusRole(o Options, namespace string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	meta := metav1.ObjectMeta{Name: prometheusRoleName, Namespace: namespace}
	return &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			rule(group(""), "endpoints,pods,services", read),
			rule(group("discovery.k8s.io"), "endpointslices", read),
		}}, &rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: prometheusRoleName},
			Subjects:   []rbacv1.Subject{o.Monitoring.prometheus()},
		}
}

// capiMonitoring tells Prometheus of the proxy in the operator's Pod, and what is wrong with proxies and with the conversion of objects of
// Cluster API. The proxies of a hosted cluster have a PodMonitor in its own namespace, where Prometheus may look at Pods.
func capiMonitoring(o Options) []client.Object {
	if !o.Monitoring.Objects || !o.capi.Private {
		return nil
	}
	return []client.Object{
		monitoringObject(o, "PodMonitor", capiproxy.Name, map[string]any{
			"jobLabel":            "component",
			"selector":            map[string]any{"matchLabels": anyMap(operatorLabels())},
			"podMetricsEndpoints": []any{map[string]any{"port": capiproxy.HealthPortName, "interval": "30s"}},
		}),
		monitoringObject(o, "PrometheusRule", "private-capi", ruleGroup("hypershift.private-capi", []any{
			// Time to the headers of an answer; of a watch that is when the first event comes.
			alert("HyperShiftAPIProxyHighLatency",
				`histogram_quantile(0.95, sum by (namespace, pod, le) (rate(hypershift_api_proxy_request_duration_seconds_bucket{method!="WATCH"}[5m]))) > 0.1`,
				"10m", warning, "Requests through the proxy in Pod {{ $labels.namespace }}/{{ $labels.pod }} are slow",
				"Compare hypershift_api_proxy_overhead_seconds, which is the proxy's own part, with how long the management API server takes."),
			alert("HyperShiftConversionWebhookUnavailable",
				`sum by (namespace) (rate(hypershift_conversion_webhook_errors_total[5m])) / sum by (namespace) (rate(hypershift_conversion_webhook_requests_total[5m])) > 0.05`,
				"5m", critical, "Objects of Cluster API can't be converted between versions",
				"Programs that use v1beta1, garbage collection and the deletion of namespaces wait for it: kubectl logs deployment/"+operatorName+" --namespace {{ $labels.namespace }}"),
			alert("HyperShiftPrivateCAPIMigrationFailed",
				`max by (failure_reason) (hypershift_private_capi_migration_failed_hosted_clusters_total) > 0`,
				"0m", warning, "The move of hosted clusters to private types of Cluster API was taken back: {{ $labels.failure_reason }}",
				"They run as before, and no other move begins by itself. Which, and why: hypershift capi migrate status"),
			alert("HyperShiftPrivateCAPIMigrationStuck",
				fmt.Sprintf(`time() - min by (namespace, name) (hypershift_private_capi_migration_start_time) > %d`, longMove),
				"0m", warning, "The move of hosted cluster {{ $labels.namespace }}/{{ $labels.name }} to or from private types of Cluster API has not ended for an hour",
				"Its machines run, and maybe can't scale or heal. What it waits for: hypershift capi migrate status --namespace {{ $labels.namespace }} {{ $labels.name }}"),
		})),
	}
}

// podMonitor tells Prometheus of external-dns, which has no Service.
func podMonitor(o Options) client.Object {
	return monitoringObject(o, "PodMonitor", externalDNSName, map[string]any{
		"jobLabel":            "component",
		"selector":            map[string]any{"matchLabels": anyMap(externalDNSLabels())},
		"podMetricsEndpoints": []any{map[string]any{"port": "metrics", "interval": "30s"}},
	})
}

func ruleGroup(name string, rules []any) map[string]any {
	return map[string]any{"groups": []any{map[string]any{"name": name, "rules": rules}}}
}

// hostedNamespace joins a series to what the operator tells of control-plane namespaces, so that only theirs is counted.
const hostedNamespace = ` * on (namespace) group_left () max by (namespace) (label_replace(hypershift_cluster_control_plane_info, "namespace", "$1", "control_plane_namespace", "(.+)"))`

// recordingRules sum up what fleets look at, so that dashboards don't ask for every series of every control plane.
func recordingRules() []any {
	requests := `sum by (namespace, code, resource) (rate(apiserver_request_total{verb=~"%s"}[5m]))`
	records := [][2]string{
		{"hypershift:apiserver_request_total:read", fmt.Sprintf(requests, "GET|LIST|WATCH")},
		{"hypershift:apiserver_request_total:write", fmt.Sprintf(requests, "POST|PUT|PATCH|DELETE|DELETECOLLECTION")},
		{"hypershift:apiserver_request_total:client", `sum by (namespace, client) (rate(apiserver_request_total[5m]))`},
		{"hypershift:controlplane:component_api_requests_total", `sum by (namespace, app, code, method) (rate(rest_client_requests_total[5m])` + hostedNamespace + `)`},
		{"hypershift:controlplane:component_memory_usage", `sum by (namespace, container) (container_memory_usage_bytes{container!="",container!="POD"}` + hostedNamespace + `)`},
		{"hypershift:controlplane:component_memory_rss", `sum by (namespace, container) (container_memory_rss{container!="",container!="POD"}` + hostedNamespace + `)`},
		{"hypershift:controlplane:component_memory_request", `sum by (namespace, container) (kube_pod_container_resource_requests{resource="memory"}` + hostedNamespace + `)`},
		{"hypershift:controlplane:component_cpu_usage_seconds", `sum by (namespace, container) (rate(container_cpu_usage_seconds_total{container!="",container!="POD"}[5m])` + hostedNamespace + `)`},
		{"hypershift:controlplane:component_cpu_request", `sum by (namespace, container) (kube_pod_container_resource_requests{resource="cpu"}` + hostedNamespace + `)`},
		{"hypershift:controlplane:ign_payload_generation_seconds_p90", `histogram_quantile(0.9, sum by (namespace, le) (rate(ign_server_payload_generation_seconds_bucket[1h])))`},
		{"hypershift:operator:component_api_requests_total", `sum by (pod, code, method) (rate(rest_client_requests_total{job="operator"}[5m]))`},
		{"platform:hypershift_hostedclusters:max", `max by (platform) (hypershift_hostedclusters)`},
		{"platform:hypershift_nodepools:max", `max by (platform) (hypershift_nodepools)`},
		{"cluster_name:hypershift_nodepools_size:sum", `sum by (cluster_name) (hypershift_nodepools_size)`},
		{"cluster_name:hypershift_nodepools_available_replicas:sum", `sum by (cluster_name) (hypershift_nodepools_available_replicas)`},
	}
	rules := make([]any, len(records))
	for i, record := range records {
		rules[i] = map[string]any{"record": record[0], "expr": record[1]}
	}
	return rules
}

func monitoringObject(o Options, kind, name string, spec map[string]any) client.Object {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: monitoringGroup, Version: "v1", Kind: kind})
	u.SetName(name)
	u.SetNamespace(o.Namespace)
	if len(o.Monitoring.Labels) > 0 {
		u.SetLabels(o.Monitoring.Labels)
	}
	if kind == "PrometheusRule" {
		o.Monitoring.leadToRunbooks(spec)
	}
	return u
}

func anyMap(m map[string]string) map[string]any {
	result := map[string]any{}
	for key, value := range m {
		result[key] = value
	}
	return result
}
