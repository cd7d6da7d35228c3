package hostedcluster

import (
	"context"
	"fmt"
	"testing"

	"hcp.internal/platform/internal/hostedcluster/admission"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capacity"
	"hcp.internal/platform/internal/platform/machine"
	"hcp.internal/platform/internal/release"
)

// machinePod makes the pod of a machine behind the gate.
func (w *world) machinePod(t testing.TB, name, cpu string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	pod.Spec.NodeSelector = map[string]string{"of": w.ns}
	pod.Spec.Tolerations = []corev1.Toleration{{Key: "of", Value: w.ns}}
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: machine.RoomGate}}
	pod.Spec.Containers = []corev1.Container{{Name: "machine", Image: "x", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
	NewWithT(t).Expect(w.client.Create(t.Context(), pod)).To(Succeed())
	return pod
}

func TestMachineRoom(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "default"}}
	g.Expect(client.IgnoreAlreadyExists(w.client.Create(t.Context(), account))).To(Succeed())
	w.room(t, "machines-"+w.ns, "250m")
	c := &admission.Queue{
		Reader: w.client, Clock: clock.RealClock{}, Grows: func(context.Context) (string, error) { return "", nil },
		Demands: func(context.Context, *hyperv1.HostedControlPlane, *release.Release) ([]capacity.Group, *capacity.Group, error) {
			return nil, nil, nil
		},
	}
	m := &admission.Machines{Client: w.client, Queue: c}
	var pods []*corev1.Pod
	for i := range 3 {
		pods = append(pods, w.machinePod(t, fmt.Sprintf("m%d", i), "100m"))
	}
	gates := func() string {
		text := ""
		for _, pod := range pods {
			_, err := m.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pod)})
			g.Expect(err).NotTo(HaveOccurred())
		}
		for _, pod := range pods {
			g.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod)).To(Succeed())
			text += fmt.Sprintf("%s %d ", pod.Name, len(pod.Spec.SchedulingGates))
		}
		return text
	}
	g.Expect(gates()).To(Equal("m0 0 m1 0 m2 1 "), "two fit")
	g.Expect(pods[2].Annotations[machine.WaitingForRoomAnnotation]).To(HavePrefix("Insufficient cpu: it needs 100m CPU; free is machines-"))
	version := pods[2].ResourceVersion
	g.Expect(gates()).To(Equal("m0 0 m1 0 m2 1 "))
	g.Expect(pods[2].ResourceVersion).To(Equal(version), "nothing is written when nothing changed")

	m.Queue = nil
	g.Expect(gates()).To(Equal("m0 0 m1 0 m2 0 "), "where capacity is ignored machines are let through at once")
}
