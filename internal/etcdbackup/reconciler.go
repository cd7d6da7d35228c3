package etcdbackup

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// Keep is how many successful backups of a control plane are kept, besides the newest of each schedule.
	Keep int
	// Metrics may be nil.
	Metrics *Metrics
}

// Reconcile looks at one backup.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	backup := &hyperv1.HCPEtcdBackup{}
	if err := r.Client.Get(ctx, req.NamespacedName, backup); apierrors.IsNotFound(err) {
		return r.forget(ctx, req.Namespace, req.Name)
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
	if p.start {
		if err := r.begin(ctx, obs); lasting(err) {
			p = obs.unstarted(err)
		} else if err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.apply(ctx, obs, p); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: p.again}, r.report(ctx, obs, p)
}

// forget stops telling of a backup that was deleted, and closes what was opened for its Job. While a Job runs or a backup is unfinished, that stays open: the Job isn't
// ended, since what it saves is a backup all the same, and who ends last closes.
func (r *Reconciler) forget(ctx context.Context, namespace, name string) (ctrl.Result, error) {
	left := &hyperv1.HCPEtcdBackupList{}
	if err := r.Client.List(ctx, left, client.InNamespace(namespace), client.Limit(maxList)); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing HCPEtcdBackups of namespace %s: %w", namespace, err)
	}
	r.Metrics.gone(namespace, name, len(left.Items) == 0)
	if slices.ContainsFunc(left.Items, func(b hyperv1.HCPEtcdBackup) bool { return !scheduled(&b) && !ended(&b) }) {
		return ctrl.Result{}, nil
	}
	jobs, err := r.jobsOf(ctx, namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	if slices.ContainsFunc(jobs, func(j batchv1.Job) bool { done, _ := ending(&j); return done == "" }) {
		return ctrl.Result{RequeueAfter: poll}, nil
	}
	of := &hyperv1.HCPEtcdBackup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	return ctrl.Result{}, r.closeOff(ctx, observed{backup: of, namespace: r.Namespace})
}
