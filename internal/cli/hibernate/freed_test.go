package hibernate

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
)

func TestMemory(t *testing.T) {
	pod := func(name, label, value, asks string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name, Labels: map[string]string{label: value}}, Status: corev1.PodStatus{Phase: phase},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(asks)}}}, {Name: "b"}}}}
	}
	const component = hyperv1.ControlPlaneComponentLabel
	c := fake.NewClientBuilder().WithScheme(connect.Scheme()).WithObjects(
		pod("etcd-0", component, "etcd", "600Mi", corev1.PodRunning), pod("kas", component, "kube-apiserver", "1Gi", corev1.PodPending),
		pod("cpo", component, "control-plane-operator", "80Mi", corev1.PodRunning), pod("capi", component, "cluster-api", "20Mi", corev1.PodRunning),
		pod("worker", infrav1.MachineLabel, "demo-x", "700Mi", corev1.PodRunning), pod("ended", component, "etcd-defrag", "5Gi", corev1.PodSucceeded),
		pod("other", "app", "web", "5Gi", corev1.PodRunning)).Build()
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}}
	t.Run("When a cluster goes to sleep it should say what goes with it, and what stays", func(t *testing.T) {
		g := NewWithT(t)
		m, err := memoryOf(t.Context(), c, hc)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.String()).To(Equal("requests of 1624 MiB of memory go with its control plane, and of 700 MiB with its workers; 100 MiB stay for what wakes it"))
	})
	t.Run("When the pods of the control plane may not be listed it should say nothing, and be no reason to stop", func(t *testing.T) {
		forbidden := interceptor.NewClient(c, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("forbidden")
		}})
		NewWithT(t).Expect(freedBy(t.Context(), forbidden, hc)).To(BeEmpty())
	})
	t.Run("When workers are elsewhere they should not be told of", func(t *testing.T) {
		NewWithT(t).Expect(memory{controlPlane: 5 * mebi}.String()).To(Equal("requests of 5 MiB of memory go with its control plane; 0 MiB stay for what wakes it"))
	})
}
