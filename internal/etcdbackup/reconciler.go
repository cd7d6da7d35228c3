package etcdbackup

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/events"
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
