package install

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/internal/cli/progress"
)

// operatorPriorityClass is that of the operators that look after all hosted clusters.
const operatorPriorityClass = "hypershift-operator"

// priorityClass is one that the installation makes. Nothing in it but the description can be changed once it exists.
type priorityClass struct {
	name        string
	value       int32
	preemption  corev1.PreemptionPolicy
	description string
}

// priorityClasses in the order in which Pods go when a node runs out of memory: machines first, for a worker is replaced sooner than a
// control plane; etcd must outlive the API servers that use it; and the operator, which repairs all of them, goes last. All are far below
// the system's own (2 000 000 000), so no kubelet takes one of these Pods for critical and ends others for it.
//
// Only the operator may take a running Pod's place. A control plane or a machine that finds no room waits: creating a hosted cluster must
// not end anything of another one.
var priorityClasses = []priorityClass{
	{infrav1.MachinePriorityClass, 99_999_000, corev1.PreemptNever, "Machines of platform Local."},
	{hyperv1.DefaultControlPlanePriorityClass, 100_000_000, corev1.PreemptNever, "Control plane components that are not on the API's critical path."},
	{hyperv1.DefaultAPICriticalPriorityClass, 100_001_000, corev1.PreemptNever, "Control plane components without which the hosted API does not answer."},
	{hyperv1.DefaultEtcdPriorityClass, 100_002_000, corev1.PreemptNever, "etcd of a hosted control plane."},
	{operatorPriorityClass, 100_003_000, corev1.PreemptLowerPriority, "The HyperShift operator."},
}

func (p priorityClass) object() *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{
		ObjectMeta:       metav1.ObjectMeta{Name: p.name},
		Value:            p.value,
		PreemptionPolicy: ptr.To(p.preemption),
		Description:      p.description,
	}
}

// clearPriorityClasses deletes those PriorityClasses of an older version that can't be changed into what objs have, so that applying objs
// makes them anew at once. Running Pods keep the priority that they were admitted with; one that is created in the moment between is
// refused, and its controller tries again.
//
// Classes of the same name that somebody else made stay as they are. They are returned, to be left out of what is applied.
func clearPriorityClasses(ctx context.Context, c client.Client, p *progress.Printer, objs []client.Object) (foreign []client.Object, _ error) {
	for _, obj := range objs {
		want, ok := obj.(*schedulingv1.PriorityClass)
		if !ok {
			continue
		}
		live := &schedulingv1.PriorityClass{}
		err := c.Get(ctx, client.ObjectKeyFromObject(want), live)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading PriorityClass %s: %w", want.Name, err)
		}
		if samePriority(live, want) {
			continue
		}
		if !OwnsPriorityClass(live, want) {
			p.Printf("PriorityClass %s is not ours and stays as it is, %s instead of %s: delete it and install again to have ours", live.Name, describePriority(live), describePriority(want))
			foreign = append(foreign, obj)
			continue
		}
		// As it was read: whoever has put another one there since made his own.
		err = c.Delete(ctx, live, client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("deleting PriorityClass %s to recreate it, because its fields are immutable: %w", live.Name, err)
		}
		p.Printf("PriorityClass %s is recreated: it was %s, and becomes %s", live.Name, describePriority(live), describePriority(want))
	}
	return foreign, nil
}

// samePriority compares what can't be changed. A missing policy means that Pods may preempt others.
func samePriority(a, b *schedulingv1.PriorityClass) bool {
	return a.Value == b.Value && a.GlobalDefault == b.GlobalDefault && preemptionOf(a) == preemptionOf(b)
}

func preemptionOf(class *schedulingv1.PriorityClass) corev1.PreemptionPolicy {
	return ptr.Deref(class.PreemptionPolicy, corev1.PreemptLowerPriority)
}

// OwnsPriorityClass tells that an installation of ours made the class: by this command, or from what it rendered.
func OwnsPriorityClass(live, want *schedulingv1.PriorityClass) bool {
	return applied(live) || live.Description == want.Description
}

func describePriority(class *schedulingv1.PriorityClass) string {
	return fmt.Sprintf("%d with preemptionPolicy %s", class.Value, preemptionOf(class))
}

// without leaves objects out.
func without(objs, out []client.Object) []client.Object {
	return slices.DeleteFunc(slices.Clone(objs), func(o client.Object) bool { return slices.Contains(out, o) })
}
