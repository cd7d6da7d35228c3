package auditlogs

import (
	"context"
	"errors"
	"os"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	auditlogv1alpha1 "hcp.internal/api/auditlogpersistence/v1alpha1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/auditlogs"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/changes"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/operator"
)

// Enabled tells whether the operator is told to do this.
func Enabled() bool { return os.Getenv(EnvEnabled) == "true" }

// Setup adds the controllers to an operator that is told to.
func Setup(mgr ctrl.Manager, shared operator.Shared) error {
	if !Enabled() {
		return nil
	}
	return Add(mgr, shared)
}

// Add adds the controllers.
func Add(mgr ctrl.Manager, shared operator.Shared) error {
	direct, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return err
	}
	recorder := mgr.GetEventRecorder(names.HypershiftOperator)
	v := &Validator{Client: mgr.GetClient(), Live: direct, Mapper: mgr.GetRESTMapper(), Clock: shared.Clock, Events: recorder}
	k := &Keeper{Client: mgr.GetClient(), Live: direct, Mapper: mgr.GetRESTMapper(), Clock: shared.Clock, Events: recorder}
	errs := []error{k.setup(mgr)}
	if shared.Scope == nil || *shared.Scope != hyperv1.LegacyScope { // the operator for clusters of before runs beside this one
		errs = append(errs, v.setup(mgr))
	}
	return errors.Join(errs...)
}

func (v *Validator) setup(mgr ctrl.Manager) error {
	one := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: ConfigurationName}}}
	})
	return ctrl.NewControllerManagedBy(mgr).Named(validatorName).
		For(&auditlogv1alpha1.AuditLogPersistenceConfig{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&hyperv1.HostedControlPlane{}, one, builder.WithPredicates(changes.Of(settingsOf))).
		WithOptions(operator.Workers()).Complete(outcome.Wrap(v))
}

func (k *Keeper) setup(mgr ctrl.Manager) error {
	servers := predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return obj.GetLabels()[hyperv1.ControlPlaneComponentLabel] == names.KubeAPIServer
	})
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request { return k.inNamespace(ctx, "") })
	return ctrl.NewControllerManagedBy(mgr).Named(keeperName).
		For(&hyperv1.HostedControlPlane{}, builder.WithPredicates(changes.Of(settingsOf))).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
			return k.inNamespace(ctx, obj.GetNamespace())
		}), builder.WithPredicates(servers)).
		Watches(&auditlogv1alpha1.AuditLogPersistenceConfig{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(operator.Workers()).Complete(outcome.Wrap(k))
}

// inNamespace are the HostedControlPlanes of a namespace, or all.
func (k *Keeper) inNamespace(ctx context.Context, namespace string) []reconcile.Request {
	list := &hyperv1.HostedControlPlaneList{}
	if err := k.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing HostedControlPlanes for audit logs")
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if list.Items[i].Annotations[auditlogs.SettingsAnnotation] != "" {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// settingsOf is what the controllers read of a HostedControlPlane.
func settingsOf(obj client.Object) any {
	return []any{obj.GetAnnotations()[auditlogs.SettingsAnnotation], obj.GetDeletionTimestamp().IsZero()}
}
