package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// listTimeout bounds a read of the cache, which answers at once unless the process is starting.
const listTimeout = 5 * time.Second

// Collector implements prometheus.Collector.
type Collector struct {
	reader client.Reader // cached
	clock  clock.PassiveClock
}

// NewCollector reads HostedClusters and NodePools from reader, which should be a cache.
func NewCollector(reader client.Reader, clk clock.PassiveClock) *Collector {
	return &Collector{reader, clk}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range all {
		ch <- m.desc
	}
}

// Collect implements prometheus.Collector. What cannot be read is left out.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout) // Prometheus hands none on
	defer cancel()
	clusters, pools := &hyperv1.HostedClusterList{}, &hyperv1.NodePoolList{}
	if c.reader.List(ctx, clusters) != nil || c.reader.List(ctx, pools) != nil {
		return
	}
	for _, s := range samples(clusters.Items, pools.Items, c.clock.Now()) {
		ch <- prometheus.MustNewConstMetric(s.metric.desc, prometheus.GaugeValue, s.value, s.labels...)
	}
}

// metric is a family of gauges.
type metric struct{ desc *prometheus.Desc }

// all families of this package.
var all []*metric

func newMetric(name, help string, labels ...string) *metric {
	m := &metric{prometheus.NewDesc(name, help, labels, nil)}
	all = append(all, m)
	return m
}

// sample is one value of a family.
type sample struct {
	metric *metric
	value  float64
	labels []string
}

// identity are the labels by which a hosted cluster is known.
var identity = []string{"namespace", "name", "_id"}

func with(labels []string, more ...string) []string {
	return append(append([]string{}, labels...), more...)
}
