package fleet

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/sizing"
)

// listTimeout bounds reading from the cache for Prometheus, which waits for it.
const listTimeout = 5 * time.Second

// Metrics are of sizes. A nil Metrics counts nothing.
type Metrics struct {
	reader      client.Reader
	clock       clock.PassiveClock
	transitions *prometheus.CounterVec
	clusters    *prometheus.Desc
	pending     *prometheus.Desc
	perZone     *prometheus.Desc
}

// NewMetrics makes the metrics, which read from a cache.
func NewMetrics(reader client.Reader, clk clock.PassiveClock) *Metrics {
	return &Metrics{
		reader: reader, clock: clk,
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hypershift_cluster_size_transitions_total",
			Help: "Changes of the sizes of hosted clusters that this operator made; from is empty for the first size of a cluster."}, []string{"from", "to"}),
		clusters: prometheus.NewDesc("hypershift_cluster_size", "How many hosted clusters have a size.", []string{"size"}, nil),
		pending: prometheus.NewDesc("hypershift_cluster_size_transition_pending_seconds",
			"How long the hosted cluster that has waited longest for another size has done so, by what it waits for.", []string{"reason"}, nil),
		perZone: prometheus.NewDesc("hypershift_control_plane_nodes_per_zone",
			"How many nodes each zone needs for what doesn't serve requests of hosted clusters, as management.nonRequestServingNodesPerZone of their sizes says; absent where sizes don't.", nil, nil),
	}
}

func (m *Metrics) changed(from, to string) {
	if m != nil {
		m.transitions.WithLabelValues(from, to).Inc()
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	m.transitions.Describe(ch)
	ch <- m.clusters
	ch <- m.pending
	ch <- m.perZone
}

// Collect implements prometheus.Collector. What cannot be read is left out.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.transitions.Collect(ch)
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout) // Prometheus hands none on
	defer cancel()
	list := &hyperv1.HostedClusterList{}
	if m.reader.List(ctx, list) != nil {
		return
	}
	has := make([]string, 0, len(list.Items))
	sizes, waits, now := map[string]int{}, map[string]time.Duration{}, m.clock.Now()
	for i := range list.Items {
		has = append(has, list.Items[i].Labels[hyperv1.HostedClusterSizeLabel])
		status := list.Items[i].Status.Conditions
		if c := conditions.Get(status, hyperv1.ClusterSizeComputed); c != nil && c.Status == "True" {
			sizes[c.Reason]++
		}
		if c := conditions.Get(status, hyperv1.ClusterSizeTransitionPending); c != nil && c.Status == "True" {
			waits[c.Reason] = max(waits[c.Reason], now.Sub(c.LastTransitionTime.Time))
		}
	}
	for size, n := range sizes {
		ch <- prometheus.MustNewConstMetric(m.clusters, prometheus.GaugeValue, float64(n), size)
	}
	for reason, longest := range waits {
		ch <- prometheus.MustNewConstMetric(m.pending, prometheus.GaugeValue, longest.Seconds(), reason)
	}
	if spec, ok, err := configuration(ctx, m.reader); err == nil && ok {
		if nodes, ok := sizing.NodesPerZone(spec, has); ok {
			ch <- prometheus.MustNewConstMetric(m.perZone, prometheus.GaugeValue, float64(nodes))
		}
	}
}
