package configoperator

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestRemoval(t *testing.T) {
	w := newPayloadWorld(t)
	g := NewWithT(t)
	w.define(t, "operator.openshift.io/v1")
	w.define(t, "imageregistry.operator.openshift.io/v1")
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	server := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: "kube-apiserver"}, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}, Template: pod}}
	balancer := service("default", "web")
	balancer.Spec.Type = corev1.ServiceTypeLoadBalancer
	router := service("default", "router")
	router.Spec.Type, router.Labels = corev1.ServiceTypeLoadBalancer, map[string]string{ingressOwned: "default"}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{
		Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x"}},
	}}
	controller := unstructuredOf("operator.openshift.io/v1", "IngressController", "openshift-ingress-operator", "default")
	registry := unstructuredOf("imageregistry.operator.openshift.io/v1", "Config", "", "cluster")
	g.Expect(w.client.Create(t.Context(), server)).To(Succeed())
	for _, o := range []client.Object{balancer, router, volume, controller, registry} {
		g.Expect(w.hosted.Create(t.Context(), o)).To(Succeed())
	}
	w.hcp.Finalizers, w.hcp.Annotations = []string{"test/hold"}, map[string]string{hyperv1.CleanupCloudResourcesAnnotation: "true"}
	g.Expect(w.client.Update(t.Context(), w.hcp)).To(Succeed())
	t.Cleanup(func() {
		hcp := w.hcp.DeepCopy()
		_ = w.client.Patch(context.Background(), hcp, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	})
	g.Expect(w.client.Delete(t.Context(), w.hcp)).To(Succeed())

	t.Run("When the version operator may still run it should remove nothing", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.pass(t)).To(Succeed())
		g.Expect(w.hosted.Get(t.Context(), client.ObjectKeyFromObject(balancer), balancer)).To(Succeed())
		g.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(w.hcp), w.hcp)).To(Succeed())
		w.hcp.Status.Conditions = append(w.hcp.Status.Conditions, metav1.Condition{Type: hyperv1.CVOScaledDown, Status: metav1.ConditionTrue, Reason: "x", LastTransitionTime: metav1.Now()})
		g.Expect(w.client.Status().Update(t.Context(), w.hcp)).To(Succeed())
	})
	t.Run("When a cluster with a cloud is deleted it should have everything removed, and name what is left", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.pass(t)).To(Succeed())
		c := w.condition(t, hyperv1.CloudResourcesDestroyed)
		g.Expect(c.Reason).To(Equal(hyperv1.RemainingCloudResourcesReason))
		g.Expect(c.Message).To(And(ContainSubstring("IngressControllers"), ContainSubstring("load balancers"), ContainSubstring("volumes")))
		g.Expect(w.hosted.Get(t.Context(), client.ObjectKeyFromObject(balancer), balancer)).To(MatchError(apierrors.IsNotFound, "not found"))
		g.Expect(w.hosted.Get(t.Context(), client.ObjectKeyFromObject(router), router)).To(Succeed(), "it goes with its IngressController")
		g.Expect(nested(w.get(t, "imageregistry.operator.openshift.io/v1", "Config", "", "cluster"), "spec", "managementState")).To(Equal("Removed"))
	})
	t.Run("When something new is asked for meanwhile it should be refused", func(t *testing.T) {
		g := NewWithT(t)
		g.Eventually(func() error { return w.hosted.Create(t.Context(), service("default", "late"), client.DryRunAll) }).WithTimeout(30 * time.Second).ShouldNot(Succeed())
	})
	t.Run("When nothing is left it should say so, and not look again", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.hosted.Get(t.Context(), client.ObjectKeyFromObject(volume), volume)).To(Succeed())
		volume.Finalizers = nil
		g.Expect(w.hosted.Update(t.Context(), volume)).To(Succeed())
		g.Expect(w.hosted.Delete(t.Context(), volume)).To(Succeed())
		g.Eventually(func() metav1.ConditionStatus {
			g.Expect(w.pass(t)).To(Succeed())
			return w.condition(t, hyperv1.CloudResourcesDestroyed).Status
		}).WithTimeout(30 * time.Second).Should(Equal(metav1.ConditionTrue))
		w.quiet(t)
	})
}

func TestRemovalIsSkipped(t *testing.T) {
	clk := clocktesting.NewFakePassiveClock(noon)
	silent := errors.New("connection refused")
	t.Run("When the hosted API is silent for long, or often, it should no longer be waited for", func(t *testing.T) {
		g := NewWithT(t)
		r := &Reconciler{Clock: clk}
		r.noteAnswer(silent)
		clk.SetTime(noon.Add(removalPatience))
		skip, err := r.skipsRemoval(t.Context(), hostedControlPlane())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(skip).To(ContainSubstring("ConnectionFailureTimeout"))
		r = &Reconciler{Clock: clk}
		for range removalFailures {
			r.noteAnswer(silent)
		}
		skip, _ = r.skipsRemoval(t.Context(), hostedControlPlane())
		g.Expect(skip).To(ContainSubstring("MaxConnectionFailuresExceeded"))
		r.noteAnswer(nil)
		g.Expect(r.silences).To(BeZero())
	})
}

func unstructuredOf(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}
