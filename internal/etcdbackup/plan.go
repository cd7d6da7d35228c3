package etcdbackup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/kube/conditions"
)

// poll is how often a Job that runs, or an etcd that isn't whole, is looked at.
const poll = 10 * time.Second

// maxPoll is how seldom an etcd is looked at that isn't whole for long.
const maxPoll = 5 * time.Minute

// BackupWaitingReason means that a scheduled backup was not started yet because another one is running; it starts by itself when that one has ended.
const BackupWaitingReason = "BackupWaiting"

// maxMessage bounds what of a Job's own words goes into a condition.
const maxMessage = 512

// observed is what a pass has read.
type observed struct {
	backup *hyperv1.HCPEtcdBackup
	now    time.Time
	// siblings are the other HCPEtcdBackups of the control plane.
	siblings []hyperv1.HCPEtcdBackup
	hcp      *hyperv1.HostedControlPlane // nil: there is none
	// etcds are the StatefulSets of the main etcd and of the shards that are saved, by name; nil: there is none.
	etcds map[string]*appsv1.StatefulSet
	// job is this backup's; others are those of the same control plane that have a pod.
	job    *batchv1.Job
	others []batchv1.Job
	// hc is the HostedCluster of the control plane; nil: there is none.
	hc *hyperv1.HostedCluster
	// url is where the Job says that the snapshot is; empty: it hasn't said yet. summary is what else it says; nil: nothing.
	url     string
	summary *bundle.Summary
	// newKeys are keys that the hosted cluster encrypts with, and that the objects in the backup, which were read before the snapshot was taken, may lack.
	newKeys []string
	// said is why the Job failed, in the words of its container; empty: it said nothing.
	said string
	// key is what the backup is sealed with; empty: with nothing. keyErr is why the one that is there is none.
	key    bundle.Key
	keyErr error
	// check is the verification that was asked for.
	check verification
	// secret has the credentials; nil: it isn't there.
	secret *corev1.Secret
	// namespace is the operator's.
	namespace string
	// keep is how many successful backups of a control plane are kept, besides the newest of each schedule.
	keep int
}

// plan is what becomes of a backup.
type plan struct {
	// condition is BackupCompleted; nil: as it was.
	condition *metav1.Condition
	// bubbled is EtcdBackupSucceeded of the HostedControlPlane; nil: as it was.
	bubbled *metav1.Condition
	// succeeded: url is recorded.
	succeeded bool
	// verified is BackupVerified; nil: as it was.
	verified *metav1.Condition
	// start: make the Job and what it needs; verify: make the Job that reads the backup; asked: take away the annotation that asked for it.
	start, verify, asked bool
	// sweep: remove the Secret that the Job was given.
	sweep bool
	// clear: close again what was opened for Jobs.
	clear bool
	// expired are backups that are deleted, for newer ones are there.
	expired []hyperv1.HCPEtcdBackup
	// again is when to look again; 0: never.
	again time.Duration
}

// completed is the condition BackupCompleted, nil when the backup wasn't looked at yet.
func completed(b *hyperv1.HCPEtcdBackup) *metav1.Condition {
	return conditions.Get(b.Status.Conditions, hyperv1.EtcdBackupCompleted)
}

// ended tells a backup with which nothing happens any more.
func ended(b *hyperv1.HCPEtcdBackup) bool {
	c := completed(b)
	return c != nil && (c.Status == metav1.ConditionTrue || c.Reason == hyperv1.BackupFailedReason || c.Reason == hyperv1.BackupRejectedReason)
}

// begun tells a backup whose Job was made.
func begun(b *hyperv1.HCPEtcdBackup) bool {
	c := completed(b)
	return c != nil && c.Reason == hyperv1.BackupInProgressReason
}

func failed(format string, args ...any) plan {
	return plan{condition: ptr.To(conditions.False(hyperv1.EtcdBackupCompleted, hyperv1.BackupFailedReason, fmt.Sprintf(format, args...)))}
}

