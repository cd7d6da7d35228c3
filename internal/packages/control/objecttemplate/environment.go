package objecttemplate

import (
	"context"
	"sync"
)

// Environment is what templates see as .environment. Who knows more than the version of Kubernetes replaces its source.
type Environment struct {
	mu     sync.Mutex
	source func(ctx context.Context, namespace string) (any, error)
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
