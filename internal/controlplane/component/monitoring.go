package component

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/metricsets"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/scraping"
)

// Sets of metrics; everything else counts as metricsTelemetry.
const (
	metricsAll = "All"
	metricsSRE = "SRE"
)

// ConfigMap with the relabellings of metricsSRE, by component.
const (
	sreMetricSet    = "sre-metric-set"
	sreMetricSetKey = "config"
)

// adaptMonitor points a ServiceMonitor or PodMonitor at this control plane, says whose its metrics are, and keeps those of the
// chosen set.
func adaptMonitor(ctx WorkloadContext, name string, obj client.Object) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("it is a %T", obj)
	}
	if err := unstructured.SetNestedStringSlice(u.Object, []string{ctx.HCP.Namespace}, "spec", "namespaceSelector", "matchNames"); err != nil {
		return err
	}
	if chosen := scraping.ParseLabels(ctx.Environment.MonitorLabels); len(chosen) > 0 {
		labels := u.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, chosen)
		u.SetLabels(labels)
	}
	rules, err := metricRelabelings(ctx, name)
	if err != nil {
		return err
	}
	for _, field := range []string{"endpoints", "podMetricsEndpoints"} {
		endpoints, found, err := unstructured.NestedSlice(u.Object, "spec", field)
		if err != nil || !found {
			continue
		}
		for _, e := range endpoints {
			endpoint, ok := e.(map[string]any)
			if !ok {
				return fmt.Errorf("spec.%s holds something that is no endpoint", field)
			}
			id := map[string]any{"action": "replace", "targetLabel": "_id", "replacement": ctx.HCP.Spec.ClusterID}
			relabelings, _ := endpoint["relabelings"].([]any)
			endpoint["relabelings"] = append(relabelings, id)
			endpoint["metricRelabelings"] = append(append([]any{}, rules...), map[string]any{"action": "replace", "targetLabel": "_id", "replacement": ctx.HCP.Spec.ClusterID})
		}
		if err := unstructured.SetNestedSlice(u.Object, endpoints, "spec", field); err != nil {
			return err
		}
	}
	return nil
}

// metricRelabelings select the metrics of a component.
func metricRelabelings(ctx WorkloadContext, name string) ([]any, error) {
	if IsEtcd(name) {
		name = names.Etcd
	}
	r, selected := metricsets.Of[name]
	if !selected {
		return nil, nil
	}
	byName := func(action string, names []string) map[string]any {
		regex := strings.Join(names, "|")
		if !ctx.Release.Kubernetes && len(names) > 1 {
			regex = "(" + regex + ")"
		}
		return map[string]any{"action": action, "sourceLabels": []any{"__name__"}, "regex": regex}
	}
	switch cmp.Or(string(ctx.HCP.Spec.Monitoring.MetricsSet), ctx.MetricsSet) {
	case metricsSRE:
		return sreRelabelings(ctx, r.SRE)
	case metricsAll:
		if !ctx.Release.Kubernetes {
			return payloadDrops(r), nil
		}
		var rules []any
		if len(r.Drop) > 0 {
			rules = append(rules, byName("drop", r.Drop))
		}
		if r.Histogram != "" {
			rules = append(rules, dropBuckets(r.Histogram, strings.ReplaceAll(strings.Join(r.DropBuckets, "|"), ".", `\.`)))
		}
		return rules, nil
	}
	if len(r.Keep) == 0 {
		all := ".*"
		if !ctx.Release.Kubernetes {
			all = "(.*)"
		}
		return []any{byName("drop", []string{all})}, nil
	}
	return []any{byName("keep", r.Keep)}, nil
}

// payloadDrops are what the set All leaves out of a payload's metrics: a rule for each family, as in the published monitors.
func payloadDrops(r metricsets.Rules) []any {
	var rules []any
	for _, family := range append(slices.Clone(r.Drop), r.Deprecated...) {
		rules = append(rules, map[string]any{"action": "drop", "sourceLabels": []any{"__name__"}, "regex": family})
	}
	if r.Histogram != "" {
		rules = append(rules, dropBuckets(r.Histogram, strings.Join(r.DropBuckets, "|")))
	}
	return rules
}

func dropBuckets(histogram, bounds string) map[string]any {
	return map[string]any{"action": "drop", "sourceLabels": []any{"__name__", "le"}, "regex": histogram + ";(" + bounds + ")"}
}

// sreRelabelings are those that the operators of the service chose; without their ConfigMap all metrics are kept.
func sreRelabelings(ctx WorkloadContext, component string) ([]any, error) {
	cm := &corev1.ConfigMap{}
	err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: sreMetricSet}, cm)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", sreMetricSet, err)
	}
	sets := map[string][]any{}
	if err := yaml.Unmarshal([]byte(cm.Data[sreMetricSetKey]), &sets); err != nil {
		return nil, fmt.Errorf("parsing key %s of ConfigMap %s: it must hold a list of relabellings for each component", sreMetricSetKey, sreMetricSet)
	}
	return sets[component], nil
}

// monitored says whether monitors are wanted at all.
func monitored(ctx WorkloadContext) bool {
	_, disabled := ctx.HCP.Annotations[hyperv1.DisableMonitoringServices]
	return !disabled
}