// planFor decides. It is pure.
func planFor(o observed) plan {
	switch {
	case ended(o.backup):
		return o.verification(plan{clear: o.lastOne(), expired: o.expired(), sweep: true})
	case o.hcp == nil:
		return failed("HostedControlPlane not found in namespace %s", o.backup.Namespace)
	case o.job != nil:
		return o.follow()
	case begun(o.backup):
		// A second Job would overwrite nothing, but the first may have succeeded: nobody knows, and a person should look into the storage.
		return o.told(failed("the Job is gone, and its result is unknown: look for the snapshot in the storage, or create another HCPEtcdBackup"))
	}
	if problem := backups.NameProblem(o.backup.Name); problem != "" {
		return failed("%s", problem)
	}
	if o.hcp.Spec.Etcd.ManagementType == hyperv1.Unmanaged {
		return failed("etcd of HostedControlPlane %s is unmanaged: save it with the tools of whoever runs it", o.hcp.Name)
	}
	if reason := o.unhealthy(); reason != "" {
		return plan{condition: ptr.To(conditions.False(hyperv1.EtcdBackupCompleted, hyperv1.EtcdUnhealthyReason, reason)), again: o.patience()}
	}
	if len(o.others) > 0 {
		return o.busy()
	}
	if problem := storageProblem(o.backup.Spec.Storage); problem != "" {
		return failed("%s", problem)
	}
	if o.secret == nil {
		return failed("credential Secret %q not found in namespace %q", credentials(o.backup.Spec.Storage), o.namespace)
	}
	if o.keyErr != nil {
		return failed("Secret %s/%s: key %s: %v", o.namespace, credentials(o.backup.Spec.Storage), backups.EncryptionKey, o.keyErr)
	}
	if problem := o.accessProblem(); problem != "" {
		return failed("%s", problem)
	}
	if string(o.secret.Data[backups.VolumeKey]) != "" && len(o.key) == 0 {
		return failed("Secret %s/%s names a volume, which anyone with access to it can read: add key %s, with which backups are sealed", o.namespace, credentials(o.backup.Spec.Storage), backups.EncryptionKey)
	}
	return plan{
		start:     true,
		condition: ptr.To(conditions.False(hyperv1.EtcdBackupCompleted, hyperv1.BackupInProgressReason, "Backup Job created, waiting for completion")),
		bubbled: ptr.To(conditions.False(hyperv1.EtcdBackupSucceeded, hyperv1.BackupInProgressReason,
			fmt.Sprintf("Backup %q is in progress", o.backup.Name))),
		again: poll,
	}
}

// busy is what becomes of a backup while the Job of another runs. Nobody is there to create a schedule's again, and its next time may be a week away.
func (o observed) busy() plan {
	const text = "Job %s is making another backup of this control plane: "
	if o.backup.Labels[backups.ScheduleLabel] != "" {
		return plan{again: poll, condition: ptr.To(conditions.False(hyperv1.EtcdBackupCompleted, BackupWaitingReason,
			fmt.Sprintf(text+"this one starts by itself when that Job has ended", o.others[0].Name)))}
	}
	return plan{condition: ptr.To(conditions.False(hyperv1.EtcdBackupCompleted, hyperv1.BackupRejectedReason,
		fmt.Sprintf(text+"delete this HCPEtcdBackup, and create it again when that Job has ended", o.others[0].Name)))}
}

