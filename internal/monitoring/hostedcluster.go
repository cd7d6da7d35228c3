package monitoring

// Whose metrics are asked for: those of the operator name the HostedCluster, those of its control plane are of its namespace.
const (
	theCluster      = `namespace="$namespace", name="$name"`
	theControlPlane = `namespace="$control_plane"`
)

// hostedCluster is what somebody looks at who was told that one hosted cluster is not well.
func hostedCluster() Dashboard {
	return Dashboard{
		UID: "hypershift-hosted-cluster", Title: "HyperShift / Hosted cluster",
		Description: "One hosted cluster: its conditions, its nodes, its API servers and etcd, and the operators of its control plane.",
		Variables: []Variable{
			{Name: "namespace", Label: "Namespace", Query: `label_values(hypershift_cluster_control_plane_info, namespace)`},
			{Name: "name", Label: "Hosted cluster", Query: `label_values(hypershift_cluster_control_plane_info{namespace="$namespace"}, name)`},
			{Name: "control_plane", Hidden: true, Query: `label_values(hypershift_cluster_control_plane_info{` + theCluster + `}, control_plane_namespace)`},
		},
		Rows: []Row{
			{"How it is", []Panel{
				stat("Unavailable for", "s", 1, `max(hypershift_cluster_condition_lost_duration_seconds{`+theCluster+`, condition="Available"}) or on () vector(0)`),
				stat("Being upgraded for", "s", 0, `max(hypershift_cluster_upgrading_duration_seconds{`+theCluster+`}) or on () vector(0)`),
				stat("Being deleted for", "s", 0, `max(hypershift_cluster_deleting_duration_seconds{`+theCluster+`}) or on () vector(0)`),
				stat("First certificate ends in", "s", 0, `min(hypershift_certificates_earliest_expiry_timestamp_seconds{`+theControlPlane+`}) - time()`),
				stat("First authority ends in", "s", 0, `min(hypershift_certificate_authorities_earliest_expiry_timestamp_seconds{`+theControlPlane+`}) - time()`),
				stat("Nodes' certificate requests that wait", "short", 1, `max(hypershift_node_certificate_requests_pending{`+theControlPlane+`}) or on () vector(0)`),
			}},
			{"Conditions and nodes", []Panel{
				series("Conditions that were lost", "How long a condition that should be True has been False.", "s",
					`max by (condition) (hypershift_cluster_condition_lost_duration_seconds{`+theCluster+`}) or on () vector(0)`, "{{condition}}"),
				series("Nodes that are wanted", "By NodePool.", "short", `max by (name) (hypershift_nodepools_size{namespace="$namespace", cluster_name="$name"})`, "{{name}}"),
				series("Nodes that are there", "By NodePool.", "short",
					`max by (name) (hypershift_nodepools_available_replicas{namespace="$namespace", cluster_name="$name"})`, "{{name}}"),
			}},
			{"API servers", []Panel{
				series("Requests", "Requests to the hosted API by the code of the answer.", "reqps",
					`sum by (code) (rate(apiserver_request_total{`+theControlPlane+`}[5m]))`, "{{code}}"),
				series("Requests by verb", "", "reqps", `sum by (verb) (rate(apiserver_request_total{`+theControlPlane+`}[5m]))`, "{{verb}}"),
				series("Requests at a time", "Requests that are being answered.", "short",
					`sum by (request_kind) (apiserver_current_inflight_requests{`+theControlPlane+`})`, "{{request_kind}}"),
			}},
			{"etcd", []Panel{
				series("Size of the database", "The file, and how much of it is data. Defragmentation brings the file down to the data.", "bytes",
					`max by (etcd) (hypershift_etcd_database_size_bytes{`+theControlPlane+`})`, "{{etcd}}: file").
					and(`max by (etcd) (hypershift_etcd_database_in_use_bytes{`+theControlPlane+`})`, "{{etcd}}: data").
					and(`max by (etcd) (hypershift_etcd_database_quota_bytes{`+theControlPlane+`})`, "{{etcd}}: quota"),
				series("Refuses writes", "1 while the database has grown to its quota.", "short", `max by (etcd) (hypershift_etcd_database_full{`+theControlPlane+`})`, "{{etcd}}"),
			}},
			{"Operators of the control plane", []Panel{
				series("Passes", "", "ops", `sum by (controller) (rate(controller_runtime_reconcile_total{`+theControlPlane+`}[5m]))`, "{{controller}}"),
				series("Passes that failed", "", "ops", `sum by (controller) (rate(controller_runtime_reconcile_errors_total{`+theControlPlane+`}[5m]))`, "{{controller}}"),
				series("Writes", "Write requests. A settled control plane has none.", "reqps", `sum by (kind) (rate(hypershift_object_writes_total{`+theControlPlane+`}[5m]))`, "{{kind}}"),
				series("Requests", "Requests of the control plane's own programs by the code of the answer.", "reqps",
					`sum by (code) (rate(rest_client_requests_total{`+theControlPlane+`}[5m]))`, "{{code}}"),
				series("Memory", "Memory of its programs that tell it.", "bytes", `max by (pod) (process_resident_memory_bytes{`+theControlPlane+`})`, "{{pod}}"),
			}},
		},
	}
}
