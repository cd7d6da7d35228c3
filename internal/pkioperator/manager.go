package pkioperator

import (
	"context"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	certificatesv1alpha1 "hcp.internal/api/certificates/v1alpha1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/kube/skew"
	"hcp.internal/platform/internal/pki"
)

// Pauses between passes that fail.
const minBackoff, maxBackoff = 500 * time.Millisecond, 30 * time.Second

func newScheme() (*runtime.Scheme, error) {
	return process.Scheme(hyperv1.AddToScheme, certificatesv1alpha1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, certificatesv1.AddToScheme)
}

// newManager puts the process together. servers is nil but in tests.
func newManager(cfg *rest.Config, o Options, c config, servers asker) (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	if c.clocks == nil {
		c.clocks = &skew.Watch{Clock: c.clock}
	}
	cfg = rest.CopyConfig(cfg)
	c.clocks.Attach(cfg)
	options := process.Options{
		Name: names.PKIOperator, Scheme: scheme, Serve: process.Serve{Metrics: o.MetricsAddr, Health: o.HealthAddr},
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{o.Namespace: {}},
			DefaultTransform:  cache.TransformStripManagedFields(),
			// The requests of kubelets are the most, and never ours.
			ByObject: map[client.Object]cache.ByObject{metadata(&certificatesv1.CertificateSigningRequest{}, scheme): {Field: fields.AndSelectors(
				fields.OneTermNotEqualSelector("spec.signerName", certificatesv1.KubeAPIServerClientKubeletSignerName),
				fields.OneTermNotEqualSelector("spec.signerName", certificatesv1.KubeletServingSignerName),
			)}},
		},
	}
	if o.LeaderElect {
		options.Lease = process.NewLease(o.Namespace, leaseName, os.Getenv("POD_NAME"))
	}
	mgr, err := process.NewManager(cfg, options)
	if err != nil {
		return nil, err
	}
	if c.client, err = client.New(mgr.GetConfig(), client.Options{Scheme: scheme, HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper()}); err != nil {
		return nil, fmt.Errorf("building a client of the management cluster: %w", err)
	}
	c.namespace, c.hcp, c.day = o.Namespace, o.HostedControlPlane, o.Day
	c.events = mgr.GetEventRecorder(names.PKIOperator)
	if servers == nil {
		servers = &apiServers{client: c.client, namespace: c.namespace, whoami: whoami}
	}
	return mgr, setup(mgr, c, servers)
}

func metadata(obj client.Object, scheme *runtime.Scheme) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	for _, gvk := range must(scheme.ObjectKinds(obj)) {
		m.SetGroupVersionKind(gvk)
	}
	return m
}

// must panics for a type that newScheme doesn't have, which is a mistake in this file.
func must[T, U any](v T, _ U, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// setup makes the three controllers. Only metadata is watched; what is decided from is read when it is decided.
func setup(mgr manager.Manager, c config, servers asker) error {
	named := func(names ...string) predicate.Predicate {
		return predicate.NewPredicateFuncs(func(o client.Object) bool {
			for _, name := range names {
				if o.GetName() == name {
					return true
				}
			}
			return false
		})
	}
	var secrets, bundles []string
	for _, s := range signers {
		secrets, bundles = append(secrets, s.secret, s.client), append(bundles, s.bundle)
	}
	changed := predicate.ResourceVersionChangedPredicate{}
	hcp := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: c.namespace, Name: c.hcp}}
	toHCP := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{hcp} })
	// Of the HostedControlPlane, it matters that it exists.
	once := predicate.GenerationChangedPredicate{}
	err := builder.ControllerManagedBy(mgr).Named("rotation").
		For(&hyperv1.HostedControlPlane{}, builder.OnlyMetadata, builder.WithPredicates(named(c.hcp), once)).
		Watches(&corev1.Secret{}, toHCP, builder.OnlyMetadata, builder.WithPredicates(named(secrets...), changed)).
		Watches(&corev1.ConfigMap{}, toHCP, builder.OnlyMetadata, builder.WithPredicates(named(append(bundles, pki.TotalClientCABundle)...), changed)).
		WithOptions(oneByOne()).Complete(outcome.Wrap(&rotation{c}))
	if err != nil {
		return fmt.Errorf("adding the controller of rotation: %w", err)
	}
	byName := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.GetName()}}}
	})
	lister := mgr.GetCache()
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) (found []reconcile.Request) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequestList"))
		if err := lister.List(ctx, list); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "listing CertificateSigningRequests that wait for a signer")
		}
		for i := range list.Items {
			found = append(found, reconcile.Request{NamespacedName: types.NamespacedName{Name: list.Items[i].Name}})
		}
		return found
	})
	err = builder.ControllerManagedBy(mgr).Named("requests").
		For(&certificatesv1.CertificateSigningRequest{}, builder.OnlyMetadata, builder.WithPredicates(changed)).
		Watches(&certificatesv1alpha1.CertificateSigningRequestApproval{}, byName, builder.OnlyMetadata, builder.WithPredicates(changed)).
		Watches(&corev1.ConfigMap{}, all, builder.OnlyMetadata, builder.WithPredicates(named(pki.TotalClientCABundle), changed)).
		WithOptions(oneByOne()).Complete(outcome.Wrap(&requests{c}))
	if err != nil {
		return fmt.Errorf("adding the controller of CertificateSigningRequests: %w", err)
	}
	err = builder.ControllerManagedBy(mgr).Named("revocations").
		For(&certificatesv1alpha1.CertificateRevocationRequest{}, builder.OnlyMetadata, builder.WithPredicates(once)).
		WithOptions(oneByOne()).Complete(outcome.Wrap(&revocations{config: c, servers: servers}))
	if err != nil {
		return fmt.Errorf("adding the controller of CertificateRevocationRequests: %w", err)
	}
	return nil
}

func oneByOne() controller.Options { return process.Workers(1, minBackoff, maxBackoff) }
