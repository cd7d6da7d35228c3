package alerts

import "maps"

// backupCases are those of the alerts about backups. Times are seconds since the first sample.
var backupCases = map[string]map[string]played{
	"HyperShiftBackupOverdue": {
		"one of two schedules has had no success for more than an hour": {[]string{
			`hypershift_etcd_backup_due_timestamp_seconds{namespace="clusters-demo",schedule="daily",pod="a"} 600x90`,
			`hypershift_etcd_backup_due_timestamp_seconds{namespace="clusters-demo",schedule="weekly",pod="a"} 600000x90`,
		}, 80 * minute, []string{`{namespace="clusters-demo", schedule="daily"}`}},
		"it succeeds in time":   {[]string{`hypershift_etcd_backup_due_timestamp_seconds{namespace="clusters-demo",schedule="daily",pod="a"} 600x40 90000x50`}, 80 * minute, nil},
		"its time has not come": {[]string{`hypershift_etcd_backup_due_timestamp_seconds{namespace="clusters-demo",schedule="daily",pod="a"} 90000x90`}, 80 * minute, nil},
	},
	"HyperShiftBackupUnreadable": {
		"the newest can't be restored": {[]string{`hypershift_etcd_backup_unreadable{namespace="clusters-demo",pod="a"} 0 1x10`}, 8 * minute, []string{`{namespace="clusters-demo"}`}},
		"a newer one can":              {[]string{`hypershift_etcd_backup_unreadable{namespace="clusters-demo",pod="a"} 1x3 0x10`}, 8 * minute, nil},
	},
}

var _ = func() bool { maps.Copy(cases, backupCases); return true }()
