package etcdbackup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/events"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/kube/read"
)

const (
	// owner is the field manager of what a Job needs.
	owner = "hypershift-operator-etcd-backup"
	// maxList bounds lists that a tenant can make long; retention and people keep them short.
	maxList = 500
	// maxURL is what status.snapshotURL takes.
	maxURL = 2048
)

// Reconciler carries out HCPEtcdBackups.
type Reconciler struct {
	// Client writes, and reads without a cache.
	Client client.Client
	Clock  clock.PassiveClock
	Events events.Recorder
	// Namespace is the operator's, where the Jobs run and the credentials are.
	Namespace string
	// Image is ours.
	Image string
	// UserID is that of the pods; 0: the management cluster assigns one.
	UserID int64
	// Keep is how many successful backups of a control plane are kept.
	Keep int
	// Metrics may be nil.
	Metrics *Metrics
}

// rules are the transitions that are told as events.
var rules = []events.Rule{
	{Condition: hyperv1.EtcdBackupCompleted, Status: metav1.ConditionTrue, Action: "Backup"},
	{Condition: hyperv1.EtcdBackupCompleted, Status: metav1.ConditionFalse, Reason: hyperv1.BackupInProgressReason, Action: "Backup"},
	{Condition: hyperv1.EtcdBackupCompleted, Status: metav1.ConditionFalse, Reason: hyperv1.BackupFailedReason, Warning: true, Action: "Backup"},
	{Condition: hyperv1.EtcdBackupCompleted, Status: metav1.ConditionFalse, Reason: hyperv1.BackupRejectedReason, Warning: true, Action: "Backup"},
	{Condition: hyperv1.EtcdBackupCompleted, Status: metav1.ConditionFalse, Reason: hyperv1.EtcdUnhealthyReason, Warning: true, Action: "Backup"},
	{Condition: hyperv1.EtcdBackupVerified, Status: metav1.ConditionTrue, Action: "Verify"},
	{Condition: hyperv1.EtcdBackupVerified, Status: metav1.ConditionFalse, Reason: hyperv1.BackupUnreadableReason, Warning: true, Action: "Verify"},
}

// Reconcile looks at one backup.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	backup := &hyperv1.HCPEtcdBackup{}
	if err := r.Client.Get(ctx, req.NamespacedName, backup); apierrors.IsNotFound(err) {
		return ctrl.Result{}, r.forget(ctx, req.Namespace, req.Name)
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading HCPEtcdBackup %s: %w", req, err)
	}
	if !backup.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	obs, err := r.observe(ctx, backup)
	if err != nil {
		return ctrl.Result{}, err
	}
	if scheduled(backup) {
		return r.reconcileSchedule(ctx, obs)
	}
	p := planFor(obs)
	r.Metrics.seen(backup)
	if err := r.apply(ctx, obs, p); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: p.again}, r.report(ctx, obs, p)
}

// forget stops telling of a backup that was deleted.
func (r *Reconciler) forget(ctx context.Context, namespace, name string) error {
	left := &hyperv1.HCPEtcdBackupList{}
	if err := r.Client.List(ctx, left, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return fmt.Errorf("listing HCPEtcdBackups of namespace %s: %w", namespace, err)
	}
	r.Metrics.gone(namespace, name, len(left.Items) == 0)
	return nil
}

