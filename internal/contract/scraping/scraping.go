// Package scraping is how install, the hypershift-operator and control-plane-operators tell each other of the Prometheus that asks for metrics.
package scraping

import (
	"maps"
	"slices"
	"strings"
)

// Variables of the operators' environment.
const (
	// EnvNamespace is the namespace of the Prometheus that asks; empty: that of an OpenShift management cluster.
	EnvNamespace = "PROMETHEUS_NAMESPACE"
	// EnvLabels are labels of monitors, as FormatLabels writes them.
	EnvLabels = "MONITOR_LABELS"
)

// FormatLabels writes labels as key=value,…, sorted.
func FormatLabels(labels map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, key+"="+labels[key])
	}
	return strings.Join(parts, ",")
}

// ParseLabels reads what FormatLabels wrote. Parts without = are left out; install checks what people write.
func ParseLabels(text string) map[string]string {
	labels := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		if key, value, ok := strings.Cut(part, "="); ok {
			labels[key] = value
		}
	}
	return labels
}
