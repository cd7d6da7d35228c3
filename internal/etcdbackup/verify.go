package etcdbackup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/kube/read"
)

// verification is a reading of a backup that somebody asked for.
type verification struct {
	// asked is the value of the annotation; empty: nobody has.
	asked string
	// job reads; nil: there is none. message is what its container said at its end.
	job     *batchv1.Job
	message string
}

// verificationName is that of the Job; another wish has another.
func verificationName(b *hyperv1.HCPEtcdBackup, asked string) string {
	sum := sha256.Sum256([]byte(string(b.UID) + "/" + asked))
	return "etcd-verify-" + hex.EncodeToString(sum[:8])
}

// observeVerification reads what a verification needs, when one was asked for.
func (r *Reconciler) observeVerification(ctx context.Context, o *observed) error {
	o.check.asked = o.backup.Annotations[backups.VerifyAnnotation]
	if o.check.asked == "" {
		return nil
	}
	var err error
	if o.secret, err = read.Optional(ctx, r.Client, client.ObjectKey{Namespace: r.Namespace, Name: credentials(o.backup.Spec.Storage)}, &corev1.Secret{}); err != nil {
		return err
	}
	o.key, o.keyErr = keyOf(o.secret)
	key := client.ObjectKey{Namespace: r.Namespace, Name: verificationName(o.backup, o.check.asked)}
	if o.check.job, err = read.Optional(ctx, r.Client, key, &batchv1.Job{}); err != nil || o.check.job == nil {
		return err
	}
	pods := &corev1.PodList{}
	if err := r.Client.List(ctx, pods, client.InNamespace(r.Namespace), client.MatchingLabels{batchv1.JobNameLabel: key.Name}, client.Limit(maxList)); err != nil {
		return fmt.Errorf("listing pods of Job %s: %w", key, err)
	}
	for i := range pods.Items {
		for _, c := range pods.Items[i].Status.ContainerStatuses {
			if c.State.Terminated != nil && c.State.Terminated.Message != "" {
				o.check.message = c.State.Terminated.Message
			}
		}
	}
	return nil
}

// verification adds to the plan of a backup that has ended what becomes of a wish to have it verified.
func (o observed) verification(p plan) plan {
	if o.check.asked == "" {
		return p
	}
	unreadable := func(format string, args ...any) plan {
		p.verified = ptr.To(conditions.False(hyperv1.EtcdBackupVerified, hyperv1.BackupUnreadableReason, clipped(fmt.Sprintf(format, args...))))
		p.asked = true
		return p
	}
	switch {
	case o.backup.Status.SnapshotURL == "":
		return unreadable("there is no snapshot to read")
	case o.secret == nil:
		return unreadable("credential Secret %q not found in namespace %q", credentials(o.backup.Spec.Storage), o.namespace)
	case o.keyErr != nil:
		return unreadable("Secret %s/%s: key %s: %v", o.namespace, credentials(o.backup.Spec.Storage), backups.EncryptionKey, o.keyErr)
	case o.accessProblem() != "":
		return unreadable("%s", o.accessProblem())
	case o.check.job == nil:
		p.verify, p.again = true, poll
		return p
	}
	switch done, message := ending(o.check.job); done {
	case batchv1.JobComplete:
		s := bundle.Summary{}
		if err := json.Unmarshal([]byte(o.check.message), &s); err != nil {
			return unreadable("the result of the verification is unknown: request another")
		}
		p.verified = ptr.To(conditions.True(hyperv1.EtcdBackupVerified, hyperv1.BackupRestorableReason,
			fmt.Sprintf("read and restored as a test at %s: %s", o.now.UTC().Format(time.RFC3339), described(s))))
		p.asked = true
	case batchv1.JobFailed:
		if o.check.message != "" {
			message = o.check.message
		}
		return unreadable("%s", message)
	default:
		p.again = poll
	}
	return p
}

// startVerification makes the Job, which is known by its name.
func (r *Reconciler) startVerification(ctx context.Context, o observed) error {
	pull, err := read.Optional(ctx, r.Client, client.ObjectKey{Namespace: r.Namespace, Name: names.PullSecret}, &corev1.Secret{})
	if err != nil {
		return err
	}
	w := world{namespace: r.Namespace, image: r.Image, user: r.UserID, pullSecret: pull != nil}
	if err := apply.New(r.Client, owner).Apply(ctx, serviceAccount(w)); err != nil {
		return err
	}
	c := container("verify", w.image, verifyArgs(o)...)
	c.VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: scratchDir}}
	volumes := append(reachStorage(o, &c), emptyDir("scratch"))
	labels := map[string]string{labelApp: verifyName, labelBackup: o.backup.Name, labelNamespace: o.backup.Namespace}
	err = r.Client.Create(ctx, w.job(o, labels, "", verificationName(o.backup, o.check.asked), nil, c, volumes))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("creating the Job that verifies HCPEtcdBackup %s/%s: %w", o.backup.Namespace, o.backup.Name, err)
	}
	apply.Count("Job", "create", owner)
	return nil
}

// annotate notes what the Job told, and that a wish was heeded.
func (r *Reconciler) annotate(ctx context.Context, o observed, p plan) error {
	if p.succeeded && o.summary != nil {
		raw, err := json.Marshal(o.summary)
		if err != nil {
			return err
		}
		if text := string(raw); o.backup.Annotations[backups.SummaryAnnotation] != text {
			if err := r.Client.Patch(ctx, o.backup, patch.Annotation(backups.SummaryAnnotation, &text)); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("annotating HCPEtcdBackup %s/%s: %w", o.backup.Namespace, o.backup.Name, err)
			}
		}
	}
	return nil
}

// heeded takes the annotation away once the condition has been written.
func (r *Reconciler) heeded(ctx context.Context, o observed, p plan) error {
	if !p.asked {
		return nil
	}
	if err := r.Client.Patch(ctx, o.backup, patch.Annotation(backups.VerifyAnnotation, nil)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotating HCPEtcdBackup %s/%s: %w", o.backup.Namespace, o.backup.Name, err)
	}
	return nil
}

// sinceOf is when a condition became what it is; the zero time when there is none.
func sinceOf(c *metav1.Condition) time.Time {
	if c == nil {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}
