package operator

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/oci/rewrite"
	"hcp.internal/platform/internal/release"
)

// LookupPatience is how long a worker waits for a registry. They are few and for all tenants; registries answer in tens of milliseconds, those
// of some tenants never.
const LookupPatience = 2 * time.Second

// Lookups are the ends of lookups of images that a worker did not wait for, as events of the HostedCluster that they were for. provider is usually a
// *release.Registry; any other never makes anybody wait.
func Lookups(provider any) <-chan event.GenericEvent {
	const most = 1024 // who is missed looks again by itself
	events := make(chan event.GenericEvent, most)
	if registry, ok := provider.(*release.Registry); ok {
		registry.Subscribe(func(asker types.NamespacedName) {
			hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: asker.Namespace, Name: asker.Name}}
			select {
			case events <- event.GenericEvent{Object: hc}:
			default:
			}
		})
	}
	return events
}

// WithMirrorsOf is the provider of releases as it looks for the images of hc: first in the mirrors that hc names. Only a *release.Registry
// knows mirrors, and for whom it looks; any other provider, as tests have, stays as it is. P is an interface that *release.Registry has.
func WithMirrorsOf[P any](provider P, hc *hyperv1.HostedCluster) P {
	registry, ok := any(provider).(*release.Registry)
	if !ok {
		return provider
	}
	var mirrors []rewrite.Mirror
	for _, s := range hc.Spec.ImageContentSources {
		mirrors = append(mirrors, rewrite.Mirror{Source: s.Source, Mirrors: s.Mirrors})
	}
	if view, ok := any(registry.WithMirrors(mirrors).For(client.ObjectKeyFromObject(hc))).(P); ok {
		return view
	}
	return provider
}
