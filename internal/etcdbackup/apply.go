package etcdbackup

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/read"
)

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
