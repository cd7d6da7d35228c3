package etcdbackup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/etcdbackup/schedule"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/events"
	"hcp.internal/platform/internal/kube/patch"
)

const (
	// keptFailures is how many backups of a schedule stay that did not succeed, for people to read why.
	keptFailures = 3
	// takenAgain is how soon a name that somebody else's backup has is tried again: no event tells that it is free.
	takenAgain = 5 * time.Minute
)

// BackupNameTakenReason means that a schedule can't make its backup, because one that was not made for it has the name; the message says which.
const BackupNameTakenReason = "BackupNameTaken"

// scheduled tells an HCPEtcdBackup that is a schedule.
func scheduled(b *hyperv1.HCPEtcdBackup) bool {
	_, ok := b.Annotations[backups.ScheduleAnnotation]
	return ok
}

// schedulePlan is what a pass does about a schedule.
type schedulePlan struct {
	condition metav1.Condition
	// create is the name of a backup to make; empty: none.
	create string
	// verify is a backup to verify; nil: none.
	verify *hyperv1.HCPEtcdBackup
	// expired are backups without success that newer ones replace.
	expired []hyperv1.HCPEtcdBackup
	// due is when the next backup is made or should have been.
	due   time.Time
	again time.Duration
}

// planSchedule decides. It is pure.
func planSchedule(b *hyperv1.HCPEtcdBackup, siblings []hyperv1.HCPEtcdBackup, now time.Time) schedulePlan {
	invalid := func(why string) schedulePlan {
		return schedulePlan{condition: conditions.False(hyperv1.EtcdBackupScheduled, hyperv1.InvalidScheduleReason, clipped(why))}
	}
	if problem := backups.NameProblem(b.Name); problem != "" {
		return invalid(problem)
	}
	s, err := schedule.Parse(b.Annotations)
	if err != nil {
		return invalid(err.Error())
	}
	now = now.UTC()
	var own, bad []hyperv1.HCPEtcdBackup
	var last, success time.Time
	var newest *hyperv1.HCPEtcdBackup
	running := false
	last = b.CreationTimestamp.Time
	success = last
	for i, c := range siblings {
		if c.Labels[backups.ScheduleLabel] != b.Name {
			continue
		}
		own = append(own, c)
		if c.CreationTimestamp.After(last) {
			last = c.CreationTimestamp.Time
		}
		switch done := completed(&c); {
		case !ended(&c):
			running = true
		case done.Status == metav1.ConditionTrue:
			if newest == nil || newest.CreationTimestamp.Before(&c.CreationTimestamp) {
				newest = &siblings[i]
			}
			if c.CreationTimestamp.After(success) {
				success = c.CreationTimestamp.Time
			}
		default:
			bad = append(bad, c)
		}
	}
	p := schedulePlan{due: s.Backup.Next(success.UTC())}
	slices.SortFunc(bad, func(x, y hyperv1.HCPEtcdBackup) int { return y.CreationTimestamp.Compare(x.CreationTimestamp.Time) })
	p.expired = bad[min(keptFailures, len(bad)):]
	next := s.Backup.Next(last.UTC())
	if !next.After(now) && !running {
		// The newest of the times that have gone by: those that nobody was there for are not made up for.
		at := next
		for n := s.Backup.Next(at); !n.After(now); n = s.Backup.Next(n) {
			at = n
		}
		p.create = childName(b.Name, at)
		next = s.Backup.Next(now)
	}
	p.again = max(next.Sub(now), poll)
	p.condition = conditions.True(hyperv1.EtcdBackupScheduled, hyperv1.BackupScheduledReason, fmt.Sprintf("%d backups, %d of them failed; the next at %s", len(own), len(bad), next.Format(time.RFC3339)))
	if s.Verify != nil && newest != nil && newest.Annotations[backups.VerifyAnnotation] == "" {
		asked, err := time.Parse(time.RFC3339, b.Annotations[backups.VerifiedAtAnnotation])
		if err != nil {
			asked = b.CreationTimestamp.Time
		}
		if at := s.Verify.Next(asked.UTC()); !at.After(now) {
			p.verify = newest
		} else {
			p.again = min(p.again, max(at.Sub(now), poll))
		}
	}
	return p
}