// follow says what the Job came to.
func (o observed) follow() plan {
	done, message := ending(o.job)
	switch {
	case done == batchv1.JobFailed:
		return o.told(failed("Backup Job failed: %s", clipped(cmp.Or(o.said, message))))
	case done == batchv1.JobComplete && o.url == "":
		// Its pod went before it was seen, or could leave no word. Without a URL nobody could restore the backup, and schedules would count on it.
		return o.told(failed("the Job has completed without saying where the snapshot is, and its result is unknown: look for the snapshot in the storage, or create another HCPEtcdBackup"))
	case done == batchv1.JobComplete && len(o.newKeys) > 0:
		return o.told(failed("the key that encrypts data of the hosted cluster changed while the backup was made: the snapshot may hold data that is encrypted with %s, "+
			"which the backup lacks; create another HCPEtcdBackup", clipped(strings.Join(o.newKeys, ", "))))
	case done == batchv1.JobComplete:
		return plan{
			condition: ptr.To(conditions.True(hyperv1.EtcdBackupCompleted, hyperv1.BackupSucceededReason, "Backup completed successfully"+o.leftOut())),
			bubbled: ptr.To(conditions.True(hyperv1.EtcdBackupSucceeded, hyperv1.BackupSucceededReason,
				fmt.Sprintf("Backup %q completed successfully", o.backup.Name))),
			verified:  o.readBack(),
			succeeded: true, again: time.Second, // the next pass clears up
		}
	}
	// A Job that was made before this operator was killed is told of, too.
	return plan{
		condition: ptr.To(conditions.False(hyperv1.EtcdBackupCompleted, hyperv1.BackupInProgressReason, "Backup Job created, waiting for completion")),
		bubbled: ptr.To(conditions.False(hyperv1.EtcdBackupSucceeded, hyperv1.BackupInProgressReason,
			fmt.Sprintf("Backup %q is in progress", o.backup.Name))),
		again: poll,
	}
}

// leftOut says what the backup had no room for.
func (o observed) leftOut() string {
	if what := o.job.Annotations[annotationLeftOut]; what != "" {
		return ", without " + what + ", for which there was no room"
	}
	return ""
}

// unstarted is what becomes of a backup that can't be started. What was opened for it is closed by the next pass.
func (o observed) unstarted(err error) plan {
	return o.told(failed("the backup can't be started: %s; create another HCPEtcdBackup when that has been changed", clipped(err.Error())))
}

// told adds a failure to the conditions of the control plane; the next pass clears up.
func (o observed) told(p plan) plan {
	p.bubbled = ptr.To(conditions.False(hyperv1.EtcdBackupSucceeded, hyperv1.BackupFailedReason, fmt.Sprintf("Backup %q failed: %s", o.backup.Name, p.condition.Message)))
	p.again = time.Second
	return p
}

// readBack says whether the Job has read what it wrote; nil: it says nothing.
func (o observed) readBack() *metav1.Condition {
	switch {
	case o.summary == nil:
		return nil
	case o.summary.Verified:
		return ptr.To(conditions.True(hyperv1.EtcdBackupVerified, hyperv1.BackupReadBackReason, described(*o.summary)))
	}
	return ptr.To(conditions.New(hyperv1.EtcdBackupVerified, metav1.ConditionUnknown, hyperv1.BackupNotReadBackReason, described(*o.summary)))
}

// described is a summary for people.
func described(s bundle.Summary) string {
	text := fmt.Sprintf("revision %d, %d keys, %d bytes of etcd", s.Revision, s.Keys, s.Bytes)
	if len(s.Shards) > 0 {
		text += ", with its shards " + clipped(strings.Join(s.Shards, ", "))
	}
	if s.Key == "" {
		text += ", not sealed, without the objects of the cluster: Secret of the storage has no key " + backups.EncryptionKey
	} else {
		text += ", sealed with key " + s.Key
	}
	if s.Note != "" {
		text += "; " + clipped(s.Note)
	}
	return text
}

// keyOf is the key in a Secret of a storage; nil when there is none.
func keyOf(s *corev1.Secret) (bundle.Key, error) {
	if s == nil || len(s.Data[backups.EncryptionKey]) == 0 {
		return nil, nil
	}
	return bundle.ParseKey(s.Data[backups.EncryptionKey])
}

