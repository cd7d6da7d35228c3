package release

import "context"

// ProviderFunc makes a function a Provider.
type ProviderFunc func(ctx context.Context, image string, pullSecret []byte) (*Release, error)

// Lookup implements Provider.
func (f ProviderFunc) Lookup(ctx context.Context, image string, pullSecret []byte) (*Release, error) {
	return f(ctx, image, pullSecret)
}

// WithStatic is for OpenShift payloads, whose operators' images are in part ours.
//
// It adds those of tags that a release lacks. What the payload holds itself stays, so that an operator upgrade rolls nothing.
func WithStatic(p Provider, tags map[string]string) Provider {
	return decorate(p, func(r *Release) {
		for tag, image := range tags {
			if _, ok := r.ImageFor(tag); !ok && image != "" {
				r.Images[tag] = image
			}
		}
	})
}

// WithImageOverrides is for OpenShift payloads, of which annotation hypershift.openshift.io/image-overrides replaces images: those of each tag in tags,
// present or not.
func WithImageOverrides(p Provider, tags map[string]string) Provider {
	return decorate(p, func(r *Release) {
		for tag, image := range tags {
			if image != "" {
				r.Images[tag] = image
			}
		}
	})
}

func decorate(p Provider, change func(*Release)) Provider {
	return ProviderFunc(func(ctx context.Context, image string, pullSecret []byte) (*Release, error) {
		r, err := p.Lookup(ctx, image, pullSecret)
		if err != nil {
			return nil, err
		}
		r = r.clone() // r is shared with the cache
		change(r)
		return r, nil
	})
}
