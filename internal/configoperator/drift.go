package configoperator

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

const (
	// driftPause is the least time between two passes that changes in the hosted cluster cause; a tenant who edits our objects
	// in a loop gets one pass per pause.
	driftPause = 2 * time.Second
	// listTimeout bounds the request for the place where a watch begins.
	listTimeout = 10 * time.Second
	// shortWatch is a watch that ends sooner than any that works: API servers keep them for minutes. Who ends them at once, such as an aggregated API of a
	// tenant, is asked less and less often.
	shortWatch = 20 * time.Second
)

// Drift watches objects in the hosted cluster, our labelled ones if not said otherwise, and calls for a pass when one changes.
// It is a watch and no cache, on purpose: what it would hold is chosen by the tenant, who may label a million objects.
type Drift struct {
	client client.WithWatch
	which  []client.ListOption
	notify chan<- struct{} // has room for one: more would say the same
	// comings: only that objects come and go matters, not what changes in them.
	comings bool

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]bool
	start chan schema.GroupVersionKind
}

// NewDrift returns a Drift of our labelled objects that sends on notify, which must be buffered.
func NewDrift(hosted client.WithWatch, notify chan<- struct{}) *Drift {
	return newDrift(hosted, notify, client.MatchingLabels{hyperv1.ManagedLabel: "true"})
}

func newDrift(hosted client.WithWatch, notify chan<- struct{}, which ...client.ListOption) *Drift {
	return &Drift{client: hosted, which: which, notify: notify, kinds: map[schema.GroupVersionKind]bool{}, start: make(chan schema.GroupVersionKind, 64)}
}

// Ensure sees to it that a kind is watched. It doesn't wait.
func (d *Drift) Ensure(gvk schema.GroupVersionKind) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kinds[gvk] {
		return
	}
	select {
	case d.start <- gvk:
		d.kinds[gvk] = true
	default: // not running, or busy: the next pass asks again
	}
}

// Start runs the watches until ctx ends.
func (d *Drift) Start(ctx context.Context) error {
	var watches sync.WaitGroup
	defer watches.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case gvk := <-d.start:
			watches.Go(func() { d.follow(ctx, gvk) })
		}
	}
}

// follow watches one kind, again and again while the hosted API is down.
func (d *Drift) follow(ctx context.Context, gvk schema.GroupVersionKind) {
	log := ctrl.LoggerFrom(ctx).WithName("drift").WithValues("kind", gvk.Kind)
	delays := restarts().DelayFunc()
	for ctx.Err() == nil {
		worked := func() { delays = restarts().DelayFunc() } // start over with short waits
		if err := d.watch(ctx, gvk, worked); err != nil && ctx.Err() == nil {
			log.V(1).Info("watch ended", "error", err.Error())
		}
		select {
		case <-ctx.Done():
		case <-time.After(delays()):
		}
	}
}

// restarts are the pauses before a watch begins again.
func restarts() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 6, Cap: time.Minute}
}

// watch reports changes from now on until the watch breaks in a way that loses changes. It calls worked at each change.
func (d *Drift) watch(ctx context.Context, gvk schema.GroupVersionKind, worked func()) error {
	place := newList(gvk)
	listCtx, cancel := context.WithTimeout(ctx, listTimeout)
	err := d.client.List(listCtx, place, append([]client.ListOption{client.Limit(1)}, d.which...)...)
	cancel()
	if err != nil {
		return fmt.Errorf("finding the place to watch %s from: %w", gvk.Kind, err)
	}
	var began time.Time
	delays := restarts().DelayFunc()
	events, err := watchtools.NewRetryWatcherWithContext(ctx, place.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if time.Since(began) < shortWatch {
				select {
				case <-ctx.Done():
					return nil, ctx.Err() // nobody sees it
				case <-time.After(delays()):
				}
			} else {
				delays = restarts().DelayFunc()
			}
			began = time.Now()
			return d.client.Watch(ctx, newList(gvk), append([]client.ListOption{&client.ListOptions{Raw: &options}}, d.which...)...)
		},
	})
	if err != nil {
		return fmt.Errorf("watching %s: %w", gvk.Kind, err)
	}
	defer events.Stop()
	d.report() // for what changed since the last watch
	for event := range events.ResultChan() {
		switch event.Type {
		case watch.Added, watch.Modified, watch.Deleted:
			worked()
			if event.Type != watch.Modified || !d.comings {
				d.report()
			}
		case watch.Error:
			return fmt.Errorf("watching %s: the hosted API ended the watch", gvk.Kind)
		case watch.Bookmark:
		}
	}
	return nil
}

func (d *Drift) report() {
	select {
	case d.notify <- struct{}{}:
	default: // one is waiting already
	}
}

func newList(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return list
}
