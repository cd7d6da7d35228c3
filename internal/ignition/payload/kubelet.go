package payload

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/contract/nodeconfig"
)

// kubeletConfig renders the KubeletConfiguration: ours, then what a ContainerRuntimeConfig asks of the kubelet, then the
// KubeletConfig.
func kubeletConfig(in Inputs, user *nodeconfig.Config) ([]byte, error) {
	fields := map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": kubeletCAPath},
		},
		"authorization":            map[string]any{"mode": "Webhook"},
		"readOnlyPort":             0,
		"rotateCertificates":       true,
		"serverTLSBootstrap":       true,
		"clusterDNS":               []string{in.ClusterDNS},
		"clusterDomain":            in.ClusterDomain,
		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"staticPodPath":            manifestsDir,
		"volumePluginDir":          volumePluginDir,
		"cgroupDriver":             "systemd",
		"failSwapOn":               false,
		"serializeImagePulls":      false,
	}
	if in.Nested {
		maps.Copy(fields, nestedKubelet())
	}
	if taints := taintsOf(in.Taints); len(taints) > 0 {
		fields["registerWithTaints"] = taints
	}
	if r := user.Runtime; r != nil {
		if r.PidsLimit != nil {
			fields["podPidsLimit"] = *r.PidsLimit
		}
		if r.LogSizeMax != nil {
			fields["containerLogMaxSize"] = r.LogSizeMax.String()
		}
	}
	if user.Kubelet != nil {
		for name, raw := range user.Kubelet.Fields {
			fields[name] = raw
		}
	}
	data, err := yaml.Marshal(fields) // sorted by name
	if err != nil {
		return nil, fmt.Errorf("encoding the kubelet's configuration: %w", err)
	}
	return data, nil
}

// nestedKubelet is what differs in a container: systemd is not there, the kubelet outside limits what is used in all, and the disk is shared
// with everybody, so that its being nearly full must not evict a small cluster's pods. Pods have control groups as on any node, below those of
// the container: without them, a kubelet dies as soon as somebody resizes a pod.
func nestedKubelet() map[string]any {
	return map[string]any{
		"cgroupDriver":           "cgroupfs",
		"enforceNodeAllocatable": []string{},
		// The machine may have version 1 control groups, which the kubelet refuses by default.
		"failCgroupV1": false,
		// The chains are for what kube-proxy no longer needs.
		"makeIPTablesUtilChains":      false,
		"evictionHard":                map[string]string{"memory.available": "100Mi", "nodefs.available": "1Gi", "imagefs.available": "1Gi"},
		"imageGCHighThresholdPercent": 100,
		"registryPullQPS":             0,
		"eventRecordQPS":              0,
	}
}

// taintsOf drops times, which a taint from a specification has no business with, and sorts.
func taintsOf(taints []corev1.Taint) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range taints {
		out = append(out, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
	}
	slices.SortFunc(out, func(a, b corev1.Taint) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Effect, b.Effect))
	})
	return out
}

// labelFlag renders the labels that a kubelet may give to its own node. It refuses to start with others, and the API server would
// refuse them too, so those are for somebody else to set.
func labelFlag(labels map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		value := labels[key]
		if SelfLabel(key) && len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0 {
			pairs = append(pairs, key+"="+value)
		}
	}
	return strings.Join(pairs, ",")
}

// kubeletLabels of kubernetes.io and k8s.io that a kubelet may set.
var kubeletLabels = []string{
	corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
	corev1.LabelInstanceType, corev1.LabelInstanceTypeStable, corev1.LabelOSStable, corev1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
}

// SelfLabel reports whether a kubelet may set the label on its own node. Others have to be set by a controller of the hosted cluster.
func SelfLabel(key string) bool {
	namespace, _, qualified := strings.Cut(key, "/")
	if !qualified || !(under(namespace, "kubernetes.io") || under(namespace, "k8s.io")) {
		return true
	}
	return under(namespace, "kubelet.kubernetes.io") || under(namespace, "node.kubernetes.io") || slices.Contains(kubeletLabels, key)
}

func under(namespace, domain string) bool {
	return namespace == domain || strings.HasSuffix(namespace, "."+domain)
}
