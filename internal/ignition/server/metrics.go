package server

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of the server. A nil *Metrics counts nothing.
type Metrics struct {
	requests *prometheus.CounterVec
	refusals *prometheus.CounterVec
	waits    prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ign_server_get_request", Help: "Requests with a good token, by NodePool.",
		}, []string{"nodePool"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hypershift_ignition_refusals_total", Help: "Requests that were refused, by status.",
		}, []string{"status"}),
		waits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hypershift_ignition_delayed_refusals_total", Help: "Refusals that were held back because their source had too many.",
		}),
	}
	r.MustRegister(m.requests, m.refusals, m.waits)
	return m
}

func (m *Metrics) request(nodePool string) {
	if m != nil {
		m.requests.WithLabelValues(nodePool).Inc()
	}
}

func (m *Metrics) refused(status int) {
	if m != nil {
		m.refusals.WithLabelValues(strconv.Itoa(status)).Inc()
	}
}

func (m *Metrics) slowed() {
	if m != nil {
		m.waits.Inc()
	}
}
