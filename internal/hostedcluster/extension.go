package hostedcluster

import (
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/release"
)

// Shared is what the controllers of the operator have in common.
type Shared struct {
	Clock    clock.PassiveClock
	Releases *release.Registry
	// Sources is NewSourceCache.
	Sources      cache.Cache
	Capabilities Capabilities
	Scope        *string
	// PrivateCAPI and Platforms: see Reconciler.
	PrivateCAPI bool
	Platforms   platform.Enabled
}

// Extension adds a controller to the operator.
type Extension func(mgr ctrl.Manager, shared Shared) error
