package etcdbackup

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/kube/conditions"
)

// Metrics are of backups as this operator saw them end. A nil Metrics counts nothing.
type Metrics struct {
	success, size, unreadable, next *prometheus.GaugeVec
	duration                        *prometheus.HistogramVec

	mu     sync.Mutex
	newest map[string]time.Time // by namespace, when the newest success was that success tells of
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		success: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "hypershift_etcd_backup_last_success_timestamp_seconds",
			Help: "When the newest successful backup of a control plane's etcd ended."}, []string{"namespace"}),
		size: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "hypershift_etcd_backup_size_bytes",
			Help: "How large the newest snapshot of a control plane's etcd is in the storage."}, []string{"namespace"}),
		unreadable: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "hypershift_etcd_backup_unreadable",
			Help: "1 when the newest backup of a control plane could not be read, or not be restored as a test."}, []string{"namespace"}),
		next: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "hypershift_etcd_backup_due_timestamp_seconds",
			Help: "When the first backup after the newest success of a schedule is to be made, or should have been."}, []string{"namespace", "schedule"}),
		newest: map[string]time.Time{},
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "hypershift_etcd_backup_duration_seconds",
			Help: "How long backups took from their creation.", Buckets: []float64{5, 15, 30, 60, 120, 300, 600, 900, 1800}}, []string{"result"}),
	}
	for _, c := range []prometheus.Collector{m.success, m.size, m.unreadable, m.next, m.duration} {
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
}

// seen tells of a backup that has ended, also of one that did before this operator started.
func (m *Metrics) seen(b *hyperv1.HCPEtcdBackup) {
	if m == nil {
		return
	}
	if c := completed(b); c != nil && c.Status == metav1.ConditionTrue {
		m.mu.Lock()
		newest := !sinceOf(c).Before(m.newest[b.Namespace])
		if newest {
			m.newest[b.Namespace] = sinceOf(c)
		}
		m.mu.Unlock()
		if newest {
			m.success.WithLabelValues(b.Namespace).Set(float64(sinceOf(c).Unix()))
			s := bundle.Summary{}
			if json.Unmarshal([]byte(b.Annotations[backups.SummaryAnnotation]), &s) == nil {
				m.size.WithLabelValues(b.Namespace).Set(float64(s.Stored))
			}
			unreadable := 0.0
			if v := conditions.Get(b.Status.Conditions, hyperv1.EtcdBackupVerified); v != nil && v.Status == metav1.ConditionFalse {
				unreadable = 1
			}
			m.unreadable.WithLabelValues(b.Namespace).Set(unreadable)
		}
	}
}

// due tells when the next backup of a schedule is to be made, or should have been.
func (m *Metrics) due(b *hyperv1.HCPEtcdBackup, at time.Time) {
	if m == nil || at.IsZero() {
		return
	}
	m.next.WithLabelValues(b.Namespace, b.Name).Set(float64(at.Unix()))
}

// gone forgets a schedule that was deleted. Of a control plane that was deleted, nothing is told any more.
func (m *Metrics) gone(namespace, name string, last bool) {
	if m == nil {
		return
	}
	m.next.DeleteLabelValues(namespace, name)
	if last {
		m.success.DeleteLabelValues(namespace)
		m.size.DeleteLabelValues(namespace)
		m.unreadable.DeleteLabelValues(namespace)
		m.mu.Lock()
		delete(m.newest, namespace)
		m.mu.Unlock()
	}
}
