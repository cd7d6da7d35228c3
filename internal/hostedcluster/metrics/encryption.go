package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
)

var (
	encryptionFailures = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "hypershift_encryption_migration_failures_total",
		Help: "How often data of hosted clusters could not be written again with a new encryption key, since this operator runs.",
	})
	encryptionDuration = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "hypershift_encryption_migration_duration_seconds",
		Help:    "How long changes of encryption keys took, until all data was encrypted with the new one.",
		Buckets: []float64{60, 120, 300, 600, 900, 1800, 3600, 7200, 14400},
	})
)

// encryptionFailing is the state of a change of key whose data can't be written again.
const encryptionFailing = "Failing"

// encryptionState is that of the change of key that is under way; empty when none is.
func encryptionState(hc *hyperv1.HostedCluster) string {
	s := hc.Status.SecretEncryption
	if s.TargetKey.Provider == "" || len(s.History) == 0 {
		return ""
	}
	if fails(hc) {
		return encryptionFailing
	}
	return string(s.History[0].State)
}

func fails(hc *hyperv1.HostedCluster) bool {
	c := conditions.Get(hc.Status.Conditions, hyperv1.EtcdDataEncryptionUpToDate)
	return c != nil && c.Reason == hyperv1.ReEncryptionFailedReason
}

// observeEncryption counts changes of key that failed or ended between two states of a hosted cluster.
func observeEncryption(before, after *hyperv1.HostedCluster) {
	if fails(after) && !fails(before) {
		encryptionFailures.Inc()
	}
	if seconds, ended := migrated(before, after); ended {
		encryptionDuration.Observe(seconds)
	}
}

// migrated says whether the newest change of key ended well between two states, and how long it took.
func migrated(before, after *hyperv1.HostedCluster) (seconds float64, ended bool) {
	was, is := before.Status.SecretEncryption.History, after.Status.SecretEncryption.History
	if len(was) == 0 || len(is) == 0 || was[0].To != is[0].To || !was[0].StartedTime.Equal(&is[0].StartedTime) {
		return 0, false
	}
	if was[0].State == hyperv1.EncryptionMigrationCompleted || is[0].State != hyperv1.EncryptionMigrationCompleted {
		return 0, false
	}
	return is[0].CompletionTime.Sub(is[0].StartedTime.Time).Seconds(), true
}
