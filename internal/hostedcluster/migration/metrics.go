package migration

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
)

var (
	moved = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "hypershift_private_capi_migrated_hosted_clusters_total", Help: "Hosted clusters whose objects of Cluster API were moved to HyperShift's own groups.",
	})
	duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "hypershift_private_capi_migration_duration_seconds", Help: "How long moves took, by the number of machines.",
		Buckets: []float64{60, 120, 300, 600, 900, 1800},
	}, []string{"cluster_size"})
	suspended = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "hypershift_private_capi_migration_degraded_window_seconds", Help: "How long hosted clusters could neither scale nor heal while they were moved.",
		Buckets: []float64{10, 20, 30, 60, 120, 300, 600},
	})
)

// Gauges, whatever their names say: dashboards know them.
var (
	pendingDesc = prometheus.NewDesc("hypershift_private_capi_pending_hosted_clusters_total", "Hosted clusters whose objects of Cluster API are in the standard groups.", nil, nil)
	failedDesc  = prometheus.NewDesc("hypershift_private_capi_migration_failed_hosted_clusters_total",
		"Hosted clusters whose move was rolled back, until it is requested again.", []string{"failure_reason"}, nil)
	startedDesc = prometheus.NewDesc("hypershift_private_capi_migration_start_time", "When the move of a hosted cluster began, in seconds since 1970, while it goes on.",
		[]string{"namespace", "name"}, nil)
)

// gauges implements prometheus.Collector.
type gauges struct{ reader client.Reader }

// Describe implements prometheus.Collector.
func (gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{pendingDesc, failedDesc, startedDesc} {
		ch <- d
	}
}

// listTimeout bounds a read of the cache, which answers at once unless the process is starting.
const listTimeout = 5 * time.Second

// Collect implements prometheus.Collector. What cannot be read is left out.
func (g gauges) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout) // Prometheus hands none on
	defer cancel()
	clusters := &hyperv1.HostedClusterList{}
	if g.reader.List(ctx, clusters) != nil {
		return
	}
	pending, failed := 0, map[Reason]int{}
	for i := range clusters.Items {
		hc := &clusters.Items[i]
		a := hc.Annotations
		if a[hyperv1.HostedClusterScopeAnnotation] == hyperv1.LegacyScope {
			pending++
		}
		if Failed(hc) {
			failed[known(Reason(a[hyperv1.PrivateCAPIMigrationFailedAnnotation]))]++
		}
		c := conditions.Get(hc.Status.Conditions, hyperv1.PrivateCAPIMigrationProgressing)
		if c != nil && c.Status == metav1.ConditionTrue && a[hyperv1.PrivateCAPIMigrationInProgressAnnotation] == "true" {
			ch <- prometheus.MustNewConstMetric(startedDesc, prometheus.GaugeValue, float64(c.LastTransitionTime.Unix()), hc.Namespace, hc.Name)
		}
	}
	ch <- prometheus.MustNewConstMetric(pendingDesc, prometheus.GaugeValue, float64(pending))
	for reason, n := range failed {
		ch <- prometheus.MustNewConstMetric(failedDesc, prometheus.GaugeValue, float64(n), string(reason))
	}
}

// known keeps what a person wrote into an annotation from being a label.
func known(r Reason) Reason {
	all := []Reason{ReasonQuiesce, ReasonScaleDown, ReasonConversion, ReasonConflict, ReasonStatus, ReasonRepoint, ReasonMismatch, ReasonWorkload, ReasonConcurrent, ReasonInternal}
	if slices.Contains(all, r) {
		return r
	}
	return "other"
}

// Register adds the package's metrics to a registry. reader should be a cache.
func Register(r prometheus.Registerer, reader client.Reader) error {
	for _, c := range []prometheus.Collector{moved, duration, suspended, gauges{reader}} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// size of a hosted cluster, by the number of its machines.
func size(machines int) string {
	switch {
	case machines <= 10:
		return "small"
	case machines <= 100:
		return "medium"
	}
	return "large"
}

func observeEnd(_ *hyperv1.HostedCluster, j Journal, now time.Time) {
	if j.Phase != Completed {
		return
	}
	if j.Direction == Forward {
		moved.Inc()
	}
	duration.WithLabelValues(size(j.Machines)).Observe(now.Sub(j.Started).Seconds())
	if w := j.window(); w > 0 {
		suspended.Observe(w.Seconds())
	}
}
