package packagecontroller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/journal"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/oci/credentials"
	"hcp.internal/platform/internal/oci/rewrite"
	"hcp.internal/platform/internal/packages/author/images"
	"hcp.internal/platform/internal/packages/control/environment"
	"hcp.internal/platform/internal/packages/control/manager"
	"hcp.internal/platform/internal/packages/engine/scope"
	"hcp.internal/platform/internal/packages/engine/status"
)

// workers is how many packages are worked on at a time; each may hold an image in memory.
const workers = 5

// reconciliationTimeout bounds a pass: everything that it calls has limits of its own, which are tighter.
const reconciliationTimeout = 2 * time.Minute

// Extend adds the controllers of both scopes, and what finds out about the environment.
func Extend(_ context.Context, d manager.Deps) error {
	rewrite, err := Rewrite(d.Options)
	if err != nil {
		return err
	}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(d.Manager.GetConfig(), d.Manager.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("setting up discovery: %w", err)
	}
	detector := &environment.Detector{Reader: d.Live, Server: disco, Clock: clock.RealClock{}, Changed: d.Environment.Changed}
	d.Environment.Use(detector.Source)
	if err := d.Manager.Add(detector); err != nil {
		return fmt.Errorf("adding the detection of the environment: %w", err)
	}
	puller := NewPuller(d.Live, rewrite, d.Options)
	pulled := map[scope.Scope]chan event.GenericEvent{}
	for _, s := range d.Options.Scopes() {
		pulled[s] = make(chan event.GenericEvent, maxPulled)
	}
	puller.Subscribe(func(asker types.NamespacedName) { ended(pulled, asker) })
	for _, s := range d.Options.Scopes() {
		c := s.Client(d.Manager.GetClient())
		r := &Reconciler{
			Scope: s, Client: c, Live: s.Reader(d.Live), Mapper: d.Manager.GetRESTMapper(), Clock: clock.RealClock{},
			Puller: puller, Environments: detector, Rewrite: rewrite, HashModifier: d.Options.PackageHashModifier, Metrics: d.Metrics, Share: d.Share,
			Status:      &status.Writer{Client: c, Kind: s.GroupVersionKind("Package")},
			Deployments: &status.Writer{Client: c, Kind: s.GroupVersionKind("ObjectDeployment")},
		}
		if !s.IsCluster() { // those of ClusterPackages are read as if they were namespaced, and have no namespace for a journal
			r.Journal = &journal.Book{Client: d.Manager.GetClient(), Live: d.Live, Clock: r.Clock}
		}
		if err := r.SetupWithManager(d.Manager, d.Environment.Watch(s, c, &v1alpha1.PackageList{}), pulled[s]); err != nil {
			return err
		}
	}
	return nil
}

// Rewrite is where images are to be had, by the flags.
func Rewrite(o manager.Options) (images.Rewrite, error) {
	var out images.Rewrite
	var err error
	if out.Prefixes, err = rewrite.ParseOverrides(o.ImagePrefixOverrides); err != nil {
		return out, fmt.Errorf("--image-prefix-overrides: %w", err)
	}
	// The hash of what a Package is unpacked from goes through them, longest first: in another order every Package would be unpacked anew.
	slices.SortStableFunc(out.Prefixes, func(a, b rewrite.Override) int { return cmp.Compare(len(b.Source), len(a.Source)) })
	if out.Hosts, err = rewrite.ParseOverrides(o.RegistryHostOverrides); err != nil {
		return out, fmt.Errorf("--registry-host-overrides: %w", err)
	}
	return out, nil
}

// NewPuller pulls with the secrets of the operator's ServiceAccount, which live reads without a cache.
func NewPuller(live client.Reader, rewrite images.Rewrite, o manager.Options) *images.Puller {
	return &images.Puller{Rewrite: rewrite, Refused: o.RefusedNetworks, Signatures: o.Signatures, Clock: clock.RealClock{}, Credentials: func(ctx context.Context) (credentials.Keyring, error) {
		return pullSecrets(ctx, live, o.ServiceAccountNamespace, o.ServiceAccountName)
	}}
}

// maxPulled is how many ends of pulls wait to be heard of; who is missed looks again by itself.
const maxPulled = 1024

// ended passes on that a Package's image was pulled, or that there is room for its pull.
func ended(pulled map[scope.Scope]chan event.GenericEvent, asker types.NamespacedName) {
	s := scope.Namespaced
	if asker.Namespace == "" {
		s = scope.Cluster
	}
	obj := &v1alpha1.Package{}
	obj.Namespace, obj.Name = asker.Namespace, asker.Name
	select {
	case pulled[s] <- event.GenericEvent{Object: s.Object(obj)}:
	default:
	}
}

// SetupWithManager adds the controller. changed has Packages whose environment may have changed, pulled those whose image was asked for in vain.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, changed source.Source, pulled <-chan event.GenericEvent) error {
	pkg, od := r.Scope.Object(&v1alpha1.Package{}), r.Scope.Object(&v1alpha1.ObjectDeployment{})
	err := ctrl.NewControllerManagedBy(mgr).
		Named(r.Scope.Kind("package")).
		For(pkg, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, turnChanged, metadataChanged(r.Scope)))).
		Watches(od, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), pkg, handler.OnlyControllerOwner())).
		WatchesRawSource(changed).
		WatchesRawSource(source.Channel(pulled, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, ReconciliationTimeout: reconciliationTimeout}).
		Complete(outcome.Wrap(r))
	if err != nil {
		return fmt.Errorf("setting up the controller of %ss: %w", r.Scope.Kind("Package"), err)
	}
	return nil
}

// turnChanged passes Packages that a rollout lets have another environment.
var turnChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return e.ObjectOld.GetAnnotations()[v1alpha1.RolloutEnvironmentAnnotation] != e.ObjectNew.GetAnnotations()[v1alpha1.RolloutEnvironmentAnnotation]
}}

// maxPullSecrets bounds how many are read for one pull.
const maxPullSecrets = 100

// pullSecrets are the credentials in the pull secrets of a ServiceAccount. What isn't there is left out.
func pullSecrets(ctx context.Context, c client.Reader, namespace, name string) (credentials.Keyring, error) {
	out := credentials.Keyring{}
	if namespace == "" || name == "" {
		return out, nil
	}
	account := &corev1.ServiceAccount{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, account); err != nil {
		if apierrors.IsNotFound(err) {
			return out, nil
		}
		return out, fmt.Errorf("reading ServiceAccount %s/%s for its pull secrets: %w", namespace, name, err)
	}
	for i, ref := range account.ImagePullSecrets {
		if i >= maxPullSecrets {
			break
		}
		secret := &corev1.Secret{}
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, secret)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return out, fmt.Errorf("reading pull secret %s/%s: %w", namespace, ref.Name, err)
		}
		if err := out.Add(secret); err != nil {
			ctrl.LoggerFrom(ctx).Info("leaving out a pull secret", "reason", err.Error())
		}
	}
	return out, nil
}
