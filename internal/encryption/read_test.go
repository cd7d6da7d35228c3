package encryption

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"hcp.internal/platform/internal/contract/names"
)

func TestConverged(t *testing.T) {
	servers := func(replicas, available int32, hash string) client.Object {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: names.KubeAPIServer}}
		d.Spec.Replicas, d.Spec.Template.Annotations = ptr.To(replicas), map[string]string{HashAnnotation: hash}
		d.Status = appsv1.DeploymentStatus{Replicas: replicas, UpdatedReplicas: replicas, AvailableReplicas: available}
		return d
	}
	pod := func(hash string, phase corev1.PodPhase) client.Object {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kube-apiserver-" + hash, Labels: map[string]string{"app": names.KubeAPIServer}, Annotations: map[string]string{HashAnnotation: hash}},
			Status:     corev1.PodStatus{Phase: phase},
		}
	}
	for name, tc := range map[string]struct {
		objs []client.Object
		want bool
	}{
		"When every server has it it should be so":                           {objs: []client.Object{servers(2, 2, "new"), pod("new", corev1.PodRunning)}, want: true},
		"When a server was evicted it should not count":                      {objs: []client.Object{servers(2, 2, "new"), pod("old", corev1.PodFailed)}, want: true},
		"When a server of before runs it should not be so":                   {objs: []client.Object{servers(2, 2, "new"), pod("old", corev1.PodRunning)}},
		"When a server does not get ready it should not be so":               {objs: []client.Object{servers(2, 1, "new")}},
		"When servers are to have another it should not be so":               {objs: []client.Object{servers(2, 2, "old")}},
		"When the servers sleep nothing is known of it and it should not be": {objs: []client.Object{servers(0, 0, "new")}},
		"When there are no servers yet it should not be so":                  {},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
			g.Expect(appsv1.AddToScheme(scheme)).To(Succeed())
			got, err := Converged(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objs...).Build(), "ns", "new")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}
