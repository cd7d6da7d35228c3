package etcdbackup

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Metrics are of backups as this operator saw them end. A nil Metrics counts nothing.
type Metrics struct {
	success  *prometheus.GaugeVec
	duration *prometheus.HistogramVec
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		success: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "hypershift_etcd_backup_last_success_timestamp_seconds",
			Help: "When the newest successful backup of a control plane's etcd ended, since this operator runs."}, []string{"namespace"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "hypershift_etcd_backup_duration_seconds",
			Help: "How long backups took from their creation.", Buckets: []float64{5, 15, 30, 60, 120, 300, 600, 900, 1800}}, []string{"result"}),
	}
	for _, c := range []prometheus.Collector{m.success, m.duration} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metrics) ended(o observed, p plan, now time.Time) {
	if m == nil || !ended(o.backup) || p.condition == nil {
		return
	}
	m.duration.WithLabelValues(p.condition.Reason).Observe(now.Sub(o.backup.CreationTimestamp.Time).Seconds())
	if p.condition.Reason == hyperv1.BackupSucceededReason {
		m.success.WithLabelValues(o.backup.Namespace).Set(float64(now.Unix()))
	}
}
