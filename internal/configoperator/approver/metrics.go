package approver

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	pendingDesc = prometheus.NewDesc("hypershift_node_certificate_requests_pending",
		"Requests of nodes for certificates that match no machine yet, or that a person has to decide on.", []string{"namespace"}, nil)
	oldestDesc = prometheus.NewDesc("hypershift_node_certificate_requests_oldest_timestamp_seconds",
		"When the oldest request of a node for a certificate was made that is not decided on; no series when there is none.", []string{"namespace"}, nil)
)

// Pending tells how many requests wait. Its series are two, whatever a tenant asks for. The zero value is not for use; see NewPending.
type Pending struct {
	namespace string

	mu     sync.Mutex
	known  bool
	count  int
	oldest time.Time
}

// NewPending is that of the control plane in a namespace.
func NewPending(namespace string) *Pending { return &Pending{namespace: namespace} }

// set notes what a whole look at the requests has found. A nil Pending is told nothing.
func (p *Pending) set(count int, oldest time.Time) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known, p.count, p.oldest = true, count, oldest
}

// Describe implements prometheus.Collector.
func (p *Pending) Describe(ch chan<- *prometheus.Desc) { ch <- pendingDesc; ch <- oldestDesc }

// Collect implements prometheus.Collector. A process that has looked at no requests shows nothing.
func (p *Pending) Collect(ch chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.known {
		return
	}
	ch <- prometheus.MustNewConstMetric(pendingDesc, prometheus.GaugeValue, float64(p.count), p.namespace)
	if !p.oldest.IsZero() {
		ch <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, float64(p.oldest.Unix()), p.namespace)
	}
}
