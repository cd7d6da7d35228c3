package admission

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capacity"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/kube/conditions"
)

func TestKeepForCapacity(t *testing.T) {
	g := NewWithT(t)
	always := corev1.ContainerRestartPolicyAlways
	request := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "etcd-0", Annotations: map[string]string{"large": "yes"}, Labels: map[string]string{component.ControlPlaneComponentLabel: "etcd", "other": "x"}}}
	pod.Spec.Containers = []corev1.Container{{Name: "etcd", Env: []corev1.EnvVar{{Name: "SECRET", Value: "hunter2"}}, Resources: request("300m")}}
	pod.Spec.InitContainers = []corev1.Container{{Resources: request("1")}, {RestartPolicy: &always, Resources: request("50m")}}
	kept, err := KeepPod(pod)
	g.Expect(err).NotTo(HaveOccurred())
	got := kept.(*corev1.Pod)
	g.Expect(got.Spec.Containers).To(HaveLen(1))
	g.Expect(got.Spec.Containers[0].Resources.Requests.Cpu().String()).To(Equal("1"), "an init container that ends counts while it runs")
	g.Expect(got.Spec.Containers[0].Env).To(BeEmpty())
	g.Expect(got.Labels).To(Equal(map[string]string{component.ControlPlaneComponentLabel: "etcd"}))
}

func TestConnectorsHaveTheirRoom(t *testing.T) {
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo"}}
	t.Run("When the connector has no pod yet it should be kept room for, and no longer when it has", func(t *testing.T) {
		g := NewWithT(t)
		group := connectorOf(hcp)
		g.Expect(group.Pod.Requests).To(HaveKeyWithValue(corev1.ResourceCPU, int64(5)))
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: "x", Labels: map[string]string{connectorLabel: group.Component}}}
		kept := func(node string) corev1.Pod {
			pod.Spec.NodeName = node
			out, err := KeepPod(pod)
			g.Expect(err).NotTo(HaveOccurred())
			return *out.(*corev1.Pod)
		}
		hosted := map[string]bool{hcp.Namespace: true}
		missing := func(pods ...corev1.Pod) []capacity.Group {
			return tallyOf(pods, hosted).missing(hcp.Namespace, []capacity.Group{group})
		}
		g.Expect(missing()).To(HaveLen(1))
		g.Expect(missing(kept(""))).To(HaveLen(1))
		g.Expect(missing(kept("node"))).To(BeEmpty())
	})
}

func TestWaitingForNodesOfItsOwn(t *testing.T) {
	hc := &hyperv1.HostedCluster{}
	t.Run("When a control plane fits nowhere it should say what is free", func(t *testing.T) {
		NewWithT(t).Expect(waiting(hc, "no room")).To(Equal("no room"))
	})
	t.Run("When nodes of its own are missing it should name these, since room elsewhere is of no use", func(t *testing.T) {
		hc := hc.DeepCopy()
		hc.Status.Conditions = append(hc.Status.Conditions, conditions.False(hyperv1.RequestServingNodesReady, "WaitingForNodes", "No pair is free"))
		NewWithT(t).Expect(waiting(hc, "no room")).To(Equal("The control plane is waiting for dedicated nodes: No pair is free"))
	})
}
