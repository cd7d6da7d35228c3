package migration

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
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

// Register adds the package's metrics to a registry.
func Register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{moved, duration, suspended} {
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
