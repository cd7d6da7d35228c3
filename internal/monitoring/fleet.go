package monitoring

// operators selects what the hypershift-operator tells of itself.
const operators = `namespace="$operator"`

// fleet is what somebody looks at who runs many hosted clusters.
func fleet() Dashboard {
	return Dashboard{
		UID: "hypershift-fleet", Title: "HyperShift / Fleet",
		Description: "All hosted clusters of this management cluster: how many are well, what is about to go wrong, and how the operators do.",
		Variables:   []Variable{{Name: "operator", Label: "Namespace of the operator", Query: `label_values(hypershift_operator_info, namespace)`}},
		Rows: []Row{
			{"How the fleet is", []Panel{
				stat("Hosted clusters", "short", 0, `sum(max by (platform) (hypershift_hostedclusters))`),
				stat("Not available", "short", 1, `sum(max by (platform) (hypershift_hostedclusters_failure_conditions{condition="not_Available"}))`),
				stat("Wait for room", "short", 1, `sum(max by (platform) (hypershift_hostedclusters_waiting_for_capacity))`),
				stat("Nodes that are missing", "short", 1,
					`sum(clamp_min(max by (namespace, name) (hypershift_nodepools_size) - max by (namespace, name) (hypershift_nodepools_available_replicas), 0)) or on () vector(0)`),
				stat("Alerts that fire", "short", 1, `count(ALERTS{alertstate="firing", alertname=~"Hyper[Ss]hift.*"}) or on () vector(0)`),
				stat("Fields that are fought over", "short", 1, `sum(max by (kind, loop, managers) (hypershift_object_hot_loops)) or on () vector(0)`),
			}},
			{"Hosted clusters", []Panel{
				series("Hosted clusters by platform", "How many there are.", "short", `max by (platform) (hypershift_hostedclusters)`, "{{platform}}"),
				series("Conditions that are not as expected", "Hosted clusters by the condition that is not as it should be; not_ is before those that should be True.", "short",
					`sum by (condition) (max by (platform, condition) (hypershift_hostedclusters_failure_conditions))`, "{{condition}}"),
				series("Time until a condition is True", "Nine of ten new hosted clusters were faster, since the operator runs.", "s",
					`histogram_quantile(0.9, sum by (condition, le) (hypershift_hosted_cluster_transition_seconds_bucket))`, "{{condition}}"),
				table("Certificates that end first", "How long the first certificate of each control plane is good for. They are replaced weeks before.", "s",
					`bottomk(10, min by (namespace) (hypershift_certificates_earliest_expiry_timestamp_seconds) - time())`),
				table("Fullest etcds", "Share of its quota that an etcd has filled with data in use. At 1 it refuses writes.", "percentunit",
					`topk(10, max by (namespace, etcd) (hypershift_etcd_database_in_use_bytes / hypershift_etcd_database_quota_bytes))`),
				series("Nodes", "Nodes that pools should have, and have.", "short", `sum(max by (namespace, name) (hypershift_nodepools_size))`, "wanted").
					and(`sum(max by (namespace, name) (hypershift_nodepools_available_replicas))`, "there"),
			}},
			{"Operators", []Panel{
				series("Passes", "Passes of each controller.", "ops", `sum by (controller) (rate(controller_runtime_reconcile_total{`+operators+`}[5m]))`, "{{controller}}"),
				series("Passes that failed", "A controller that fails all the time has a cause in its log and in a condition of its object.", "ops",
					`sum by (controller) (rate(controller_runtime_reconcile_errors_total{`+operators+`}[5m]))`, "{{controller}}"),
				series("Objects that wait for a pass", "A queue that grows means that the operator does not keep up.", "short",
					`max by (controller) (workqueue_depth{`+operators+`})`, "{{controller}}"),
				series("Writes", "Write requests. A settled fleet has none.", "reqps", `sum by (kind) (rate(hypershift_object_writes_total{`+operators+`}[5m]))`, "{{kind}}"),
				series("Requests to the management API", "Requests of the operator by the code of the answer.", "reqps",
					`sum by (code) (rate(rest_client_requests_total{`+operators+`}[5m]))`, "{{code}}"),
				series("Memory", "Memory of the operator's processes.", "bytes", `max by (pod) (process_resident_memory_bytes{`+operators+`})`, "{{pod}}"),
				table("Versions", "Which versions of the operator run.", "short", `count by (hypershiftVersion, hypershiftCommit) (hypershift_operator_info)`),
			}},
		},
	}
}

func stat(title, unit string, bad float64, expr string) Panel {
	return Panel{Title: title, Kind: Stat, Unit: unit, Bad: bad, Queries: []Query{{Expr: expr, Legend: title}}}
}

func series(title, description, unit, expr, legend string) Panel {
	return Panel{Title: title, Description: description, Kind: Series, Unit: unit, Queries: []Query{{expr, legend}}}
}

func table(title, description, unit, expr string) Panel {
	return Panel{Title: title, Description: description, Kind: Table, Unit: unit, Queries: []Query{{Expr: expr}}}
}

// and adds a query.
func (p Panel) and(expr, legend string) Panel {
	p.Queries = append(p.Queries, Query{expr, legend})
	return p
}
