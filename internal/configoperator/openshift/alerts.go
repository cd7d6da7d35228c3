package openshift

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// alerts warn those who watch the hosted cluster of what only kube-apiserver, which they don't see, knows.
func alerts(Input) ([]Action, error) {
	removed := func(alert, release, description string) map[string]any {
		return map[string]any{
			"alert": alert, "for": "1h", "labels": apiLabels(),
			"annotations": map[string]any{"summary": "Deprecated API that will be removed in the next version is being used.", "description": description},
			"expr":        fmt.Sprintf(`group(apiserver_requested_deprecated_apis{removed_release=%s}) by (group,version,resource) and (sum by(group,version,resource) (rate(apiserver_request_total{system_client!="kube-controller-manager",system_client!="cluster-policy-controller"}[4h]))) > 0`, release),
		}
	}
	const hint = " Removal of the workload that uses it may be necessary to upgrade the cluster. Refer to 'oc get apirequestcounts {{ $labels.resource }}.{{ $labels.version }}.{{ $labels.group }} -o yaml' to find the workload."
	usage := []any{
		removed("APIRemovedInNextReleaseInUse", `"1.24"`, "Deprecated API that will be removed in the next version is being used."+hint),
		removed("APIRemovedInNextEUSReleaseInUse", `~"1\\.2[45]"`, "Deprecated API that will be removed in the next EUS version is being used."+hint),
	}
	violation := func(selector string) map[string]any {
		return map[string]any{
			"alert": "PodSecurityViolation", "labels": apiLabels(),
			"annotations": map[string]any{
				"summary":     "One or more workloads users created in the cluster don't match their Pod Security profile",
				"description": "A workload (pod, deployment, daemonset, ...) was created somewhere in the cluster but it did not match the PodSecurity \"{{ $labels.policy_level }}\" profile defined by its namespace either via the cluster-wide configuration (which triggers on a \"restricted\" profile violations) or by the namespace local Pod Security labels. Refer to Kubernetes documentation on Pod Security Admission to learn more about these violations.",
			},
			"expr": fmt.Sprintf(`sum(increase(pod_security_evaluations_total{decision="deny",mode="audit",resource="pod",%s}[1d])) by (policy_level, ocp_namespace) > 0`, selector),
		}
	}
	return apply(
		rule("api-usage", "pre-release-lifecycle", usage),
		rule("podsecurity", "pod-security-violation", []any{violation(`ocp_namespace=""`), violation(`ocp_namespace!=""`)}),
	), nil
}

func apiLabels() map[string]any {
	return map[string]any{"namespace": "openshift-kube-apiserver", "severity": "info"}
}

func rule(name, group string, rules []any) *unstructured.Unstructured {
	return object(monitoringV1, "PrometheusRule", "openshift-kube-apiserver", name, map[string]any{"spec": map[string]any{
		"groups": []any{map[string]any{"name": group, "rules": rules}},
	}})
}
