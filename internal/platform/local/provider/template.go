package provider

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/internal/kube/patch"
)

// maxPods is the kubelet's default.
const maxPods = 110

// Host is what a machine without bounds offers: a machine shares its node's processors and memory.
type Host struct {
	CPU, Memory  resource.Quantity
	Architecture string
}

// TemplateReconciler tells autoscalers what a machine made from a LocalMachineTemplate offers. It is the only writer of its status.
type TemplateReconciler struct {
	Client client.Client
	Host   Host
}

// Reconcile reports one LocalMachineTemplate.
func (r *TemplateReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	t := &infrav1.LocalMachineTemplate{}
	if err := r.Client.Get(ctx, req.NamespacedName, t); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !t.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	before := t.DeepCopy()
	t.Status = infrav1.LocalMachineTemplateStatus{
		Capacity: capacity(t.Spec.Template.Spec, r.Host),
		NodeInfo: infrav1.NodeInfo{Architecture: r.Host.Architecture, OperatingSystem: "linux"},
	}
	if same(before.Status.Capacity, t.Status.Capacity) {
		t.Status.Capacity = before.Status.Capacity // other notations of the same numbers are no change
	}
	if err := patch.Status(ctx, r.Client, before, t); err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the status of LocalMachineTemplate %s: %w", req, err)
	}
	return ctrl.Result{}, nil
}

func same(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, q := range a {
		if other, ok := b[name]; !ok || q.Cmp(other) != 0 {
			return false
		}
	}
	return true
}

// capacity is what the kubelet of such a machine reports.
func capacity(spec infrav1.LocalMachineSpec, host Host) corev1.ResourceList {
	out := corev1.ResourceList{
		corev1.ResourceCPU: host.CPU, corev1.ResourceMemory: host.Memory, corev1.ResourcePods: *resource.NewQuantity(maxPods, resource.DecimalSI),
	}
	// A bound above what the host has is none.
	if spec.CPU != nil && spec.CPU.Cmp(host.CPU) < 0 {
		out[corev1.ResourceCPU] = *resource.NewQuantity(processors(*spec.CPU), resource.DecimalSI)
	}
	if spec.Memory != nil && spec.Memory.Cmp(host.Memory) < 0 {
		out[corev1.ResourceMemory] = *spec.Memory
	}
	return out
}
