package configoperator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/hold"
	"hcp.internal/platform/internal/configoperator/kmshealth"
	"hcp.internal/platform/internal/configoperator/reencryption"
	"hcp.internal/platform/internal/kube/outcome"
)

// addReencryption adds the controller that rotates encryption keys.
func addReencryption(mgr manager.Manager, management, hosted client.Client, o Options) error {
	r := &reencryption.Reconciler{
		Management: management, Hosted: hosted, Clock: clock.RealClock{},
		Hold: hold.For(o.OperatesOn),
	}
	c, err := builder.ControllerManagedBy(mgr).
		Named(reencryption.Controller).
		For(&hyperv1.HostedControlPlane{}, builder.WithPredicates(isOurs(o.HostedControlPlane), reencryption.Matters())).
		WithOptions(oneByOne()).
		Build(outcome.Wrap(r))
	if err != nil {
		return fmt.Errorf("adding controller %s: %w", reencryption.Controller, err)
	}
	r.Watch = watchKeys(mgr, c, o)
	return nil
}

// addKMSHealth adds the controller that asks whether the plugins which hold encryption keys answer. It goes by time: they change by themselves.
func addKMSHealth(mgr manager.Manager, management client.Client, cfg *rest.Config, o Options) error {
	probe, err := kmshealth.Ask(bounded(cfg))
	if err != nil {
		return err
	}
	err = builder.ControllerManagedBy(mgr).
		Named(kmshealth.Controller).
		For(&hyperv1.HostedControlPlane{}, builder.WithPredicates(isOurs(o.HostedControlPlane), predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WithOptions(oneByOne()).
		Complete(outcome.Wrap(&kmshealth.Reconciler{Management: management, Probe: probe, Clock: clock.RealClock{}, Hold: hold.For(o.OperatesOn)}))
	if err != nil {
		return fmt.Errorf("adding controller %s: %w", kmshealth.Controller, err)
	}
	return nil
}

// watchKeys returns what begins, when it is first called, to watch the Secrets with encryption keys. Only metadata is held.
func watchKeys(mgr manager.Manager, c controller.Controller, o Options) func() error {
	began := false // the controller makes one pass at a time
	return func() error {
		if began {
			return nil
		}
		secret := &metav1.PartialObjectMetadata{}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		requests := func(ctx context.Context, s *metav1.PartialObjectMetadata) (found []reconcile.Request) {
			list := &hyperv1.HostedControlPlaneList{}
			if err := mgr.GetCache().List(ctx, list, client.InNamespace(o.Namespace)); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "listing the HostedControlPlane for a changed Secret")
			}
			for i := range list.Items {
				if hcp := &list.Items[i]; reencryption.IsKey(hcp, s.Name) && (o.HostedControlPlane == "" || o.HostedControlPlane == hcp.Name) {
					found = append(found, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(hcp)})
				}
			}
			return found
		}
		err := c.Watch(source.Kind(mgr.GetCache(), secret, handler.TypedEnqueueRequestsFromMapFunc(requests), predicate.TypedResourceVersionChangedPredicate[*metav1.PartialObjectMetadata]{}))
		began = err == nil
		return err
	}
}
