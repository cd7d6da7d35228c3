package payload

import (
	"maps"
	"slices"

	"hcp.internal/platform/internal/image"
	"hcp.internal/platform/test/standin/run"
)

// assetFiles are the manifests that the payload's render tools write.
func assetFiles() ([]image.File, error) {
	bootstrap, err := definitions(run.Assets+"/bootstrap", "0000_10_config-operator_01_", bootstrapKinds, "")
	if err != nil {
		return nil, err
	}
	authentication, err := definitions(run.Assets+"/authentication", "0000_10_config-operator_01_", authenticationKinds, "")
	return slices.Concat(bootstrap, authentication), err
}

// versionFiles are in folder manifests of the cluster-version-operator's image, which the release image is made of. Some of them are for
// the operator's own cluster or for another feature set, and must not be applied.
func versionFiles() ([]image.File, error) {
	files, err := definitions("/manifests", "0000_00_cluster-version-operator_01_", versionKinds, "")
	if err != nil {
		return nil, err
	}
	canary := func(annotation, value string) object {
		return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "must-not-be-applied", "namespace": "default", "annotations": object{profile: "true", annotation: value}}}
	}
	for name, o := range map[string]object{
		"0000_00_cluster-version-operator_03_deployment.yaml":     canary("why", "a Deployment of the operator is not for a hosted cluster"),
		"0000_90_cluster-version-operator_02_servicemonitor.yaml": canary("why", "monitors are not, either"),
		"0000_50_cluster-update-console-plugin_1.yaml":            canary("why", "nor is the plugin of the console"),
		"0000_00_cluster-version-operator_01_custom.yaml":         canary("release.openshift.io/feature-set", "CustomNoUpgrade"),
		"0000_00_cluster-version-operator_00_namespace.yaml":      namespaceOf("openshift-cluster-version", ""),
	} {
		f, err := file("/manifests", name, o)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func namespaceOf(name, capability string) object {
	return object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name, "annotations": annotations(capability)}}
}

// keptOut are manifests that prepare-payload deletes; each would leave the ConfigMap must-not-be-applied.
var keptOut = []string{
	"0000_50_olm_07-olm-operator.deployment.ibm-cloud-managed.yaml", "0000_50_olm_00-packageserver.pdb.yaml", "0000_50_operator-marketplace_09_operator.yaml",
	"0000_70_dns-operator_02-deployment-ibm-cloud-managed.yaml", "0000_50_cluster-ingress-operator_02-deployment-ibm-cloud-managed.yaml",
	"0000_70_cluster-network-operator_03_deployment-ibm-cloud-managed.yaml", "0000_50_cluster-storage-operator_10_deployment-ibm-cloud-managed.yaml",
	"0000_50_cluster-image-registry-operator_07-operator-ibm-cloud-managed.yaml", "0000_03_marketplace-operator_02_operatorhub.cr.yaml",
}

// releaseFiles are in folder release-manifests of a release, beside image-references.
func releaseFiles(version string) ([]image.File, error) {
	var files []image.File
	var failed error
	add := func(name string, objects ...object) {
		f, err := file("/release-manifests", name, objects...)
		if err != nil {
			failed = err
		}
		files = append(files, f)
	}
	for capability, kinds := range operatorKinds {
		more, err := definitions("/release-manifests", "0000_10_standin_01_", kinds, capability)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	for _, c := range slices.Sorted(maps.Keys(namespaces)) {
		for _, name := range namespaces[c] {
			add("0000_05_standin_namespace-"+name+".yaml", namespaceOf(name, c))
		}
	}
	for _, c := range slices.Sorted(maps.Keys(accounts)) {
		for _, a := range accounts[c] {
			add("0000_20_standin_account-"+a[1]+".yaml", account(a[0], a[1], c)...)
		}
	}
	for _, c := range slices.Sorted(maps.Keys(clusterOperators)) {
		for _, name := range clusterOperators[c] {
			add("0000_50_standin_operator-"+name+".yaml", object{
				"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": object{"name": name, "annotations": annotations(c)}, "spec": object{},
			})
		}
	}
	for _, name := range keptOut {
		add(name, object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "must-not-be-applied", "namespace": "default", "annotations": annotations("")}})
	}
	// What belongs to a capability that is off, and to another profile, shows whether the operator sorts them out.
	add("0000_60_standin_baremetal.yaml", object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "standin-baremetal", "namespace": "openshift-config-managed", "annotations": annotations("baremetal")}})
	add("0000_60_standin_console.yaml", object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "standin-console", "namespace": "openshift-config-managed", "annotations": annotations("Console")}})
	add("0000_60_standin_version.yaml", object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "standin-version", "namespace": "openshift-config-managed", "annotations": annotations("")},
		"data": object{"version": version},
	})
	add("0000_50_installer_coreos-bootimages.yaml", object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "coreos-bootimages", "namespace": "openshift-machine-config-operator"},
		"data": object{"releaseVersion": version, "stream": `{"stream":"rhcos-` + version + `","architectures":{"x86_64":{"artifacts":{},"images":{}}}}`},
	})
	return files, failed
}

// account is the ServiceAccount of an operator, and its binding.
func account(namespace, name, capability string) []object {
	return []object{
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": name, "namespace": namespace, "annotations": annotations(capability)}},
		{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": object{"name": name, "annotations": annotations(capability)},
			"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
			"subjects": []object{{"kind": "ServiceAccount", "name": name, "namespace": namespace}},
		},
	}
}
