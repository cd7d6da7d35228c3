package testenv

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// StaleClient reads as from a cache that has lost its connection: until Refresh, each object stays as it was when it was first read, or not there. Writes
// go to the API server. Lists are as fresh as ever. It is safe for concurrent use.
type StaleClient struct {
	client.WithWatch

	mu   sync.Mutex
	seen map[string]client.Object // nil values: it was not there
}

// NewStaleClient wraps c.
func NewStaleClient(c client.WithWatch) *StaleClient {
	s := &StaleClient{seen: map[string]client.Object{}}
	s.WithWatch = interceptor.NewClient(c, interceptor.Funcs{Get: s.get})
	return s
}

// Refresh lets reads catch up.
func (s *StaleClient) Refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.seen)
}

func (s *StaleClient) get(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fmt.Sprintf("%T %s", into, key)
	known, ok := s.seen[id]
	if !ok {
		err := c.Get(ctx, key, into, opts...)
		switch {
		case apierrors.IsNotFound(err):
			s.seen[id] = nil
		case err == nil:
			s.seen[id] = into.DeepCopyObject().(client.Object)
		}
		return err
	}
	if known == nil {
		gvk, err := c.GroupVersionKindFor(into)
		if err != nil {
			return err
		}
		return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
	}
	return copyInto(known, into)
}

// copyInto makes into a copy of an object of the same type, by way of its form in JSON.
func copyInto(from, into client.Object) error {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	if err != nil {
		return fmt.Errorf("copying %T: %w", from, err)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(raw, into)
}
