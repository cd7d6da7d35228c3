package etcdbackup

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/operator"
)

// Setup adds the controller to an operator whose features include it.
func Setup(mgr ctrl.Manager, shared operator.Shared) error {
	if !shared.Features.Enabled(operator.HCPEtcdBackup) {
		return nil
	}
	direct, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return err
	}
	metrics, err := NewMetrics(ctrlmetrics.Registry)
	if err != nil {
		return err
	}
	r := &Reconciler{
		Client: direct, Clock: shared.Clock, Events: mgr.GetEventRecorder(names.HypershiftOperator), Namespace: shared.Namespace, Image: shared.OperatorImage,
		Keep: shared.EtcdBackups, Metrics: metrics,
	}
	if !shared.Capabilities.SecurityContextConstraints {
		r.UserID = userID
	}
	return r.SetupWithManager(mgr)
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("hcpetcdbackup").
		For(&hyperv1.HCPEtcdBackup{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&hyperv1.HCPEtcdBackup{}, handler.EnqueueRequestsFromMapFunc(bySchedule)).
		Watches(&batchv1.Job{}, handler.EnqueueRequestsFromMapFunc(byLabels)).
		WithOptions(workers()).Complete(outcome.Wrap(r))
}

// workers: backups are few, and one at a time makes sure that no two of a control plane begin together.
func workers() controller.Options {
	o := operator.Workers()
	o.MaxConcurrentReconciles = 1
	return o
}

// bySchedule is the schedule that a backup was made for.
func bySchedule(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[backups.ScheduleLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// byLabels is the backup of a Job.
func byLabels(_ context.Context, o client.Object) []reconcile.Request {
	name, namespace := o.GetLabels()[labelBackup], o.GetLabels()[labelNamespace]
	if name == "" || namespace == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}
