package clusterversionoperator

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// payloadDir is where the operator finds the payload.
const payloadDir = "/var/payload"

// storageManifests are those of operators that run beside the control plane, except where storage is a matter of the hosted cluster.
var storageManifests = []string{
	"0000_50_cluster-storage-operator_10_deployment-ibm-cloud-managed",
	"0000_50_cluster-csi-snapshot-controller-operator_07_deployment-ibm-cloud-managed",
}

// otherManifests are the manifests of the release that are not applied to a hosted cluster, without .yaml: what they are of runs beside its control
// plane, or is made by the hosted-cluster-config-operator, or has no place in it.
var otherManifests = slices.Concat(
	prefixed("0000_50_olm_",
		"00-pprof-config", "00-pprof-rbac", "00-pprof-secret", "00-packageserver.pdb", "01-olm-operator.serviceaccount", "02-services",
		"06-psm-operator.deployment", "06-psm-operator.deployment.ibm-cloud-managed", "06-psm-operator.service", "06-psm-operator.servicemonitor",
		"07-olm-operator.deployment", "07-olm-operator.deployment.ibm-cloud-managed", "07-collect-profiles.cronjob",
		"08-catalog-operator.deployment", "08-catalog-operator.deployment.ibm-cloud-managed", "15-packageserver.clusterserviceversion", "99-operatorstatus"),
	prefixed("0000_50_operator-marketplace_",
		"04_service_account", "05_role", "06_role_binding", "07_configmap", "08_service", "09_operator-ibm-cloud-managed", "09_operator",
		"10_clusteroperator", "11_service_monitor"),
	prefixed("0000_80_machine-config_01_",
		"containerruntimeconfigs.crd", "kubeletconfigs.crd", "machineconfigs.crd", "machineconfigpools-Default.crd"),
	[]string{
		"0000_90_olm_00-service-monitor",
		"0000_03_marketplace-operator_02_operatorhub.cr",
		"0000_70_dns-operator_02-deployment-ibm-cloud-managed",
		"0000_50_cluster-ingress-operator_02-deployment-ibm-cloud-managed",
		"0000_70_cluster-network-operator_03_deployment-ibm-cloud-managed",
		"0000_50_cluster-node-tuning-operator_50-operator-ibm-cloud-managed",
		"0000_50_cluster-image-registry-operator_07-operator-ibm-cloud-managed",
		"0000_50_cluster-image-registry-operator_07-operator-service",
		"0000_90_cluster-image-registry-operator_02_operator-servicemonitor",
		"0000_50_cluster-node-tuning-operator_20-performance-profile.crd",
		"0000_50_cloud-credential-operator_01-operator-config",
		"0000_50_cluster-authentication-operator_02_config.cr",
		"0000_90_etcd-operator_03_prometheusrule",
	},
)

func prefixed(prefix string, names ...string) []string {
	for i := range names {
		names[i] = prefix + names[i]
	}
	return names
}

// removed are the files that are taken from the manifests of the release, sorted.
func removed(hcp *hyperv1.HostedControlPlane) []string {
	files := slices.Clone(otherManifests)
	if !payload.GuestStorage(hcp) {
		files = append(files, storageManifests...)
	}
	if !kit.OAuthEnabled(hcp) {
		files = append(files, "0000_50_console-operator_01-oauth")
	}
	for i := range files {
		files[i] += ".yaml"
	}
	slices.Sort(files)
	return files
}

// featureSet is the feature set of the hosted cluster as annotations of manifests call it.
func featureSet(hcp *hyperv1.HostedControlPlane) (string, error) {
	c := hcp.Spec.Configuration
	if c == nil || c.FeatureGate == nil || c.FeatureGate.FeatureSet == "" {
		return "Default", nil
	}
	set := string(c.FeatureGate.FeatureSet)
	// It becomes a part of a script.
	if strings.ContainsFunc(set, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') }) {
		return "", fmt.Errorf("spec.configuration.featureGate.featureSet %q is unknown: it must be %s, %s, %s or empty", set,
			configv1.TechPreviewNoUpgrade, configv1.DevPreviewNoUpgrade, configv1.CustomNoUpgrade)
	}
	return set, nil
}

// prepareScript runs in the release image and leaves in payloadDir what the operator is to apply.
func prepareScript(hcp *hyperv1.HostedControlPlane) (string, error) {
	set, err := featureSet(hcp)
	if err != nil {
		return "", err
	}
	cleanup, err := cleanupManifest(hcp)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("#!/bin/bash")
	line("set -euo pipefail")
	line("cp -R /manifests %s/", payloadDir)
	for _, pattern := range []string{"*_deployment.yaml", "*_servicemonitor.yaml", "0000_50_cluster-update-console-plugin_*"} {
		line("rm -f %s/manifests/%s", payloadDir, pattern)
	}
	line("cp -R /release-manifests %s/", payloadDir)
	line("# What is for other feature sets than %s alone.", set)
	line("for file in %s/manifests/*.yaml; do", payloadDir)
	line(`  sets=$(grep 'release.openshift.io/feature-set:' "${file}" || true)`)
	line(`  if [[ -n "${sets}" && "${sets}" != *%s* ]]; then`, set)
	line(`    rm -f "${file}"`)
	line("  fi")
	line("done")
	for _, file := range removed(hcp) {
		line("rm -f %s/release-manifests/%s", payloadDir, file)
	}
	line("cat > %s/release-manifests/0000_01_cleanup.yaml <<'EOF'", payloadDir)
	b.WriteString(cleanup)
	line("EOF")
	return b.String(), nil
}

// cleanupManifest has the operator delete the leftovers.
func cleanupManifest(hcp *hyperv1.HostedControlPlane) (string, error) {
	var b strings.Builder
	for _, o := range payload.Leftovers(hcp) {
		meta := map[string]any{"name": o.Name, "annotations": map[string]any{
			"include.release.openshift.io/ibm-cloud-managed": "true", "release.openshift.io/delete": "true",
		}}
		kit.SetUnlessEmpty(meta, "namespace", o.Namespace)
		raw, err := yaml.Marshal(map[string]any{"apiVersion": o.APIVersion, "kind": o.Kind, "metadata": meta})
		if err != nil {
			return "", fmt.Errorf("encoding what is deleted from the hosted cluster: %w", err)
		}
		b.WriteString("---\n")
		b.Write(raw)
	}
	return b.String(), nil
}
