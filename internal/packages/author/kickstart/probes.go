package kickstart

import "k8s.io/apimachinery/pkg/runtime/schema"

// plain are kinds that are available as soon as they are there.
var plain = map[string]bool{
	"Namespace": true, "ResourceQuota": true, "LimitRange": true, "PriorityClass": true, "NetworkPolicy": true, "ServiceAccount": true, "Role": true,
	"ClusterRole": true, "RoleBinding": true, "ClusterRoleBinding": true, "StorageClass": true, "Service": true, "Secret": true, "ConfigMap": true,
	"PodDisruptionBudget": true, "HorizontalPodAutoscaler": true, "CronJob": true, "MutatingWebhookConfiguration": true, "ValidatingWebhookConfiguration": true,
}

func condition(name string) map[string]any {
	return map[string]any{"condition": map[string]any{"type": name, "status": "True"}}
}

func equal(a, b string) map[string]any {
	return map[string]any{"fieldsEqual": map[string]any{"fieldA": a, "fieldB": b}}
}

func rule(expression, message string) map[string]any {
	return map[string]any{"cel": map[string]any{"rule": expression, "message": message}}
}

// probesOf are the probes of a kind, nil when none are known.
func probesOf(k schema.GroupKind) []any {
	switch k {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}:
		return []any{condition("Available"), equal(".status.updatedReplicas", ".status.replicas")}
	case schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
		return []any{equal(".status.desiredNumberScheduled", ".status.numberAvailable")}
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return []any{condition("Established")}
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		return []any{condition("Complete")}
	case schema.GroupKind{Group: "route.openshift.io", Kind: "Route"}:
		return []any{rule(`has(self.status) && has(self.status.ingress) && self.status.ingress.all(i, has(i.conditions) && i.conditions.all(c, c.type != "Admitted" || c.status == "True"))`, "not all ingress points are reporting ready")}
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return []any{rule(`has(self.status) && has(self.status.phase) && self.status.phase == "Bound"`, "PVC phase must be Bound")}
	case schema.GroupKind{Group: "operators.coreos.com", Kind: "ClusterServiceVersion"}:
		return []any{rule(`has(self.status) && has(self.status.phase) && self.status.phase == "Succeeded"`, "CSV phase must be Succeeded")}
	}
	return nil
}
