package cloud

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Options say what the controllers work with.
type Options struct {
	Config    *rest.Config
	VolumeDir string
	// Node is the only one of the cluster; empty: there are several, and volumes wait until the scheduler has chosen one.
	Node string
	Pool netip.Prefix
	Log  logr.Logger
}

// Run runs both controllers until ctx ends. The API server may come up later, or go away and come back.
func Run(ctx context.Context, opts Options) error {
	client, err := kubernetes.NewForConfig(opts.Config)
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	services := factory.Core().V1().Services()
	claims := factory.Core().V1().PersistentVolumeClaims()
	pvs := factory.Core().V1().PersistentVolumes()
	classes := factory.Storage().V1().StorageClasses()

	lb := &loadBalancers{client: client, services: services.Lister(), ledger: newLedger(opts.Pool), log: opts.Log}
	vol := &volumes{client: client, claims: claims.Lister(), volumes: pvs.Lister(), classes: classes.Lister(), dir: opts.VolumeDir, node: opts.Node, log: opts.Log}
	loops := []*loop{
		newLoop(services.Informer(), lb.reconcile, opts.Log.WithValues("controller", "loadbalancer")),
		newLoop(claims.Informer(), vol.reconcileClaim, opts.Log.WithValues("controller", "claim")),
		newLoop(pvs.Informer(), vol.reconcileVolume, opts.Log.WithValues("controller", "volume")),
	}
	classes.Informer() // registers it with the factory
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	for kind, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return fmt.Errorf("the cache of %s was not filled before the end", kind)
		}
	}
	var running sync.WaitGroup
	for _, l := range loops {
		running.Go(func() { l.run(ctx) })
	}
	running.Wait()
	return nil
}

// loop feeds the keys of changed objects to a reconcile function, one at a time.
type loop struct {
	queue     workqueue.TypedRateLimitingInterface[string]
	reconcile func(ctx context.Context, key string) error
	log       logr.Logger
}

const (
	retryFirst = 100 * time.Millisecond
	retryLast  = 30 * time.Second
	// passLimit bounds one pass; each makes at most a few requests to an API server on this machine.
	passLimit = 30 * time.Second
)

func newLoop(informer cache.SharedIndexInformer, reconcile func(context.Context, string) error, log logr.Logger) *loop {
	l := &loop{
		queue:     workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](retryFirst, retryLast)),
		reconcile: reconcile,
		log:       log,
	}
	enqueue := func(obj any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
			l.queue.Add(key)
		}
	}
	// The error says that the informer has stopped, and this one has not started.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, obj any) { enqueue(obj) },
		DeleteFunc: enqueue,
	})
	return l
}

func (l *loop) run(ctx context.Context) {
	go func() {
		<-ctx.Done()
		l.queue.ShutDown()
	}()
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for l.next(ctx) {
		}
	}, time.Second)
}

func (l *loop) next(ctx context.Context) bool {
	key, shutdown := l.queue.Get()
	if shutdown {
		return false
	}
	defer l.queue.Done(key)
	pctx, cancel := context.WithTimeout(ctx, passLimit)
	defer cancel()
	if err := l.reconcile(pctx, key); err != nil {
		if ctx.Err() == nil {
			l.log.Error(err, "reconciling", "object", key)
		}
		l.queue.AddRateLimited(key)
		return true
	}
	l.queue.Forget(key)
	return true
}
