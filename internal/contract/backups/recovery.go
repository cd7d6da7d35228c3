package backups

// RecoveryAnnotation on the StatefulSet of an etcd is a recovery from one member's data, or a restore in place, that has begun and not ended, as JSON that has a
// Recovery in it. Until it is gone, members must not run but by the command that has written it: some may have data of before.
const RecoveryAnnotation = "etcd.hypershift.openshift.io/quorum-recovery"

// Recovery is what RecoveryAnnotation tells others.
type Recovery struct {
	// From is the pod of the member whose data goes on.
	From string `json:"from"`
	// Snapshot is the URL of what replaces the data; empty: that of From goes on.
	Snapshot string `json:"snapshot,omitempty"`
}
