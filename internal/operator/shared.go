package operator

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
	// Sources is NewSourceCache, added to the manager.
	Sources      cache.Cache
	Capabilities Capabilities
	Scope        *string
	// PrivateCAPI: the objects of Cluster API are stored in HyperShift's own groups. Platforms are those that hosted clusters may be on here.
	PrivateCAPI bool
	Platforms   platform.Enabled
	// Namespace is the operator's own, OperatorImage what it runs.
	Namespace, OperatorImage string
	// Features are those that are on.
	Features Features
	// DedicatedNodes: hosted clusters that ask for it get nodes of their own for what serves their requests, while sizes are on.
	DedicatedNodes bool
	// EtcdBackups is how many successful HCPEtcdBackups of a control plane are kept.
	EtcdBackups int
}

// Extension adds a controller to the operator.
type Extension func(mgr ctrl.Manager, shared Shared) error

// Capabilities is what the management cluster offers beyond plain Kubernetes.
type Capabilities struct {
	// ClusterAPI: the kinds of Cluster API are served.
	ClusterAPI bool
	// Routes of OpenShift's ingress are served.
	Routes bool
	// SecurityContextConstraints assign users to pods, so that we don't have to.
	SecurityContextConstraints bool
}