// childName is that of the backup of a time; two operators that think of the same time make one. A name that has to be cut is told from others that begin as it
// does by a hash of the whole.
func childName(schedule string, at time.Time) string {
	const most, digits = 63 - 14, 8
	if len(schedule) > most {
		sum := sha256.Sum256([]byte(schedule))
		schedule = strings.TrimRight(schedule[:most-1-digits], "-.") + "-" + hex.EncodeToString(sum[:])[:digits]
	}
	return schedule + "-" + at.UTC().Format("060102-1504")
}

// makeChild creates a backup. taken says why there is none though it is time: somebody else's has its name.
func (r *Reconciler) makeChild(ctx context.Context, b *hyperv1.HCPEtcdBackup, name string) (taken string, _ error) {
	err := r.Client.Create(ctx, child(b, name))
	if err == nil {
		apply.Count("HCPEtcdBackup", "create", owner)
		return "", nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("creating HCPEtcdBackup %s/%s: %w", b.Namespace, name, err)
	}
	have := &hyperv1.HCPEtcdBackup{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: name}, have); err != nil {
		return "", fmt.Errorf("reading HCPEtcdBackup %s/%s: %w", b.Namespace, name, err)
	}
	if have.Labels[backups.ScheduleLabel] == b.Name {
		return "", nil
	}
	return fmt.Sprintf("no backup is made: HCPEtcdBackup %s has the name that it would have, and was not made for this schedule. Delete that one, or create the schedule under another name", name), nil
}

// reconcileSchedule makes backups when it is time.
func (r *Reconciler) reconcileSchedule(ctx context.Context, o observed) (ctrl.Result, error) {
	now := r.Clock.Now()
	b := o.backup
	p := planSchedule(b, o.siblings, now)
	if p.create != "" {
		taken, err := r.makeChild(ctx, b, p.create)
		if err != nil {
			return ctrl.Result{}, err
		}
		if taken != "" {
			p.condition = conditions.False(hyperv1.EtcdBackupScheduled, BackupNameTakenReason, clipped(taken))
			p.again = min(p.again, takenAgain)
		}
	}
	if p.verify != nil {
		text := now.UTC().Format(time.RFC3339)
		if err := r.Client.Patch(ctx, p.verify, patch.Annotation(backups.VerifyAnnotation, &text)); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("annotating HCPEtcdBackup %s/%s: %w", b.Namespace, p.verify.Name, err)
		}
		if err := r.Client.Patch(ctx, b, patch.Annotation(backups.VerifiedAtAnnotation, &text)); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	for i := range p.expired {
		old := &p.expired[i]
		if err := r.Client.Delete(ctx, old, client.Preconditions{UID: &old.UID}); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("deleting HCPEtcdBackup %s/%s: %w", old.Namespace, old.Name, err)
		}
		apply.Count("HCPEtcdBackup", "delete", owner)
	}
	r.Metrics.due(b, p.due)
	before := b.DeepCopy()
	p.condition.ObservedGeneration = b.Generation
	conditions.Set(&b.Status.Conditions, now, p.condition)
	if err := patch.Status(ctx, r.Client, before, b); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("writing the status of HCPEtcdBackup %s/%s: %w", b.Namespace, b.Name, err)
	}
	events.Transitions(r.Events, b, scheduleRules, before.Status.Conditions, b.Status.Conditions)
	return ctrl.Result{RequeueAfter: p.again}, nil
}

var scheduleRules = []events.Rule{
	{Condition: hyperv1.EtcdBackupScheduled, Status: metav1.ConditionFalse, Reason: BackupNameTakenReason, Warning: true, Action: "Schedule"},
	{Condition: hyperv1.EtcdBackupScheduled, Status: metav1.ConditionFalse, Reason: hyperv1.InvalidScheduleReason, Warning: true, Action: "Schedule"},
}

// child is a backup as its schedule wants it.
func child(b *hyperv1.HCPEtcdBackup, name string) *hyperv1.HCPEtcdBackup {
	c := &hyperv1.HCPEtcdBackup{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name, Labels: maps.Clone(b.Labels), Annotations: map[string]string{}}, Spec: *b.Spec.DeepCopy()}
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	c.Labels[backups.ScheduleLabel] = b.Name
	if keep, ok := b.Annotations[backups.KeepAnnotation]; ok {
		c.Annotations[backups.KeepAnnotation] = keep
	}
	return c
}
