package admission

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capacity"
)

// What this process knows of the queue and its objects don't say; how long each waits is in internal/hostedcluster/metrics, which reads
// conditions. A process that doesn't lead decides nothing and shows nothing.
var (
	capacityMissing = prometheus.NewDesc("hypershift_cluster_capacity_missing",
		"Resources that the nodes lack for the control plane of a hosted cluster that waits for room, and for all that are ahead of it.",
		[]string{"namespace", "name", "_id", "resource", "unit"}, nil)
	admissions = prometheus.NewDesc("hypershift_control_plane_admissions_total",
		"Decisions about the start of control planes: Admitted, Waiting (put in the queue for want of room) or CapacityGrows (started without room, as nodes are added).",
		[]string{"decision"}, nil)
)

// decisions are the values of the label decision by the reason of condition ControlPlaneAdmitted.
var decisions = map[string]string{
	hyperv1.AsExpectedReason: "Admitted", hyperv1.WaitingForCapacityReason: "Waiting", hyperv1.CapacityGrowsReason: "CapacityGrows",
}

var _ prometheus.Collector = (*Queue)(nil)

// count counts a decision. The caller holds the lock.
func (q *Queue) count(reason string) {
	if q.decided == nil {
		q.decided = map[string]float64{}
	}
	q.decided[decisions[reason]]++
}

// Register adds the metrics to those of the process.
func (q *Queue) Register(r prometheus.Registerer) error {
	if q == nil {
		return nil
	}
	if err := r.Register(q); err != nil && !errors.As(err, &prometheus.AlreadyRegisteredError{}) { // by another operator of a test
		return fmt.Errorf("registering metrics of capacity: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (q *Queue) Describe(ch chan<- *prometheus.Desc) {
	ch <- capacityMissing
	ch <- admissions
}

// Collect implements prometheus.Collector.
func (q *Queue) Collect(ch chan<- prometheus.Metric) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for decision, n := range q.decided {
		ch <- prometheus.MustNewConstMetric(admissions, prometheus.CounterValue, n, decision)
	}
	for _, w := range q.waiting {
		for _, m := range baseUnits(w.missing) {
			ch <- prometheus.MustNewConstMetric(capacityMissing, prometheus.GaugeValue, m.value, w.key.Namespace, w.key.Name, w.clusterID, m.resource, m.unit)
		}
	}
}

type baseAmount struct {
	resource, unit string
	value          float64
}

// baseUnits are amounts as kube-state-metrics names and counts them, so that they can be compared with its series.
func baseUnits(amounts capacity.Amounts) (out []baseAmount) {
	for name, n := range amounts {
		m := baseAmount{string(name), "integer", float64(n)}
		switch name {
		case corev1.ResourceCPU:
			m.unit, m.value = "core", float64(n)/1000
		case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			m.unit = "byte"
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b baseAmount) int { return cmp.Compare(a.resource, b.resource) })
	return out
}
