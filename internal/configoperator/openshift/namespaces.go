package openshift

import (
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

const (
	podSecurity       = "pod-security.kubernetes.io/"
	clusterMonitoring = "openshift.io/cluster-monitoring"
)

// namespaces are those of components that run in the control plane, which operators and users of the hosted cluster expect all the same.
func namespaces(in Input) ([]Action, error) {
	privileged := map[string]string{podSecurity + "enforce": "privileged", podSecurity + "audit": "privileged", podSecurity + "warn": "privileged"}
	all := []struct {
		name   string
		labels map[string]string
	}{
		{"openshift-apiserver", nil},
		{"openshift-infra", privileged},
		{"openshift-cloud-controller-manager", nil},
		{"openshift-controller-manager", nil},
		{"openshift-kube-apiserver", map[string]string{clusterMonitoring: "true"}},
		{"openshift-kube-controller-manager", nil},
		{"openshift-kube-scheduler", nil},
		{"openshift-etcd", nil},
		{ingressNamespace, map[string]string{"network.openshift.io/policy-group": "ingress", clusterMonitoring: "true"}},
		{"openshift-authentication", nil},
		{"openshift-route-controller-manager", nil},
	}
	var actions []Action
	for _, n := range all {
		if n.name == ingressNamespace && !in.has(hyperv1.IngressCapability) {
			continue
		}
		o := reference(core, "Namespace", "", n.name)
		o.SetLabels(cloned(n.labels))
		actions = append(actions, apply(o)...)
	}
	return actions, nil
}

// cloudProviderConfig is the ConfigMap of openshift-config with the configuration of the cloud provider.
const cloudProviderConfig = "cloud-provider-config"

// ingressNamespace is where routers run.
const ingressNamespace = "openshift-ingress"

func cloned(m map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = v
	}
	return out
}
