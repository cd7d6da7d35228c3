package platform

import (
	"context"
	"net/netip"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/cluster"
	"hcp.internal/platform/internal/platform/machine"
)

// What follows are interfaces of which a platform implements those that it needs. None and Local need none of them, and pay for none.

// Defaulter fills in fields of a HostedCluster that others depend on, before anything is made.
type Defaulter interface {
	// Default changes hc and tells whether it did. The same twice changes nothing. It is not called while the cluster is paused.
	Default(hc *hyperv1.HostedCluster) (changed bool)
}

// DomainFinder is implemented by platforms that know the base domain of a HostedCluster that has none.
type DomainFinder interface {
	// BaseDomain finds it; empty: the HostedCluster has one, or needs none. An error names the field and the remedy, and no answer of another cluster; it may
	// pass. c is the management cluster, live reads it without a cache. It is bounded in time, and is not called while the cluster is paused.
	BaseDomain(ctx context.Context, c client.Client, live client.Reader, hc *hyperv1.HostedCluster) (domain string, err error)
}

// Supporter is implemented by platforms that need something of the installation.
type Supporter interface {
	// Supported says why this installation can't host the cluster, with the remedy; nil: it can. getenv reads the operator's environment.
	Supported(hc *hyperv1.HostedCluster, getenv func(string) string) error
}

// Validator finds mistakes that the schema can't.
type Validator interface {
	// Mistakes are texts that name the field, what is wrong with it, and what to write.
	Mistakes(hc *hyperv1.HostedCluster) []string
}

// ChangeValidator finds changes of a HostedCluster that the schema takes, and that can't be carried out.
type ChangeValidator interface {
	// ForbiddenChanges are texts as those of Validator. hcp is the control plane as it is: while there are any it is not written.
	ForbiddenChanges(hc *hyperv1.HostedCluster, hcp *hyperv1.HostedControlPlane) []string
}

// Observer is implemented by platforms with objects of their own in the control plane's namespace.
type Observer interface {
	// Observe reads them. An error means that the API server could not be read.
	Observe(ctx context.Context, reader client.Reader, hc *hyperv1.HostedCluster, hcpNamespace string) ([]client.Object, error)
}

// ConditionReporter has conditions of HostedClusters that no other platform has. It is pure.
type ConditionReporter interface {
	// Conditions to set, and types of those to remove. Their observedGeneration is the caller's.
	Conditions(in cluster.Input) (set []metav1.Condition, absent []string)
}

// PoolAware is implemented by platforms whose infrastructure object depends on the NodePools.
type PoolAware interface {
	// CompleteInfra changes what InfraCR returned.
	CompleteInfra(infra client.Object, hc *hyperv1.HostedCluster, pools []hyperv1.NodePool) error
}

// PolicyKeeper is implemented by platforms whose machines may be pods of another cluster, where a NetworkPolicy bounds them.
type PolicyKeeper interface {
	// KeepPolicy writes the policy there unless it is as it should be, and says how that went, without an answer of that cluster; nil: no machine is
	// elsewhere. spec is what the policy says, given the networks of that cluster, which it keeps machines away from. live reads the management cluster
	// without a cache. It is bounded in time, and is not called while the cluster is paused.
	KeepPolicy(ctx context.Context, live client.Reader, hc *hyperv1.HostedCluster, hcpNamespace string,
		spec func(networks []netip.Prefix) networkingv1.NetworkPolicySpec) *metav1.Condition
	// DropPolicy deletes it when the HostedCluster goes. A cluster that can't be asked is waited for ten minutes: until then that is an error.
	DropPolicy(ctx context.Context, live client.Reader, hc *hyperv1.HostedCluster, hcpNamespace string, now time.Time) error
}

// Companion is implemented by platforms whose infrastructure object refers to others.
type Companion interface {
	// Companions are applied before the infrastructure object, in their own namespaces.
	Companions(hc *hyperv1.HostedCluster, hcpNamespace string) ([]client.Object, error)
}

// InfraKeeper is implemented by platforms whose provider leaves the infrastructure object alone, since it is annotated as managed by others:
// cluster.x-k8s.io/managed-by. Then the operator says that it is ready.
type InfraKeeper interface {
	// InfraStatus is what the status of the infrastructure object is to hold; more may be in it.
	InfraStatus() map[string]any
}

// PoolReporter has conditions of NodePools that no other platform has. It is pure, and asked once the release is known, so that it can say
// more than an error of MachineTemplate. ValidPlatformImage False stops the pass.
type PoolReporter interface {
	PoolConditions(in machine.Input) (set []hyperv1.NodePoolCondition, absent []string)
}

// ImageKeeper is implemented by platforms that keep boot images of NodePools where machines are made, so that not each machine gets its own.
type ImageKeeper interface {
	// KeptImage tells what is kept for a pool, and what is to be; nil: nothing, and nothing was. An error names the field and the remedy, and no answer of
	// another cluster; it may pass. live reads the management cluster without a cache. It is bounded in time.
	KeptImage(ctx context.Context, live client.Reader, in machine.Input) (*machine.KeptImage, error)
	// KeepImage makes what in.NodePool.Status.Platform names. That it is there is fine.
	KeepImage(ctx context.Context, c client.Client, live client.Reader, in machine.Input) error
	// DropImages removes those of the names, or all of the pool when names is nil. The HostedCluster may be gone.
	DropImages(ctx context.Context, c client.Client, live client.Reader, pool *hyperv1.NodePool, names []string) error
}

// MachineReporter has conditions of NodePools that follow from their infrastructure machines.
type MachineReporter interface {
	// MachineKind is that of infrastructure machines.
	MachineKind() schema.GroupVersionKind
	// MachineConditions is pure. machines are those of the pool that are not being deleted, by name.
	MachineConditions(machines []unstructured.Unstructured) []hyperv1.NodePoolCondition
}

// DeletionReporter has conditions that a HostedCluster repeats of its control plane while it is being deleted, too: the rest of the deletion goes by them.
type DeletionReporter interface {
	// DeletionConditions is pure. Their observedGeneration is the caller's.
	DeletionConditions(hcp *hyperv1.HostedControlPlane) []metav1.Condition
}

// MachineExplainer puts into words what the provider says of a machine that doesn't come to be.
type MachineExplainer interface {
	// ExplainMachine says of an infrastructure machine what is wrong and what to do, without what differs each time; empty: it has nothing to say beyond what
	// the Machine says. It is pure.
	ExplainMachine(infra *unstructured.Unstructured) string
}

// Dismantler has objects in the control plane's namespace that have to be gone before the HostedControlPlane goes, because its operator has a
// part in removing what they stand for.
type Dismantler interface {
	// Remaining are those that are still there, read without a cache.
	Remaining(ctx context.Context, reader client.Reader, hc *hyperv1.HostedCluster, hcpNamespace string) ([]client.Object, error)
	// Abandoned are the finalizers of one that is being deleted which nobody is going to remove.
	Abandoned(hc *hyperv1.HostedCluster, obj client.Object, now time.Time) []string
}
