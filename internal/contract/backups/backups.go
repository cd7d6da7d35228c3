// Package backups is what the programs agree on that save hosted clusters and restore them: keys of Secrets, annotations, places in pods.
package backups

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Secret is in the namespace of a control plane while etcd is restored from s3://…: how to read the snapshot. Its keys are below.
const Secret = "etcd-restore"

// Keys of that Secret, and of the one that spec.storage.s3.credentials of an HCPEtcdBackup names in the operator's namespace.
const (
	// CredentialsKey is a shared credentials file of AWS, whose profile default may name an endpoint_url.
	CredentialsKey = "credentials"
	// RegionKey is the region of the bucket; us-east-1 unless given.
	RegionKey = "region"
	// CABundleKey is what the endpoint is trusted by, in PEM; the system's certificates unless given.
	CABundleKey = "ca-bundle.crt"
	// EncryptionKey is the key that the backup is sealed with; not needed for one that isn't.
	EncryptionKey = "encryption-key"
	// VolumeKey is the name of a claim of the operator's namespace that stands for S3. It is for backups; etcd can't read it.
	VolumeKey = "volume-claim"
)

// Mount is where the init container of etcd finds them.
const Mount = "/etc/etcd/restore"

// Scheme begins URLs of snapshots that are read with the Secret.
const Scheme = "s3://"

// Annotations of an HCPEtcdBackup.
const (
	// ScheduleAnnotation makes an HCPEtcdBackup a schedule: five fields of cron, in UTC, or @daily and the like. It is never carried out itself; at each of
	// these times another HCPEtcdBackup is made of it.
	ScheduleAnnotation = "hypershift.openshift.io/backup-schedule"
	// KeepAnnotation is how many backups of a schedule are kept in the storage, 1 to 10000; absent: all.
	KeepAnnotation = "hypershift.openshift.io/backup-keep"
	// VerifyAnnotation, with any value, has a backup read back and restored into a scratch folder. It is removed when that has been done.
	VerifyAnnotation = "hypershift.openshift.io/backup-verify"
	// VerifyScheduleAnnotation on a schedule is when its newest backup is verified, as ScheduleAnnotation.
	VerifyScheduleAnnotation = "hypershift.openshift.io/backup-verify-schedule"
	// VerifiedAtAnnotation on a schedule is when it last asked for that, RFC 3339.
	VerifiedAtAnnotation = "hypershift.openshift.io/backup-verify-asked"
	// SummaryAnnotation is what the Job told of a backup, as JSON: revision, keys, bytes, stored, key, objects, verified.
	SummaryAnnotation = "hypershift.openshift.io/backup-summary"
	// CloneOfAnnotation on a HostedCluster names the one whose data it began with: NAMESPACE/NAME.
	CloneOfAnnotation = "hypershift.openshift.io/clone-of"
)

// RestoreLabel is on the pod that replaces the data of an etcd: what lets it reach the storage selects it.
const RestoreLabel = "hypershift.openshift.io/etcd-restore"

// ScheduleLabel on a backup is the name of the schedule that it was made for.
const ScheduleLabel = "hypershift.openshift.io/backup-schedule"

// NameProblem says why an HCPEtcdBackup or a schedule can't have a name that the API accepts; empty: it can.
func NameProblem(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return ""
	}
	return fmt.Sprintf("the name has %d characters, and labels that lead back to it hold %d: create it under a shorter name", len(name), validation.LabelValueMaxLength)
}