// observe reads everything.
func (r *Reconciler) observe(ctx context.Context, backup *hyperv1.HCPEtcdBackup) (observed, error) {
	o := observed{backup: backup, now: r.Clock.Now(), namespace: r.Namespace, keep: r.Keep}
	list := &hyperv1.HCPEtcdBackupList{}
	if err := r.Client.List(ctx, list, client.InNamespace(backup.Namespace), client.Limit(maxList)); err != nil {
		return o, fmt.Errorf("listing HCPEtcdBackups of namespace %s: %w", backup.Namespace, err)
	}
	for _, b := range list.Items {
		if b.Name != backup.Name && !scheduled(&b) {
			o.siblings = append(o.siblings, b)
		}
	}
	if ended(backup) {
		return o, r.observeVerification(ctx, &o)
	}
	hcps := &hyperv1.HostedControlPlaneList{}
	if err := r.Client.List(ctx, hcps, client.InNamespace(backup.Namespace), client.Limit(1)); err != nil {
		return o, fmt.Errorf("listing HostedControlPlanes of namespace %s: %w", backup.Namespace, err)
	}
	var err error
	if len(hcps.Items) > 0 {
		o.hcp = &hcps.Items[0]
		if o.hc, err = r.hostedCluster(ctx, o.hcp); err != nil {
			return o, err
		}
	}
	if o.etcd, err = read.Optional(ctx, r.Client, client.ObjectKey{Namespace: backup.Namespace, Name: names.Etcd}, &appsv1.StatefulSet{}); err != nil {
		return o, err
	}
	if name := credentials(backup.Spec.Storage); name != "" {
		if o.secret, err = read.Optional(ctx, r.Client, client.ObjectKey{Namespace: r.Namespace, Name: name}, &corev1.Secret{}); err != nil {
			return o, err
		}
		o.key, o.keyErr = keyOf(o.secret)
	}
	return o, r.observeJobs(ctx, &o)
}

func (r *Reconciler) observeJobs(ctx context.Context, o *observed) error {
	jobs := &batchv1.JobList{}
	labels := client.MatchingLabels{labelApp: appName, labelNamespace: o.backup.Namespace}
	if err := r.Client.List(ctx, jobs, client.InNamespace(r.Namespace), labels, client.Limit(maxList)); err != nil {
		return fmt.Errorf("listing Jobs of namespace %s: %w", r.Namespace, err)
	}
	for i := range jobs.Items {
		j := &jobs.Items[i]
		// A backup that was deleted and created again under its name is another.
		if j.Annotations[annotationUID] == string(o.backup.UID) {
			o.job = j
		} else if done, _ := ending(j); done == "" {
			o.others = append(o.others, *j)
		}
	}
	if o.job == nil {
		return nil
	}
	if done, _ := ending(o.job); done != batchv1.JobComplete {
		return nil
	}
	pods := &corev1.PodList{}
	if err := r.Client.List(ctx, pods, client.InNamespace(r.Namespace), client.MatchingLabels{batchv1.JobNameLabel: o.job.Name}, client.Limit(maxList)); err != nil {
		return fmt.Errorf("listing pods of Job %s/%s: %w", r.Namespace, o.job.Name, err)
	}
	for i := range pods.Items {
		for _, c := range pods.Items[i].Status.ContainerStatuses {
			if url, summary := terminated(c); c.Name == "upload" && url != "" {
				o.url, o.summary = url, summary
			}
		}
	}
	return nil
}

// terminated is the URL that a container left behind, empty when it left none that the API takes, and what it says of the backup.
func terminated(c corev1.ContainerStatus) (string, *bundle.Summary) {
	if c.State.Terminated == nil {
		return "", nil
	}
	url, rest, _ := strings.Cut(strings.TrimSpace(c.State.Terminated.Message), "\n")
	if len(url) > maxURL || (!strings.HasPrefix(url, backups.Scheme) && !strings.HasPrefix(url, "https://")) {
		return "", nil
	}
	summary := &bundle.Summary{}
	if json.Unmarshal([]byte(rest), summary) != nil {
		return url, nil
	}
	return url, summary
}

