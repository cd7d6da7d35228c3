// Package machine holds what the NodePool controller and a platform tell each other about machines.
package machine

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/release"
)

// Input is what a platform may look at to say what machines of a NodePool are like.
type Input struct {
	HostedCluster *hyperv1.HostedCluster
	NodePool      *hyperv1.NodePool
	// Release is that of the NodePool.
	Release *release.Release
}

// Template is what machines of a NodePool are copied from.
type Template struct {
	// Object is the infrastructure provider's template without name and namespace, with apiVersion and kind. The NodePool controller
	// names it after its content, so that another content is another object.
	Object client.Object
	// Identity is the part of the content that the name depends on: a change of anything else reaches new machines only. nil means
	// the spec.
	Identity any
	// FailureDomain is where machines are made; empty leaves it to the provider.
	FailureDomain string
	// Capacity is what a machine offers, for autoscalers that have none to look at; nil when unknown, or when the provider itself
	// writes status.capacity.
	Capacity *Capacity
	// UpdateInPlace has what Identity leaves out written to the template that there is, too. Without it a template never changes.
	UpdateInPlace bool
	// Interruptible machines may be taken away at any time: they are labelled so, and have a health check that replaces all of them at once.
	Interruptible bool
	// Retag is what infrastructure machines that exist get; nil: they stay as they were made.
	Retag *Retag
	// Companions are objects that Object refers to, applied before it in their own namespaces. They belong to the cluster: other pools may need them, too,
	// and the platform removes them with it.
	Companions []client.Object
	// PoolAnnotations are noted on the NodePool once the template exists: what was decided for this pool when it was made.
	PoolAnnotations map[string]string
}

// Retag changes a field of infrastructure machines that exist without replacing them.
type Retag struct {
	// Kind of the machines.
	Kind schema.GroupVersionKind
	// Field of the spec, such as additionalTags, and its value as JSON has it; nil removes the field.
	Field string
	Value any
}

// KeptImage is what a platform keeps of a NodePool's boot images where its machines are made.
type KeptImage struct {
	// Status is what the NodePool's status is to say of it; nil: nothing. Templates are made from it.
	Status *hyperv1.NodePoolPlatformStatus
	// There: the image is kept already, or none has to be.
	There bool
	// Old are names of others, which are of no use once no machine is made from them.
	Old []string
}

// NotReadyError says that machines can't be described yet, though nothing is wrong: it is tried again soon, and no condition tells of a mistake.
type NotReadyError struct {
	// Waiting is what is waited for.
	Waiting string
}

// Error says what is waited for.
func (e *NotReadyError) Error() string { return "waiting for " + e.Waiting }

// Capacity is what a machine offers.
type Capacity struct {
	CPU    resource.Quantity
	Memory resource.Quantity
	GPU    int64
}

// Traits are what differs between platforms in the life of machines.
type Traits struct {
	// Managed is whether Cluster API makes machines. Without it a NodePool is complete once its user data exists.
	Managed bool
	// TemplateKind is the kind of machine templates, when Managed.
	TemplateKind schema.GroupVersionKind
	// Architectures that spec.arch may have.
	Architectures []string
	// ScaleFromZero tells that autoscalers know what a machine would offer, so that a pool may shrink to none.
	ScaleFromZero bool
	// SlowBoot machines need longer until they count as unhealthy: bare metal.
	SlowBoot bool
	// KeepUserData keeps the user data of earlier configurations, because running machines read it again.
	KeepUserData bool
}
