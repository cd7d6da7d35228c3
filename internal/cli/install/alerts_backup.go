package install

import "fmt"

// backupLate is how long after its time a scheduled backup may end, in seconds: a Job has a quarter of an hour, and is tried again the next time.
const backupLate = 3600

// backupAlerts are about what was saved of hosted clusters, and what should have been.
func backupAlerts() []any {
	return []any{
		alert("HyperShiftBackupOverdue", fmt.Sprintf(`time() - max by (namespace, schedule) (hypershift_etcd_backup_due_timestamp_seconds) > %d`, backupLate), "5m", warning,
			"The control plane in namespace {{ $labels.namespace }} was not saved when schedule {{ $labels.schedule }} wanted it",
			"What became of its backups: kubectl get hcpetcdbackups --namespace {{ $labels.namespace }}"),
		alert("HyperShiftBackupUnreadable", `max by (namespace) (hypershift_etcd_backup_unreadable) > 0`, "5m", critical,
			"The newest backup of the control plane in namespace {{ $labels.namespace }} can't be restored",
			"Make another one, and find out what became of this one: kubectl describe hcpetcdbackups --namespace {{ $labels.namespace }}"),
	}
}
