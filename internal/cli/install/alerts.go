package install

import "fmt"

// alert is a rule of Prometheus that calls for a person. docs/alerts.md has a section of its name that says what to do.
func alert(name, expr, last, severity, summary, description string) any {
	return map[string]any{"alert": name, "expr": expr, "for": last, "labels": map[string]any{"severity": severity},
		"annotations": map[string]any{"summary": summary, "description": description, "runbook": "docs/alerts.md, " + name}}
}

const (
	warning  = "warning"
	critical = "critical"
	// slowDeletion, in seconds, is from when on the deletion of a hosted cluster is stuck; it takes less than a minute as a rule.
	slowDeletion = 900
	// certificateDays is how long before the end of a certificate somebody should look. They are replaced when a fifth of their life is left.
	certificateDays = 7
	// authorityDays is how long before the end of an authority somebody should look: nodes, users and tools trust it and have to be told of another.
	authorityDays = 365
	// fillsUp is the share of an etcd's quota from which somebody should look.
	fillsUp = 0.8
	// longWait, in seconds, is how long a control plane may wait for room before somebody should make some.
	longWait = 900
	// longMove, in seconds, is how long a move between standard and private types of Cluster API may take; it takes minutes.
	longMove = 3600
	// slowPool, in seconds, is how long the deletion of a NodePool may take; machines wait for pods to move.
	slowPool = 3600
	// slowRequest, in seconds, is how long a node may wait for its certificate.
	slowRequest = 1800
	// slowPass, in seconds, is how long a pass of a controller may take; the slowest take some seconds.
	slowPass = 600
	// slowUpgrade, in seconds, is how long the upgrade of a control plane may take.
	slowUpgrade = 7200
)