// apply writes what the Job needs before it, and the Job last, so that it never starts without.
func (r *Reconciler) apply(ctx context.Context, o observed, p plan) error {
	applier := apply.New(r.Client, owner)
	if p.start {
		pull, err := read.Optional(ctx, r.Client, client.ObjectKey{Namespace: r.Namespace, Name: names.PullSecret}, &corev1.Secret{})
		if err != nil {
			return err
		}
		w := world{namespace: r.Namespace, image: r.Image, user: r.UserID, pullSecret: pull != nil}
		if err := applier.All(ctx, append([]client.Object{serviceAccount(w)}, rights(o)...)...); err != nil {
			return err
		}
		payload, err := r.payload(ctx, o)
		if err != nil {
			return err
		}
		if err := applier.Apply(ctx, payload); err != nil {
			return err
		}
		made := newJob(o, w, payload)
		if err := r.Client.Create(ctx, made); err != nil {
			return fmt.Errorf("creating the Job of HCPEtcdBackup %s/%s: %w", o.backup.Namespace, o.backup.Name, err)
		}
		apply.Count("Job", "create", owner)
		// Should the backup be deleted while its Job runs, the Secret goes with the Job.
		payload.OwnerReferences = []metav1.OwnerReference{{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Name: made.Name, UID: made.UID}}
		if err := applier.Apply(ctx, payload); err != nil {
			return err
		}
	}
	if p.verify {
		if err := r.startVerification(ctx, o); err != nil {
			return err
		}
	}
	if p.sweep {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: payloadName(o.backup)}}
		if err := applier.Delete(ctx, secret); err != nil {
			return err
		}
	}
	if p.clear {
		var problems []error
		for _, obj := range rights(o) {
			problems = append(problems, applier.Delete(ctx, obj))
		}
		if err := errors.Join(problems...); err != nil {
			return err
		}
	}
	for i := range p.expired {
		b := &p.expired[i]
		if err := r.Client.Delete(ctx, b, client.Preconditions{UID: &b.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting HCPEtcdBackup %s/%s, which newer ones replace: %w", b.Namespace, b.Name, err)
		}
		apply.Count("HCPEtcdBackup", "delete", owner)
	}
	return nil
}

// report writes the conditions: first those of others, last the backup's own, which says that there is nothing left to tell.
func (r *Reconciler) report(ctx context.Context, o observed, p plan) error {
	if p.succeeded && o.url != "" {
		if err := r.tellHostedCluster(ctx, o); err != nil {
			return err
		}
	}
	now := r.Clock.Now()
	if p.bubbled != nil {
		before := o.hcp.DeepCopy()
		p.bubbled.ObservedGeneration = o.hcp.Generation
		conditions.Set(&o.hcp.Status.Conditions, now, *p.bubbled)
		if err := patch.Status(ctx, r.Client, before, o.hcp); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("writing condition %s of HostedControlPlane %s/%s: %w", hyperv1.EtcdBackupSucceeded, o.hcp.Namespace, o.hcp.Name, err)
		}
	}
	if p.condition == nil && p.verified == nil {
		return nil
	}
	if err := r.annotate(ctx, o, p); err != nil {
		return err
	}
	before := o.backup.DeepCopy()
	for _, c := range []*metav1.Condition{p.condition, p.verified} {
		if c != nil {
			c.ObservedGeneration = o.backup.Generation
			conditions.Set(&o.backup.Status.Conditions, now, *c)
		}
	}
	if p.succeeded {
		o.backup.Status.SnapshotURL = o.url
		if s := o.backup.Spec.Storage.S3; s != nil && s.KMSKeyARN != "" {
			o.backup.Status.EncryptionMetadata.AWS = &hyperv1.HCPEtcdBackupEncryptionMetadataAWS{KMSKeyARN: s.KMSKeyARN}
		}
	}
	if err := patch.Status(ctx, r.Client, before, o.backup); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of HCPEtcdBackup %s/%s: %w", o.backup.Namespace, o.backup.Name, err)
	}
	events.Transitions(r.Events, o.backup, rules, before.Status.Conditions, o.backup.Status.Conditions)
	r.Metrics.ended(o, p, now)
	r.Metrics.seen(o.backup)
	return r.heeded(ctx, o, p)
}

// tellHostedCluster notes where the newest snapshot is.
func (r *Reconciler) tellHostedCluster(ctx context.Context, o observed) error {
	if o.hc == nil {
		return nil
	}
	before := o.hc.DeepCopy()
	o.hc.Status.LastSuccessfulEtcdBackupURL = o.url
	if err := patch.Status(ctx, r.Client, before, o.hc); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing status.lastSuccessfulEtcdBackupURL of HostedCluster %s/%s: %w", o.hc.Namespace, o.hc.Name, err)
	}
	return nil
}
