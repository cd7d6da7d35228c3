package hibernate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	kuberead "hcp.internal/platform/internal/kube/read"
)

// page bounds one answer of the management cluster.
const page = 500

// mebi is bytes of a MiB.
const mebi = 1 << 20

// memory is what pods ask for, in bytes, by what becomes of them when their cluster sleeps.
type memory struct {
	controlPlane, machines int64
	// kept is that of the operators which run on.
	kept int64
}

// add counts a pod. Pods that have ended ask for nothing; those of others are none of the cluster.
func (m *memory) add(p *corev1.Pod) {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return
	}
	asked := int64(0)
	for _, c := range p.Spec.Containers {
		asked += c.Resources.Requests.Memory().Value()
	}
	switch component := p.Labels[hyperv1.ControlPlaneComponentLabel]; {
	case p.Labels[infrav1.MachineLabel] != "":
		m.machines += asked
	case names.StaysAwake(component):
		m.kept += asked
	case component != "":
		m.controlPlane += asked
	}
}

// String is for people.
func (m memory) String() string {
	text := fmt.Sprintf("requests of %d MiB of memory go with its control plane", m.controlPlane/mebi)
	if m.machines > 0 {
		text += fmt.Sprintf(", and of %d MiB with its workers", m.machines/mebi)
	}
	return text + fmt.Sprintf("; %d MiB stay for what wakes it", m.kept/mebi)
}

// freedBy says what a cluster gives up; nothing to who may not look at the pods of its control plane, who can have it sleep all the same.
func freedBy(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster) string {
	m, err := memoryOf(ctx, c, hc)
	if err != nil {
		return ""
	}
	return m.String()
}

// memoryOf adds up the pods of a control plane.
func memoryOf(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster) (memory, error) {
	m, pods := memory{}, &corev1.PodList{}
	namespace := names.NamespaceOf(hc)
	for err := range kuberead.Pages(ctx, c, pods, page, client.InNamespace(namespace)) {
		if err != nil {
			return m, fmt.Errorf("listing pods of namespace %s: %w", namespace, err)
		}
		for i := range pods.Items {
			m.add(&pods.Items[i])
		}
	}
	return m, nil
}
