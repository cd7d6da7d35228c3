package hostedcluster

import (
	"context"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/cpo"
	"hcp.internal/platform/internal/hostedcluster/admission"
	"hcp.internal/platform/internal/hostedcluster/adoption"
	"hcp.internal/platform/internal/hostedcluster/capi"
	"hcp.internal/platform/internal/hostedcluster/elsewhere"
	"hcp.internal/platform/internal/hostedcluster/management"
	"hcp.internal/platform/internal/kube/events"
	"hcp.internal/platform/internal/kube/journal"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/release"
)

// Reconciler reconciles HostedClusters. All fields are required unless they say otherwise.
type Reconciler struct {
	Client client.Client // reads from caches that hold only what is ours, writes
	Live   client.Reader // uncached: the user's objects, and where a stale read would destroy something
	Clock  clock.PassiveClock
	// Releases is usually a *release.Registry.
	Releases releases
	// ControlPlaneOperator is what operators of control planes are told of the installation.
	ControlPlaneOperator cpo.Options
	// Environment is what this process was told, which components take over.
	Environment component.Environment
	// OperatorImage is our own image, from which control-plane-operators run when nothing names another.
	OperatorImage string
	Capabilities  operator.Capabilities
	Management    *management.Cluster
	// Mirrors are those of the management cluster, which control planes are told of; nil: none.
	Mirrors *management.Mirrors
	// RandomID gives n characters of [a-z0-9], and UUID an RFC 4122 UUID.
	RandomID func(n int) string
	UUID     func() string
	// Scope restricts the operator to HostedClusters with this value of annotation hypershift.openshift.io/scope; nil: all.
	Scope *string
	// AuditLogs: AuditLogPersistenceConfig cluster is heeded.
	AuditLogs bool
	// Documents: the program beside this one publishes OIDC documents.
	Documents bool
	// PrivateLink: the program beside this one makes VPC endpoint services on AWS.
	PrivateLink bool
	// AzureLink: it makes Private Link services on Azure.
	AzureLink bool
	// PrivateCAPI: the objects of Cluster API are stored in HyperShift's own groups; Client and Live reach them under the standard ones.
	PrivateCAPI bool
	// Direct reaches the management cluster under the names that are stored there, uncached; nil: nobody looks at these.
	Direct client.Reader
	// Platforms are those that hosted clusters may be on here.
	Platforms platform.Enabled
	// CAPIProxyImage is the image of the proxies beside programs that speak Cluster API; empty: OperatorImage.
	CAPIProxyImage string
	// Images are those that the installation names for programs of Cluster API, by annotation; see platform.ImagesFrom.
	Images map[string]string

	// Admission decides when control planes may start; nil: at once.
	Admission *admission.Queue

	// EtcdRecovery: a member of etcd that can't start any more is replaced.
	EtcdRecovery bool

	// EnableCIDebugOutput, MetricsSet, RegistryOverrides and ClusterMonitoring are handed on.
	EnableCIDebugOutput bool
	MetricsSet          string
	RegistryOverrides   string
	ClusterMonitoring   bool

	// Events tells users what became of their cluster; nil: nobody is told.
	Events events.Recorder
	// Journal keeps what became of conditions; nil: nobody does.
	Journal *journal.Book

	uids          management.UIDs
	adopted       adoption.Memory
	toldDeletions events.Limiter
	outcomes      outcome.Outcomes
	elsewhere     elsewhere.Policies
}

func (r *Reconciler) operator() scope.Identity {
	return scope.Identity{PrivateCAPI: r.PrivateCAPI, Scope: r.Scope}
}

// storage knows where objects of Cluster API are stored.
func (r *Reconciler) storage() capi.Storage {
	return capi.Storage{Client: r.Client, Live: r.Live, Direct: r.Direct, Clock: r.Clock, Operator: r.operator()}
}

// releases is what observing needs of release.Registry.
type releases interface {
	Lookup(ctx context.Context, image string, pullSecret []byte) (*release.Release, error)
	Inspect(ctx context.Context, image string, pullSecret []byte) (*release.Info, error)
}
