package etcdbackup

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/events"
	"hcp.internal/platform/internal/kube/patch"
)

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
		if key := o.kmsKey(); key != "" {
			o.backup.Status.EncryptionMetadata.AWS = &hyperv1.HCPEtcdBackupEncryptionMetadataAWS{KMSKeyARN: key}
		}
		if key := o.vaultKey(); key != "" {
			o.backup.Status.EncryptionMetadata.Azure = &hyperv1.HCPEtcdBackupEncryptionMetadataAzure{EncryptionKeyURL: key}
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