// ending is how a Job ended: Complete, Failed with the reason, or neither.
func ending(job *batchv1.Job) (batchv1.JobConditionType, string) {
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c.Type, c.Message
		}
	}
	return "", ""
}

// unhealthy says what is wrong with the etcds that should be saved; empty: nothing.
func (o observed) unhealthy() string {
	for _, name := range backups.EtcdsOf(o.shards()) {
		etcd := o.etcds[name]
		if etcd == nil {
			return name + " StatefulSet not found"
		}
		want := ptr.Deref(etcd.Spec.Replicas, 1)
		if want == 0 {
			return name + " StatefulSet has no members: the cluster sleeps, or its etcd is being restored"
		}
		if etcd.Status.ReadyReplicas < want {
			return fmt.Sprintf("%s StatefulSet not fully ready: %d/%d replicas ready", name, etcd.Status.ReadyReplicas, want)
		}
	}
	return ""
}

// patience is when to look again at an etcd that isn't whole: the longer it isn't, the later. That of a cluster that sleeps is looked at all night.
func (o observed) patience() time.Duration {
	c := completed(o.backup)
	if c == nil || c.Reason != hyperv1.EtcdUnhealthyReason {
		return poll
	}
	return min(max(o.now.Sub(sinceOf(c))/4, poll), maxPoll)
}

// shards are those that the backup holds, sorted.
func (o observed) shards() []string {
	if o.hcp == nil {
		return nil
	}
	saved, _ := backups.ShardsOf(o.hcp.Spec.Etcd)
	return saved
}

// storageProblem says why there is no way to a storage; empty: there is.
func storageProblem(s hyperv1.HCPEtcdBackupStorage) string {
	switch {
	case s.StorageType == hyperv1.S3BackupStorage && s.S3 != nil && s.AzureBlob == nil:
		return ""
	case s.StorageType == hyperv1.AzureBlobBackupStorage && s.AzureBlob != nil && s.S3 == nil:
		return ""
	}
	return "unsupported storage type: " + clipped(string(s.StorageType))
}

// credentials is the name of the Secret of a storage.
func credentials(s hyperv1.HCPEtcdBackupStorage) string {
	switch {
	case s.S3 != nil:
		return s.S3.Credentials.Name
	case s.AzureBlob != nil:
		return s.AzureBlob.Credentials.Name
	}
	return ""
}

// lastOne tells that no other backup of the control plane needs what was opened, nor the Job of one that was deleted.
func (o observed) lastOne() bool {
	return len(o.others) == 0 && !slices.ContainsFunc(o.siblings, func(b hyperv1.HCPEtcdBackup) bool { return !ended(&b) })
}

// expired are the oldest successful backups beyond those that are kept. The newest of each schedule stays and doesn't count: by it the schedule knows when it last made
// one, and what to verify. What they wrote stays in the storage, whose rules decide how long.
func (o observed) expired() []hyperv1.HCPEtcdBackup {
	var good []hyperv1.HCPEtcdBackup
	for _, b := range append(slices.Clone(o.siblings), *o.backup) {
		if c := completed(&b); c != nil && c.Status == metav1.ConditionTrue && b.DeletionTimestamp.IsZero() {
			good = append(good, b)
		}
	}
	slices.SortFunc(good, func(a, b hyperv1.HCPEtcdBackup) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	newest := map[string]string{} // by schedule
	for _, b := range good {
		newest[b.Labels[backups.ScheduleLabel]] = b.Name
	}
	good = slices.DeleteFunc(good, func(b hyperv1.HCPEtcdBackup) bool {
		schedule := b.Labels[backups.ScheduleLabel]
		return schedule != "" && newest[schedule] == b.Name
	})
	return good[:max(0, len(good)-o.keep)]
}

// clipped is what somebody else said, on one line and not too long.
func clipped(s string) string {
	return clip.Over(strings.Join(strings.Fields(s), " "), maxMessage, " …")
}
