package etcdbackup

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/read"
)

// begin writes what the Job needs before it, and the Job last, so that it never starts without. What is to be saved is sealed before anything is opened.
func (r *Reconciler) begin(ctx context.Context, o observed) error {
	applier := apply.New(r.Client, owner)
	payload, err := r.payload(ctx, o)
	if err != nil {
		return err
	}
	pull, err := read.Optional(ctx, r.Client, client.ObjectKey{Namespace: r.Namespace, Name: names.PullSecret}, &corev1.Secret{})
	if err != nil {
		return err
	}
	w := world{namespace: r.Namespace, image: r.Image, user: r.UserID, pullSecret: pull != nil}
	if err := applier.All(ctx, append([]client.Object{serviceAccount(w)}, rights(o)...)...); err != nil {
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
	if err := applier.Apply(ctx, payload); lasting(err) {
		// The Job runs. The Secret is removed when the backup has ended.
		ctrl.LoggerFrom(ctx).Error(err, "leaving the Secret of a backup without owner", "backup", klog.KObj(o.backup))
	} else if err != nil {
		return err
	}
	return nil
}

// lasting tells errors that come again as long as nobody changes anything: what can't be saved, and what a quota, a policy or the API server refuses.
func lasting(err error) bool {
	return errors.Is(err, bundle.ErrTooLarge) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsBadRequest(err)
}

// apply carries out what a plan has beside a beginning.
func (r *Reconciler) apply(ctx context.Context, o observed, p plan) error {
	applier := apply.New(r.Client, owner)
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
		if err := r.closeOff(ctx, o); err != nil {
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

// closeOff takes back what Jobs were given in the namespace of the control plane.
func (r *Reconciler) closeOff(ctx context.Context, o observed) error {
	applier := apply.New(r.Client, owner)
	var problems []error
	for _, obj := range rights(o) {
		problems = append(problems, applier.Delete(ctx, obj))
	}
	return errors.Join(problems...)
}
