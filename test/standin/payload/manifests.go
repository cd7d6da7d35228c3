// Package payload builds a release image that looks like one of OpenShift's and whose programs are the stand-in, and pushes it with its
// images to a registry. All images share a few layers, so a payload costs as much as one of them.
package payload

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/image"
)

// kind is one that a payload defines. Plurals that begin with "/" have no namespace.
type kind struct{ group, version, name, plural string }

// bootstrapKinds are those that the first objects of a hosted cluster need; the payload's render tool writes them.
var bootstrapKinds = []kind{
	{"config.openshift.io", "v1", "APIServer", "/apiservers"}, {"config.openshift.io", "v1", "Build", "/builds"}, {"config.openshift.io", "v1", "Console", "/consoles"},
	{"config.openshift.io", "v1", "DNS", "/dnses"}, {"config.openshift.io", "v1", "FeatureGate", "/featuregates"}, {"config.openshift.io", "v1", "Image", "/images"},
	{"config.openshift.io", "v1", "ImageContentPolicy", "/imagecontentpolicies"}, {"config.openshift.io", "v1", "ImageDigestMirrorSet", "/imagedigestmirrorsets"},
	{"config.openshift.io", "v1", "ImageTagMirrorSet", "/imagetagmirrorsets"}, {"config.openshift.io", "v1", "Infrastructure", "/infrastructures"},
	{"config.openshift.io", "v1", "Ingress", "/ingresses"}, {"config.openshift.io", "v1", "Network", "/networks"}, {"config.openshift.io", "v1", "Node", "/nodes"},
	{"config.openshift.io", "v1", "OAuth", "/oauths"}, {"config.openshift.io", "v1", "Project", "/projects"}, {"config.openshift.io", "v1", "Proxy", "/proxies"},
	{"config.openshift.io", "v1", "Scheduler", "/schedulers"}, {"config.openshift.io", "v1", "OperatorHub", "/operatorhubs"},
	{"operator.openshift.io", "v1alpha1", "ImageContentSourcePolicy", "/imagecontentsourcepolicies"},
	{"security.internal.openshift.io", "v1", "RangeAllocation", "/rangeallocations"},
}

var authenticationKinds = []kind{{"config.openshift.io", "v1", "Authentication", "/authentications"}}

// versionKinds are in the image of the cluster-version-operator.
var versionKinds = []kind{{"config.openshift.io", "v1", "ClusterVersion", "/clusterversions"}, {"config.openshift.io", "v1", "ClusterOperator", "/clusteroperators"}}

// Kinds of groups that openshift-apiserver serves aren't defined: plain Kubernetes would serve those groups by itself then, as it lacks
// OpenShift's exception for them.

// operatorKinds are what the operators of a payload work with, by the capability that they need.
var operatorKinds = map[string][]kind{
	"": {
		{"apiserver.openshift.io", "v1", "APIRequestCount", "/apirequestcounts"},
		{"cloud.network.openshift.io", "v1", "CloudPrivateIPConfig", "/cloudprivateipconfigs"}, {"machineconfiguration.openshift.io", "v1", "MachineConfig", "/machineconfigs"},
		{"monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors"}, {"monitoring.coreos.com", "v1", "PodMonitor", "podmonitors"},
		{"monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules"},
		{"network.operator.openshift.io", "v1", "EgressRouter", "egressrouters"}, {"network.operator.openshift.io", "v1", "OperatorPKI", "operatorpkis"},
		{"operator.openshift.io", "v1", "ClusterCSIDriver", "/clustercsidrivers"}, {"operator.openshift.io", "v1", "DNS", "/dnses"},
		{"operator.openshift.io", "v1", "Network", "/networks"}, {"operator.openshift.io", "v1", "Storage", "/storages"}, {"operator.openshift.io", "v1", "ServiceCA", "/servicecas"},
		{"operator.openshift.io", "v1", "CloudCredential", "/cloudcredentials"}, {"operator.openshift.io", "v1", "CSISnapshotController", "/csisnapshotcontrollers"},
		{"operator.openshift.io", "v1", "IngressController", "ingresscontrollers"}, {"imageregistry.operator.openshift.io", "v1", "Config", "/configs"},
		{"ingress.operator.openshift.io", "v1", "DNSRecord", "dnsrecords"},
	},
	"OperatorLifecycleManager": {
		{"operators.coreos.com", "v1alpha1", "CatalogSource", "catalogsources"}, {"operators.coreos.com", "v1alpha1", "Subscription", "subscriptions"},
		{"operators.coreos.com", "v1alpha1", "ClusterServiceVersion", "clusterserviceversions"}, {"operators.coreos.com", "v1alpha1", "InstallPlan", "installplans"},
		{"operators.coreos.com", "v2", "OperatorCondition", "operatorconditions"}, {"operators.coreos.com", "v1", "OperatorGroup", "operatorgroups"},
		{"operators.coreos.com", "v1", "OLMConfig", "/olmconfigs"},
	},
	"NodeTuning":        {{"tuned.openshift.io", "v1", "Tuned", "tuneds"}, {"tuned.openshift.io", "v1", "Profile", "profiles"}},
	"openshift-samples": {{"samples.operator.openshift.io", "v1", "Config", "/configs"}},
	"Insights":          {{"insights.openshift.io", "v1alpha1", "DataGather", "/datagathers"}},
}

