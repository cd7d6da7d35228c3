package ignition

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of the reconciler. A nil *Metrics counts nothing.
type Metrics struct {
	rotations, hits, misses prometheus.Counter
	seconds                 prometheus.Histogram
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		r.MustRegister(c)
		return c
	}
	m := &Metrics{
		rotations: counter("ign_server_token_rotation_total", "Tokens that were replaced."),
		hits:      counter("ign_server_payload_cache_total", "Payloads that were already made."),
		misses:    counter("ign_server_payload_cache_miss_total", "Payloads that had to be made."),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ign_server_payload_generation_seconds", Help: "Time to make a payload.", Buckets: []float64{5, 15, 30, 45, 60},
		}),
	}
	r.MustRegister(m.seconds)
	return m
}

func (m *Metrics) rotated() {
	if m != nil {
		m.rotations.Inc()
	}
}

func (m *Metrics) hit() {
	if m != nil {
		m.hits.Inc()
	}
}

func (m *Metrics) missed() {
	if m != nil {
		m.misses.Inc()
	}
}

func (m *Metrics) generated(d time.Duration) {
	if m != nil {
		m.seconds.Observe(d.Seconds())
	}
}
