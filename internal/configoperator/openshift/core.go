package openshift

import (
	"errors"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/resources"
	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/release"
)

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// requestCounts defines APIRequestCount, by which kube-apiserver tells who uses deprecated APIs. It is the one definition that the
// cluster-version-operator does not bring in time: kube-apiserver counts from its start.
func requestCounts(Input) ([]Action, error) { return apply(load("apirequestcounts.yaml")...), nil }

// kubernetesEndpoints point Service default/kubernetes to the published API.
func kubernetesEndpoints(in Input) ([]Action, error) {
	objects, err := resources.APIServerEndpoints(resources.Input{HCP: in.HCP})
	var actions []Action
	for _, o := range objects {
		actions = append(actions, Action{Do: Apply, Object: o})
	}
	return actions, err
}

// installRecords say how the cluster was installed, for support tools and for operators that ask the installer's configuration for the platform.
func installRecords(in Input) ([]Action, error) {
	installed := configMap("openshift-config", "openshift-install", map[string]string{"invoker": "hypershift", "version": in.Release.Version})
	config, err := installConfig(in)
	if err != nil {
		return nil, err
	}
	actions := []Action{{Do: Create, Object: installed}}
	return append(actions, apply(configMap("kube-system", "cluster-config-v1", map[string]string{"install-config": config}))...), nil
}

// installConfig is what of the installer's configuration is still read.
func installConfig(in Input) (string, error) {
	networks := []any{}
	for _, n := range in.HCP.Spec.Networking.MachineNetwork {
		networks = append(networks, map[string]any{"cidr": string(n.CIDR)})
	}
	platform := map[string]any{}
	switch p := in.HCP.Spec.Platform; {
	case p.AWS != nil && in.on(hyperv1.AWSPlatform):
		platform["aws"] = map[string]any{"region": p.AWS.Region}
	case p.GCP != nil && in.on(hyperv1.GCPPlatform):
		platform["gcp"] = map[string]any{"projectID": p.GCP.Project, "region": p.GCP.Region}
	default:
		platform["none"] = map[string]any{}
	}
	return yamlText(map[string]any{
		"apiVersion": "v1", "controlPlane": map[string]any{"replicas": 1},
		"networking": map[string]any{"machineNetwork": networks}, "platform": platform,
	})
}

// clusterVersion tells the cluster-version-operator who the cluster is, which parts it has, and where it hears of updates. Which release it runs is told
// by a flag, so nobody in the hosted cluster may ask for another.
func clusterVersion(in Input) ([]Action, error) {
	spec := in.HCP.Spec
	return []Action{edit(configV1, "ClusterVersion", "", "version", func(live map[string]any) {
		s := section(live, "spec")
		setOrDrop(s, "clusterID", spec.ClusterID)
		s["capabilities"] = map[string]any{
			"baselineCapabilitySet": "None", "additionalEnabledCapabilities": list(knownCapabilities(in.HCP, live)...),
		}
		setOrDrop(s, "upstream", spec.UpdateService)
		setOrDrop(s, "channel", spec.Channel)
		delete(s, "desiredUpdate")
	})}, nil
}

// knownCapabilities are those of the hosted cluster that its release knows; all, as long as it doesn't say.
func knownCapabilities(hcp *hyperv1.HostedControlPlane, live map[string]any) []string {
	items, _ := peek(live, "status", "capabilities")["knownCapabilities"].([]any)
	known := map[any]bool{}
	for _, item := range items {
		if name, ok := item.(string); ok {
			known[name] = true
		}
	}
	var all []string
	for _, name := range payload.Capabilities(hcp) {
		if len(known) == 0 || known[name] {
			all = append(all, name)
		}
	}
	return all
}

// minor is the 4.<minor> of a release.
func minor(version string) (int, error) {
	if _, err := release.ParseVersion(version); err != nil {
		return 0, err
	}
	parts := strings.Split(version, ".")
	if len(parts) < 2 {
		return 0, errors.New("the version of the release has no minor part: " + version)
	}
	return strconv.Atoi(parts[1])
}
