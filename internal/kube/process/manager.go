package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/hotloop"
)

// Options are what differs between processes.
type Options struct {
	// Name is that of the process: its events come from it.
	Name string
	// Scheme has the kinds that its clients and caches know.
	Scheme *runtime.Scheme
	// Cache and Client say what is held in memory, and what is read past that.
	Cache  cache.Options
	Client client.Options
	// Serve says what is served, and where.
	Serve Serve
	// Lease is what controllers wait for before they begin; nil: for nothing.
	Lease *Lease
	// Stop is how long what it runs may take to end when the process is told to; 0: half a minute.
	Stop time.Duration
	// HotLoops looks at everything that the cache sees; nil: nobody looks. HotLoopOwner is its Reporter's Owner, which may be nil.
	HotLoops     *hotloop.Detector
	HotLoopOwner func(client.Reader) func(context.Context, client.Object) *corev1.ObjectReference
}

// NewManager makes the manager of a process. Its configuration, GetConfig, is fenced by the lease: whoever makes other clients takes that.
//
// Controllers of several managers in one process may have the same names: tests run a process twice, and ours are constants that are seen in one place.
func NewManager(cfg *rest.Config, o Options) (manager.Manager, error) {
	if err := apply.RegisterDefault(); err != nil && !errors.As(err, new(prometheus.AlreadyRegisteredError)) {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	metrics, err := o.Serve.metrics()
	if err != nil {
		return nil, err
	}
	profiles, err := loopback(o.Serve.Pprof)
	if err != nil {
		return nil, err
	}
	options := ctrl.Options{
		Controller: Queue(), MapperProvider: NewMapper, Scheme: o.Scheme, Cache: o.Cache, Client: o.Client,
		Metrics: metrics, HealthProbeBindAddress: o.Serve.Health, PprofBindAddress: profiles,
	}
	if o.Stop > 0 {
		options.GracefulShutdownTimeout = &o.Stop
	}
	if o.HotLoops != nil {
		options.Cache = o.HotLoops.Watch(options.Cache)
	}
	if cfg, err = o.Lease.elect(cfg, &options); err != nil {
		return nil, err
	}
	cfg, flush, err := trace(context.Background(), o.Name, cfg) // for as long as the process
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(cfg, options)
	if err != nil {
		return nil, fmt.Errorf("setting up the connection to the management cluster: %w", err)
	}
	if flush != nil {
		if err := mgr.Add(flush); err != nil {
			return nil, err
		}
	}
	if err := addChecks(mgr, o.Serve.Ready); err != nil {
		return nil, err
	}
	if o.HotLoops == nil {
		return mgr, nil
	}
	reporter := hotloop.Reporter{Events: mgr.GetEventRecorder(o.Name)}
	if o.HotLoopOwner != nil {
		reporter.Owner = o.HotLoopOwner(mgr.GetClient())
	}
	return mgr, o.HotLoops.SetupWithManager(mgr, reporter)
}

// Workers are the options of a controller that makes so many passes at a time, and pauses after a pass that failed: first least, and each time
// twice as long, up to most.
func Workers(passes int, least, most time.Duration) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: passes,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](least, most),
	}
}

// Queue has the controllers of a manager use client-go's rate-limited queue. Put it into the manager's Options.Controller; NewManager does.
//
// controller-runtime's own default, its priority queue, may never end (its issue 3538, versions up to 0.24): an item that is handed over while the
// queue shuts down has nobody to take it, and the lock is kept. An operator that is told to stop then holds its lease for another 30 s, in which
// nobody else may work. Versions with the repair need Kubernetes 1.37's libraries; with them this function goes.
func Queue() config.Controller {
	return config.Controller{UsePriorityQueue: ptr.To(false), SkipNameValidation: ptr.To(true)}
}
