package ignition

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/ignition/server"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/process"
)

// parallelPasses make payloads side by side; most of the time they wait for the API server.
const parallelPasses = 4

func newScheme() (*runtime.Scheme, error) {
	return process.Scheme(hyperv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme, metav1.AddMetaToScheme)
}

// newManager caches metadata of one namespace only, and no Secrets: of what is in those, this process keeps payloads and hashes of tokens.
func newManager(cfg *rest.Config, o Options, ready healthz.Checker) (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	mgr, err := process.NewManager(cfg, process.Options{
		Name: names.IgnitionServer, Scheme: scheme, Serve: process.Serve{Metrics: o.MetricsAddr, Health: o.HealthAddr, Ready: ready},
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{o.Namespace: {}},
			DefaultTransform:  cache.TransformStripManagedFields(),
			// Its own Role is the only one that it may read.
			ByObject: map[client.Object]cache.ByObject{&rbacv1.Role{}: {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, names.IgnitionServer)}},
		},
	})
	if err != nil {
		return nil, err
	}
	return mgr, process.ForgetUnused(mgr)
}

// addReconciler watches token Secrets, and what payloads are made of.
func addReconciler(mgr manager.Manager, r *Reconciler, ready *readiness, secrets *listed) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return requestsFor(r.Namespace, secrets.tokens())
	})
	named := func(names map[string]bool) builder.Predicates {
		return builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool { return names[o.GetName()] }), predicate.ResourceVersionChangedPredicate{})
	}
	oneOrAll := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		if inputSecrets[o.GetName()] {
			return requestsFor(r.Namespace, secrets.tokens())
		}
		return requestsFor(r.Namespace, []string{o.GetName()})
	})
	err := builder.ControllerManagedBy(mgr).
		Named("tokens").
		WatchesRawSource(source.Channel(secrets.changed, oneOrAll)).
		WatchesMetadata(&corev1.ConfigMap{}, all, named(inputConfigMaps)).
		WatchesMetadata(&hyperv1.HostedControlPlane{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: parallelPasses, NeedLeaderElection: ptr.To(false)}).
		Complete(ready.watch(outcome.Wrap(r)))
	if err != nil {
		return fmt.Errorf("adding the controller of tokens: %w", err)
	}
	err = builder.ControllerManagedBy(mgr).
		Named("role").
		For(&rbacv1.Role{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == names.IgnitionServer }))).
		WithOptions(controller.Options{NeedLeaderElection: ptr.To(false)}).
		Complete(outcome.Wrap(secrets))
	if err != nil {
		return fmt.Errorf("adding the controller of the list of tokens: %w", err)
	}
	return nil
}

func requestsFor(namespace string, names []string) (requests []reconcile.Request) {
	for _, name := range names {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return requests
}

// readiness keeps machines away from a replica that does not know all tokens yet.
type readiness struct {
	mu      sync.Mutex
	started bool
	pending map[string]bool
}

// watch notes which Secrets had a pass, with whatever result: one that fails must not keep the others' machines waiting.
func (r *readiness) watch(next reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		result, err := next.Reconcile(ctx, req)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.pending, req.Name)
		return result, err
	})
}

// begin notes what has to have a pass, once it is known.
func (r *readiness) begin(names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started, r.pending = true, map[string]bool{}
	for _, name := range names {
		r.pending[name] = true
	}
}

// check implements healthz.Checker.
func (r *readiness) check(*http.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.started {
		return errors.New("token secrets are not listed yet")
	}
	if len(r.pending) > 0 {
		return fmt.Errorf("%d token secrets had no pass yet", len(r.pending))
	}
	return nil
}

// listen opens the server's port.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listening on --addr %s: %w", addr, err)
	}
	return l, nil
}

// addServer adds the server that machines talk to.
func addServer(mgr manager.Manager, l net.Listener, h *server.Handler, cert func(*tls.ClientHelloInfo) (*tls.Certificate, error)) error {
	if err := mgr.Add(&server.Server{Handler: h, Listener: l, Certificate: cert}); err != nil {
		return fmt.Errorf("adding the server: %w", err)
	}
	return nil
}
