package access

import (
	"context"
	"errors"
	"sync"
)

// Scope is where a viewer may list a resource.
type Scope struct {
	All        bool
	Namespaces map[string]bool
}

// Has tells whether rows of a namespace are shown.
func (s Scope) Has(namespace string) bool { return s.All || s.Namespaces[namespace] }

// Empty tells that nothing is shown.
func (s Scope) Empty() bool { return !s.All && len(s.Namespaces) == 0 }

// ScopeOf asks where a viewer may list a resource: in all namespaces at first, then in each of some.
func (v *Viewer) ScopeOf(ctx context.Context, resource Resource, namespaces []string) (Scope, error) {
	all, err := v.May(ctx, "list", resource, "")
	if err != nil || all {
		return Scope{All: all}, err
	}
	out := Scope{Namespaces: map[string]bool{}}
	var wait sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	ask := make(chan string)
	for range min(maxAsking, len(namespaces)) {
		wait.Go(func() {
			for ns := range ask {
				ok, err := v.May(ctx, "list", resource, ns)
				mu.Lock()
				if err != nil && len(errs) == 0 {
					errs = append(errs, err)
				}
				if ok {
					out.Namespaces[ns] = true
				}
				mu.Unlock()
			}
		})
	}
	for _, ns := range namespaces {
		ask <- ns
	}
	close(ask)
	wait.Wait()
	return out, errors.Join(errs...)
}
