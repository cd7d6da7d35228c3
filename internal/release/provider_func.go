package release

import "context"

// ProviderFunc makes a function a Provider.
type ProviderFunc func(ctx context.Context, image string, pullSecret []byte) (*Release, error)

// Lookup implements Provider.
func (f ProviderFunc) Lookup(ctx context.Context, image string, pullSecret []byte) (*Release, error) {
	return f(ctx, image, pullSecret)
}
