package openshift

import (
	"time"
)

// managedOperator is an operator of the payload whose work the control plane does. The cluster-version-operator waits for its ClusterOperator, so we report for it.
type managedOperator struct {
	name string
	// versions are those that it reports: operand → "release" or "kubernetes".
	versions [][2]string
	related  []related
}

// related is an object that goes into support archives.
type related struct{ group, resource, name string }

const theRelease, theKubernetes = "release", "kubernetes"

var managedOperators = []managedOperator{
	{
		name: "openshift-apiserver", versions: [][2]string{{"operator", theRelease}, {"openshift-apiserver", theRelease}},
		related: append(append([]related{{"operator.openshift.io", "openshiftapiservers", cluster}},
			inNamespaces("openshift-config", "openshift-config-managed", "openshift-apiserver-operator", "openshift-apiserver")...),
			apiServices("apps", "authorization", "build", "image", "oauth", "project", "quota", "route", "security", "template", "user")...),
	},
	{
		name: "openshift-controller-manager", versions: [][2]string{{"openshift-controller-manager", theRelease}, {"operator", theRelease}},
		related: append([]related{{"operator.openshift.io", "openshiftcontrollermanagers", cluster}},
			inNamespaces("openshift-config", "openshift-config-managed", "openshift-controller-manager-operator", "openshift-controller-manager")...),
	},
	{
		name: "kube-apiserver", versions: kubernetesVersions("kube-apiserver"),
		related: append([]related{{"operator.openshift.io", "kubeapiservers", cluster}, {"apiextensions.k8s.io", "customresourcedefinitions", ""}},
			inNamespaces("openshift-config", "openshift-config-managed", "openshift-kube-apiserver-operator", "openshift-kube-apiserver")...),
	},
	{
		name: "kube-controller-manager", versions: kubernetesVersions("kube-controller-manager"),
		related: append(inNamespaces("openshift-config", "openshift-config-managed", "openshift-kube-controller-manager", "openshift-kube-controller-manager-operator"),
			related{"operator.openshift.io", "kubecontrollermanagers", cluster}),
	},
	{
		name: "kube-scheduler", versions: kubernetesVersions("kube-scheduler"),
		related: append([]related{{"operator.openshift.io", "kubeschedulers", cluster}}, inNamespaces("openshift-config", "openshift-kube-scheduler", "openshift-kube-scheduler-operator")...),
	},
	{
		name: "operator-lifecycle-manager-packageserver", versions: [][2]string{{"operator", theRelease}},
		related: inNamespaces("openshift-operator-lifecycle-manager"),
	},
}

func kubernetesVersions(operand string) [][2]string {
	return [][2]string{{"raw-internal", theRelease}, {operand, theKubernetes}, {"operator", theRelease}}
}

func inNamespaces(names ...string) (all []related) {
	for _, n := range names {
		all = append(all, related{"", "namespaces", n})
	}
	return all
}

func apiServices(groups ...string) (all []related) {
	for _, g := range groups {
		all = append(all, related{"apiregistration.k8s.io", "apiservices", "v1." + g + ".openshift.io"})
	}
	return all
}

// clusterOperators report that what the control plane does is done, at the version that it runs.
func clusterOperators(in Input) ([]Action, error) {
	versions := map[string]string{theRelease: in.Version, theKubernetes: in.Kubernetes}
	var actions []Action
	for _, o := range managedOperators {
		var list, objects []any
		for _, v := range o.versions {
			list = append(list, map[string]any{"name": v[0], "version": versions[v[1]]})
		}
		for _, r := range o.related {
			objects = append(objects, map[string]any{"group": r.group, "resource": r.resource, "name": r.name})
		}
		actions = append(actions, edit(configV1, "ClusterOperator", "", o.name, func(live map[string]any) {
			section(live, "spec")
			status := section(live, "status")
			status["versions"], status["relatedObjects"] = list, objects
			before, _ := status["conditions"].([]any)
			status["conditions"] = []any{
				condition(before, in.Now, "Available", "True"), condition(before, in.Now, "Progressing", "False"),
				condition(before, in.Now, "Degraded", "False"), condition(before, in.Now, "Upgradeable", "True"),
			}
		}))
	}
	return actions, nil
}

// condition is one of a ClusterOperator. It keeps the time of the transition while the status is as before.
func condition(before []any, now time.Time, kind, status string) map[string]any {
	since := now.UTC().Format(time.RFC3339)
	for _, item := range before {
		c, _ := item.(map[string]any)
		if at, ok := c["lastTransitionTime"].(string); ok && c["type"] == kind && c["status"] == status {
			since = at
		}
	}
	return map[string]any{"type": kind, "status": status, "reason": "AsExpected", "lastTransitionTime": since}
}
