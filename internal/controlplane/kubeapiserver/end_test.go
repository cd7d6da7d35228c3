package kubeapiserver

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/testenv"
)

// With Kubernetes' own controllers, so that the collector of garbage takes part.
func TestEnd(t *testing.T) {
	env := testenv.Start(t)
	env.StartControllers(t)
	env.StartWorkloadControllers(t)
	c := env.Client(t, clientgoscheme.Scheme)

	// serve makes a server as the control-plane-operator does, whose pod runs on a node, and its owner.
	serve := func(g Gomega, ns string) (owner *corev1.ConfigMap, pod *corev1.Pod) {
		owner = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "owner"}}
		g.Expect(c.Create(t.Context(), owner)).To(Succeed())
		labels := map[string]string{"app": Name}
		g.Expect(c.Create(t.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: Name, Labels: labels,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}}},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: ptr.To[int64](135), Containers: []corev1.Container{{Name: container, Image: "i"}}}},
			},
		})).To(Succeed())
		g.Expect(c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "default"}})).To(Or(Succeed(), Satisfy(apierrors.IsAlreadyExists)))
		pods := &corev1.PodList{}
		g.Eventually(func(g Gomega) {
			g.Expect(c.List(t.Context(), pods, client.InNamespace(ns))).To(Succeed())
			g.Expect(pods.Items).To(HaveLen(1))
		}, time.Minute).Should(Succeed())
		pod = &pods.Items[0]
		g.Expect(c.SubResource("binding").Create(t.Context(), pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "n"}})).To(Succeed())
		return owner, pod
	}

	t.Run("When its owner goes right after, it should end within a second and none should come again", func(t *testing.T) {
		g := NewWithT(t)
		ns := env.Namespace(t)
		owner, pod := serve(g, ns)
		g.Expect(End(t.Context(), c, ns)).To(Succeed())
		g.Expect(c.Delete(t.Context(), owner)).To(Succeed())
		g.Eventually(func(g Gomega) {
			for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}} {
				g.Expect(c.List(t.Context(), list, client.InNamespace(ns))).To(Succeed())
				g.Expect(list).To(HaveField("Items", BeEmpty()))
			}
		}, time.Minute).Should(Succeed())
		pods := &corev1.PodList{}
		g.Expect(c.List(t.Context(), pods, client.InNamespace(ns))).To(Succeed())
		for i := range pods.Items {
			if p := &pods.Items[i]; p.Name != pod.Name {
				g.Expect(p.Spec.NodeName).To(BeEmpty(), "one more pod was made and not told")
				continue
			}
			g.Expect(pods.Items[i].DeletionGracePeriodSeconds).To(HaveValue(BeEquivalentTo(endGrace)))
		}
	})

	t.Run("When there is none it should do nothing", func(t *testing.T) {
		NewWithT(t).Expect(End(t.Context(), c, env.Namespace(t))).To(Succeed())
	})
}
