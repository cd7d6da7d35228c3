// Package desk does what may take long, lookups in registries for one, for workers that are few and shared by all tenants: they wait a moment, go on with
// other things, and are told of the end.
package desk

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// ErrPending: there is no answer yet. The work goes on, or begins when there is room; who subscribed hears of it.
var ErrPending = errors.New("still being looked up")

const (
	// maxFlights is how much runs at a time for one namespace, and for all. Each may hold a connection, and read an image.
	maxFlights    = 4
	maxAllFlights = 32
	// failureLife is how long a failure is believed: less than anybody waits before another attempt.
	failureLife = 8 * time.Second
)

// Desk does work by key, once for all who ask for the same. It is safe for concurrent use.
type Desk[T any] struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	flights  map[string]*flight[T]
	running  map[string]int // by namespace
	failures map[string]failure
	// turned are those who came when their namespace, or everybody, had as many as may run.
	turned      map[types.NamespacedName]bool
	subscribers []func(types.NamespacedName)
}

type flight[T any] struct {
	done    chan struct{}
	content T
	err     error
	askers  map[types.NamespacedName]bool // who did not wait for the end
}

type failure struct {
	err   error
	until time.Time
}

// New returns a Desk that tells the time by c.
func New[T any](c clock.PassiveClock) *Desk[T] {
	return &Desk[T]{
		clock: c, flights: map[string]*flight[T]{}, running: map[string]int{}, failures: map[string]failure{}, turned: map[types.NamespacedName]bool{},
	}
}

// Subscribe has hear called when something has ended that an asker did not wait for. It must not block. Call it before the first Ask.
func (d *Desk[T]) Subscribe(hear func(asker types.NamespacedName)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.subscribers = append(d.subscribers, hear)
}

// Ask starts work, or joins the one that runs, and waits for patience. It returns ErrPending when that is not enough, or there is no room. What failed
// just now fails again, unasked. work gets a context without the caller's end, and must have an end of its own.
func (d *Desk[T]) Ask(ctx context.Context, key string, asker types.NamespacedName, patience time.Duration, work func(context.Context) (T, error)) (T, error) {
	var none T
	f, err := d.join(ctx, key, asker, work)
	if err != nil {
		return none, err
	}
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case <-f.done:
		return f.content, f.err
	case <-wait.C:
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-f.done: // just now: nobody would be told
		return f.content, f.err
	default:
		f.askers[asker] = true
		return none, ErrPending
	}
}

func (d *Desk[T]) join(ctx context.Context, key string, asker types.NamespacedName, work func(context.Context) (T, error)) (*flight[T], error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.failures[key]; ok && d.clock.Now().Before(known.until) {
		return nil, known.err
	}
	if f := d.flights[key]; f != nil {
		return f, nil
	}
	if d.running[asker.Namespace] >= maxFlights || len(d.flights) >= maxAllFlights {
		d.turned[asker] = true
		return nil, ErrPending
	}
	f := &flight[T]{done: make(chan struct{}), askers: map[types.NamespacedName]bool{}}
	d.flights[key] = f
	d.running[asker.Namespace]++
	go func() {
		// It outlives the caller that started it.
		content, err := work(context.WithoutCancel(ctx))
		d.land(key, asker.Namespace, f, content, err)
	}()
	return f, nil
}

// land ends work and tells those who went away.
func (d *Desk[T]) land(key, namespace string, f *flight[T], content T, err error) {
	d.mu.Lock()
	f.content, f.err = content, err
	delete(d.flights, key)
	if d.running[namespace]--; d.running[namespace] == 0 {
		delete(d.running, namespace)
	}
	now := d.clock.Now()
	for other, known := range d.failures {
		if !now.Before(known.until) {
			delete(d.failures, other)
		}
	}
	if err != nil {
		d.failures[key] = failure{err: err, until: now.Add(failureLife)}
	}
	tell := f.askers
	for asker := range d.turned {
		tell[asker] = true
	}
	clear(d.turned)
	subscribers := d.subscribers
	close(f.done)
	d.mu.Unlock()
	for asker := range tell {
		for _, hear := range subscribers {
			hear(asker)
		}
	}
}