// namespaces of the payload, by capability.
var namespaces = map[string][]string{
	"": {
		"openshift", "openshift-apiserver", "openshift-authentication", "openshift-cloud-credential-operator", "openshift-cloud-controller-manager", "openshift-cluster-csi-drivers",
		"openshift-cluster-storage-operator", "openshift-cluster-version", "openshift-config", "openshift-config-managed", "openshift-controller-manager", "openshift-dns-operator",
		"openshift-etcd", "openshift-infra", "openshift-kube-apiserver", "openshift-kube-apiserver-operator", "openshift-kube-controller-manager", "openshift-kube-scheduler", "openshift-monitoring", "openshift-network-operator",
		"openshift-oauth-apiserver", "openshift-route-controller-manager", "openshift-user-workload-monitoring",
	},
	"Ingress":                  {"openshift-ingress", "openshift-ingress-operator"},
	"ImageRegistry":            {"openshift-image-registry"},
	"NodeTuning":               {"openshift-cluster-node-tuning-operator"},
	"OperatorLifecycleManager": {"openshift-operator-lifecycle-manager", "openshift-marketplace"},
}

// accounts are the operators that come as a ServiceAccount of the hosted cluster, with what may be anything there.
var accounts = map[string][][2]string{
	"":              {{"openshift-network-operator", "cluster-network-operator"}, {"openshift-dns-operator", "dns-operator"}, {"openshift-cloud-credential-operator", "cloud-credential-operator"}},
	"Ingress":       {{"openshift-ingress-operator", "ingress-operator"}},
	"ImageRegistry": {{"openshift-image-registry", "cluster-image-registry-operator"}},
}

// clusterOperators that the control plane's own operators report.
var clusterOperators = map[string][]string{
	"":                         {"network", "dns", "storage"},
	"CSISnapshot":              {"csi-snapshot-controller"},
	"Ingress":                  {"ingress"},
	"ImageRegistry":            {"image-registry"},
	"NodeTuning":               {"node-tuning"},
	"OperatorLifecycleManager": {"operator-lifecycle-manager", "operator-lifecycle-manager-catalog"},
}

type object = map[string]any

const profile = "include.release.openshift.io/ibm-cloud-managed"

func annotations(capability string) object {
	a := object{profile: "true", "include.release.openshift.io/self-managed-high-availability": "true"}
	if capability != "" {
		a["capability.openshift.io/name"] = capability
	}
	return a
}

// definition is a minimal CustomResourceDefinition of a kind, which takes any field.
func definition(k kind, capability string) object {
	scope, plural := "Namespaced", k.plural
	if p, ok := strings.CutPrefix(plural, "/"); ok {
		scope, plural = "Cluster", p
	}
	open := object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": plural + "." + k.group, "annotations": withApproval(annotations(capability))},
		"spec": object{
			"group": k.group, "scope": scope,
			"names": object{"kind": k.name, "listKind": k.name + "List", "plural": plural, "singular": strings.ToLower(k.name)},
			"versions": []object{{
				"name": k.version, "served": true, "storage": true, "subresources": object{"status": object{}},
				"schema": object{"openAPIV3Schema": object{"type": "object", "properties": object{"spec": open, "status": open}, "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}
}

func withApproval(a object) object {
	a["api-approved.openshift.io"] = "https://example.test/standin"
	return a
}

func file(folder, name string, objects ...object) (image.File, error) {
	var b strings.Builder
	for i, o := range objects {
		raw, err := yaml.Marshal(o)
		if err != nil {
			return image.File{}, fmt.Errorf("writing %s: %w", name, err)
		}
		if i > 0 {
			b.WriteString("---\n")
		}
		b.Write(raw)
	}
	return image.File{Path: folder + "/" + name, Data: []byte(b.String())}, nil
}

func definitions(folder, prefix string, kinds []kind, capability string) ([]image.File, error) {
	var files []image.File
	for _, k := range kinds {
		f, err := file(folder, fmt.Sprintf("%s%s.%s.crd.yaml", prefix, strings.TrimPrefix(k.plural, "/"), k.group), definition(k, capability))
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}
