package main

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/testenv"
)

// TestSizesAndPlaces is the operator as it is installed with --enable-size-tagging, with its caches and watches.
func TestSizesAndPlaces(t *testing.T) {
	t.Setenv("ENABLE_SIZE_TAGGING", "1")
	g, s := NewWithT(t), newScene(t, operators[0])
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{hyperv1.AddToScheme, schedulingv1alpha1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	c, hc := s.env.Client(t, scheme), s.obj.(*hyperv1.HostedCluster)
	for _, zone := range []string{"z1", "z2"} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "process-" + zone, Labels: map[string]string{hyperv1.RequestServingComponentLabel: "true", hyperv1.PairedNodesLabel: "process",
			hyperv1.ClusterSizeLabel: "small", corev1.LabelTopologyZone: zone}}}
		g.Expect(c.Create(t.Context(), n)).To(Succeed())
		t.Cleanup(func() { _ = c.Delete(context.Background(), n) })
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		g.Expect(c.Status().Update(t.Context(), n)).To(Succeed())
	}
	t.Cleanup(func() {
		_ = c.Delete(context.Background(), &schedulingv1alpha1.ClusterSizingConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}})
	})
	start(t, newLink(t, s.env), eager, "first", s.arguments()...)
	live := func() *hyperv1.HostedCluster {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(hc), hc)).To(Succeed())
		return hc
	}
	g.Eventually(func() string { return live().Labels[hyperv1.HostedClusterSizeLabel] }, patience).Should(Equal("small"))
	g.Eventually(func() string { return live().Annotations[hyperv1.HostedClusterScheduledAnnotation] }, patience).Should(Equal("true"))
	ask := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, hyperv1.TopologyAnnotation, hyperv1.DedicatedRequestServingComponentsTopology))
	g.Expect(c.Patch(t.Context(), hc, ask)).To(Succeed())
	g.Eventually(func() *metav1.Condition {
		return conditions.Get(live().Status.Conditions, hyperv1.RequestServingNodesReady)
	}, patience).
		Should(HaveField("Status", metav1.ConditionTrue))
	n := &corev1.Node{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Name: "process-z1"}, n)).To(Succeed())
	g.Expect(n.Spec.Taints).To(ContainElement(corev1.Taint{Key: "hypershift.openshift.io/cluster", Value: hc.Namespace + "-" + hc.Name, Effect: corev1.TaintEffectNoSchedule}))
}

// TestSharedIngress is the endpoint as it is installed: ready once it knows where to lead.
func TestSharedIngress(t *testing.T) {
	g, s := NewWithT(t), newScene(t, operators[0])
	ports, err := testenv.FreePorts(3)
	g.Expect(err).NotTo(HaveOccurred())
	p := start(t, newLink(t, s.env), eager, "first", "hypershift-operator", "shared-ingress", "--kubeconfig=KUBECONFIG", "--metrics-addr=0",
		fmt.Sprintf("--listen-names=127.0.0.1:%d", ports[0]), fmt.Sprintf("--listen-clusters=127.0.0.1:%d", ports[1]), fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", ports[2]))
	g.Eventually(func() (int, error) {
		resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", ports[2]))
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		return resp.StatusCode, nil
	}, patience).Should(Equal(http.StatusOK))
	g.Expect(p.ended).NotTo(Receive())
}
