package monitoring

const theRollout = `pko_name="$rollout"`

// rollout is what somebody looks at who rolls a package out over a fleet.
func rollout() Dashboard {
	return Dashboard{
		UID: "hypershift-rollout", Title: "HyperShift / Rollout",
		Description: "A HostedClusterPackage on its way through the fleet: how far it is, what holds it, and how packages are in general.",
		Variables:   []Variable{{Name: "rollout", Label: "HostedClusterPackage", Query: `label_values(package_operator_hosted_cluster_package_rollout, pko_name)`}},
		Rows: []Row{
			{"How far it is", []Panel{
				stat("Packages", "short", 0, packages("total")),
				stat("With the newest template", "short", 0, packages("updated")),
				stat("Unavailable", "short", 1, packages("unavailable")),
				stat("Groups that are done", "short", 0, `max(package_operator_hosted_cluster_package_groups{`+theRollout+`, state="done"})`),
				stat("Groups", "short", 0, `max(package_operator_hosted_cluster_package_groups{`+theRollout+`, state="total"})`),
				stat("Has not gone on for", "s", 0, `time() - max(package_operator_hosted_cluster_package_last_progress_timestamp_seconds{`+theRollout+`})`),
			}},
			{"On its way", []Panel{
				series("State", "1 for the state that it is in.", "short", `max by (state) (package_operator_hosted_cluster_package_rollout{`+theRollout+`})`, "{{state}}"),
				series("Packages", "", "short", `max by (state) (package_operator_hosted_cluster_package_packages{`+theRollout+`})`, "{{state}}"),
				series("Budget", "How many Packages may be unavailable or in flight, and how many are. At the limit nothing goes on; no limit is shown when any number may.", "short",
					`max(package_operator_hosted_cluster_package_budget_used{`+theRollout+`})`, "used").
					and(`max(package_operator_hosted_cluster_package_budget{`+theRollout+`}) or on () vector(0)`, "limit"),
			}},
			{"All packages", []Panel{
				stat("Packages", "short", 0, `count(max by (pko_namespace, pko_name) (package_operator_package_availability))`),
				stat("Unavailable packages", "short", 1, `count(max by (pko_namespace, pko_name) (package_operator_package_availability) == 0) or on () vector(0)`),
				stat("Unknown packages", "short", 1, `count(max by (pko_namespace, pko_name) (package_operator_package_availability) == 2) or on () vector(0)`),
				table("Slowest to load", "How long it took to load a package from its image.", "s",
					`topk(10, max by (pko_namespace, pko_name) (package_operator_package_load_duration_seconds))`),
				series("Objects that are watched", "By kind.", "short", `sum by (gvk) (package_operator_managed_cache_objects_total)`, "{{gvk}}"),
			}},
		},
	}
}

func packages(state string) string {
	return `max(package_operator_hosted_cluster_package_packages{` + theRollout + `, state="` + state + `"})`
}
