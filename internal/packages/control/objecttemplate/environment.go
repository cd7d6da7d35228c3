package objecttemplate

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"hcp.internal/platform/internal/packages/engine/scope"
)

// Environment is what templates see as .environment. Who knows more than the version of Kubernetes replaces its source.
type Environment struct {
	mu     sync.Mutex
	source func(ctx context.Context, namespace string) (any, error)
	told   []func(ctx context.Context)
}

// NewEnvironment returns an Environment with a first source. namespace is that of the object that is rendered, "" for cluster-scoped ones.
func NewEnvironment(source func(ctx context.Context, namespace string) (any, error)) *Environment {
	return &Environment{source: source}
}

// Use replaces the source. What it returns is encoded as JSON.
func (e *Environment) Use(source func(ctx context.Context, namespace string) (any, error)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.source = source
}

// Get asks the source.
func (e *Environment) Get(ctx context.Context, namespace string) (any, error) {
	e.mu.Lock()
	source := e.source
	e.mu.Unlock()
	return source(ctx, namespace)
}

// Watch is a source of all objects of list's kind, each time that what the environment's source returns may have changed. c is of scope s.
func (e *Environment) Watch(s scope.Scope, c client.Reader, list client.ObjectList) source.Source {
	changed := make(chan event.GenericEvent)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = append(e.told, func(ctx context.Context) { announce(ctx, s, c, list.DeepCopyObject().(client.ObjectList), changed) })
	return source.Channel(changed, &handler.EnqueueRequestForObject{})
}

// announce makes the objects of a kind be looked at.
func announce(ctx context.Context, s scope.Scope, c client.Reader, list client.ObjectList, changed chan<- event.GenericEvent) {
	err := c.List(ctx, list)
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			select {
			case changed <- event.GenericEvent{Object: s.Object(item.(client.Object))}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}
	if err != nil && ctx.Err() == nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing who sees the environment, after a change of it", "list", fmt.Sprintf("%T", list), "scope", s.Kind(""))
	}
}

// Changed tells those who watch, one kind after the other.
func (e *Environment) Changed(ctx context.Context) {
	e.mu.Lock()
	told := slices.Clone(e.told)
	e.mu.Unlock()
	for _, f := range told {
		f(ctx)
	}
}