// operationAlerts tell of what breaks hosted clusters or costs the management cluster. Each is about one fact that an operator knows, so they need
// nothing but our own metrics.
func operationAlerts(namespace string) []any {
	// An operator that waits for the lease reports the same as the one that works, and one that was replaced for some minutes more.
	lost := func(condition string) string {
		return fmt.Sprintf(`max by (namespace, name) (hypershift_cluster_condition_lost_duration_seconds{condition=%q}) > 0`, condition)
	}
	describe := "See why: kubectl describe hostedcluster {{ $labels.name }} --namespace {{ $labels.namespace }}"
	return append([]any{
		alert("HyperShiftEtcdUnavailable", lost("EtcdAvailable"), "3m", critical,
			"etcd of hosted cluster {{ $labels.namespace }}/{{ $labels.name }} has lost its quorum or refuses writes", describe),
		alert("HyperShiftEtcdDatabaseFull", `max by (namespace, etcd) (hypershift_etcd_database_full) > 0`, "2m", critical,
			"etcd {{ $labels.etcd }} in namespace {{ $labels.namespace }} refuses writes: its database has grown to its quota",
			"Removing history and defragmenting did not free enough space: delete objects of the hosted cluster"),
		alert("HyperShiftEtcdDatabaseFillsUp", fmt.Sprintf(`max by (namespace, etcd) (hypershift_etcd_database_in_use_bytes / hypershift_etcd_database_quota_bytes) > %.1f`, fillsUp), "10m", warning,
			"The database of etcd {{ $labels.etcd }} in namespace {{ $labels.namespace }} is 80 % full with data in use",
			"At 100 % it refuses writes. Delete objects of the hosted cluster, or find out who creates them"),
		alert("HyperShiftAPIUnavailable", lost("KubeAPIServerAvailable"), "3m", critical,
			"The API of hosted cluster {{ $labels.namespace }}/{{ $labels.name }} is down", describe),
		alert("HyperShiftReconciliationFailing", lost("ReconciliationSucceeded"), "15m", warning,
			"Hosted cluster {{ $labels.namespace }}/{{ $labels.name }} can't be reconciled", describe),
		alert("HyperShiftDeletionStuck", fmt.Sprintf(`max by (namespace, name) (hypershift_cluster_deleting_duration_seconds) > %d`, slowDeletion), "1m", warning,
			"The deletion of hosted cluster {{ $labels.namespace }}/{{ $labels.name }} is stuck", describe),
		alert("HyperShiftControlPlaneWaitsForRoom", fmt.Sprintf(`max by (namespace, name) (hypershift_cluster_waiting_for_capacity_duration_seconds) > %d`, longWait), "1m", warning,
			"The control plane of hosted cluster {{ $labels.namespace }}/{{ $labels.name }} waits for room on the nodes of the management cluster",
			"Add a node, or destroy a hosted cluster that is not needed. Condition ControlPlaneAdmitted says what is missing, and its position in the queue: "+
				"kubectl describe hostedcluster {{ $labels.name }} --namespace {{ $labels.namespace }}"),
		alert("HyperShiftOperatorDown", fmt.Sprintf(`absent(hypershift_operator_info{namespace=%q})`, namespace), "10m", critical,
			"No hypershift-operator runs", "Hosted clusters keep running, but nothing is created, changed or repaired: kubectl get pods --namespace "+namespace),
		alert("HyperShiftCertificateExpires", fmt.Sprintf(`min by (namespace) (hypershift_certificates_earliest_expiry_timestamp_seconds) - time() < %d * 24 * 3600`, certificateDays), "1h", critical,
			fmt.Sprintf("A certificate of the control plane in namespace {{ $labels.namespace }} expires in less than %d days and was not replaced", certificateDays),
			"Its control-plane-operator should have replaced it: kubectl logs deployment/control-plane-operator --namespace {{ $labels.namespace }}"),
		alert("HyperShiftCertificateAuthorityExpires", fmt.Sprintf(`min by (namespace) (hypershift_certificate_authorities_earliest_expiry_timestamp_seconds) - time() < %d * 24 * 3600`, authorityDays), "1h", warning,
			"A certificate authority of the control plane in namespace {{ $labels.namespace }} expires in less than a year",
			"After that, nothing that it signed is accepted. Plan its replacement now"),
		alert("HyperShiftNodePoolNotJoining",
			`max by (namespace, cluster_name, name) (hypershift_nodepools_size) - max by (namespace, cluster_name, name) (hypershift_nodepools_available_replicas) > 0`, "30m", warning,
			"NodePool {{ $labels.namespace }}/{{ $labels.name }} has fewer nodes than it should have: {{ $value }} are missing",
			"What it waits for: kubectl describe nodepool {{ $labels.name }} --namespace {{ $labels.namespace }}"),
		alert("HyperShiftNodePoolDeletionStuck", fmt.Sprintf(`max by (namespace, name) (hypershift_nodepools_deleting_duration_seconds) > %d`, slowPool), "1m", warning,
			"The deletion of NodePool {{ $labels.namespace }}/{{ $labels.name }} is stuck",
			"Machines wait for pods that a PodDisruptionBudget protects: kubectl describe nodepool {{ $labels.name }} --namespace {{ $labels.namespace }}"),
		alert("HyperShiftNodeCertificatePending", fmt.Sprintf(`time() - min by (namespace) (hypershift_node_certificate_requests_oldest_timestamp_seconds) > %d`, slowRequest), "5m", warning,
			"Nodes of the control plane in namespace {{ $labels.namespace }} wait for certificates",
			"Without a certificate, a node can't join or can't serve logs. To see which nodes and why: kubectl get csr and kubectl get events in the hosted cluster"),
		alert("HyperShiftUpgradeStuck", fmt.Sprintf(`max by (namespace, name) (hypershift_cluster_upgrading_duration_seconds) > %d`, slowUpgrade), "5m", warning,
			"The upgrade of hosted cluster {{ $labels.namespace }}/{{ $labels.name }} has not ended for two hours", describe),
		alert("HyperShiftEncryptionMigrationFailing", `max by (namespace, name) (hypershift_encryption_migration_state{state="Failing"}) > 0`, "30m", warning,
			"Data of hosted cluster {{ $labels.namespace }}/{{ $labels.name }} can't be rewritten with its new encryption key",
			"The old key is still needed. Condition EtcdDataEncryptionUpToDate says why it fails: kubectl describe hostedcluster {{ $labels.name }} --namespace {{ $labels.namespace }}"),
		alert("HyperShiftEncryptionKeysUnavailable", lost("SecretEncryptionKeysAvailable"), "5m", critical,
			"The plugin or service that holds the encryption keys of hosted cluster {{ $labels.namespace }}/{{ $labels.name }} does not answer",
			"Secrets can't be written, and a kube-apiserver that starts does not become ready. Condition SecretEncryptionKeysAvailable says which key, and where to look: "+
				"kubectl describe hostedcluster {{ $labels.name }} --namespace {{ $labels.namespace }}"),
		alert("HyperShiftProxyCAExpires", fmt.Sprintf(`min by (namespace, name) (hypershift_cluster_proxy_ca_expiry_timestamp) - time() < %d * 24 * 3600`, certificateDays), "1h", warning,
			fmt.Sprintf("A CA certificate for the proxy of hosted cluster {{ $labels.namespace }}/{{ $labels.name }} expires in less than %d days", certificateDays),
			"Add its successor to the ConfigMap that spec.configuration.proxy.trustedCA names"),
		alert("HyperShiftOperatorNotReconciling", fmt.Sprintf(`max by (controller) (workqueue_longest_running_processor_seconds{namespace=%[1]q}) > %[2]d or `+
			`(max by (controller) (workqueue_depth{namespace=%[1]q}) > 0 unless on (controller) sum by (controller) (increase(controller_runtime_reconcile_total{namespace=%[1]q}[15m])) > 0)`,
			namespace, slowPass), "15m", critical, "Controller {{ $labels.controller }} of the hypershift-operator does not reconcile",
			"Objects are waiting, or one reconciliation hangs: kubectl logs deployment/operator --namespace "+namespace),
		alert("HyperShiftObjectHotLoop", `max by (kind, loop, managers) (hypershift_object_hot_loops) > 0`, "10m", warning,
			"Objects of kind {{ $labels.kind }} are written again and again by {{ $labels.managers }}",
			"Objects and fields: kubectl get events --all-namespaces --field-selector reason=HotLoop"),
	}, backupAlerts()...)
}

// packageAlerts are about what the operator of packages knows.
func packageAlerts() []any {
	return []any{
		// A rollout changes one Package after the other: as long as it goes on, the number of those that have the template moves. One that soaks or
		// is paused is meant to stand still.
		alert("HyperShiftRolloutHeld",
			`max by (pko_name) (package_operator_hosted_cluster_package_rollout{state="progressing"}) == 1 and on (pko_name) `+
				`max by (pko_name) (changes(package_operator_hosted_cluster_package_packages{state="updated"}[10m])) == 0`,
			"1h", warning, "The rollout of HostedClusterPackage {{ $labels.pko_name }} has not advanced for an hour",
			"What it waits for: kubectl package rollout status hostedclusterpackage/{{ $labels.pko_name }} --watch=false"),
	}
}
