package hostedcluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	"hcp.internal/platform/internal/hostedcluster/admission"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/desired"
	"hcp.internal/platform/internal/hostedcluster/management"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/kube/conditions"
	packagepod "hcp.internal/platform/internal/packages/control/pod"
)

func TestConnectorsWithoutPackages(t *testing.T) {
	t.Run("When the operator of packages is not installed there should be none", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		r := w.reconciler(w.client)
		count := func() int {
			groups, _, err := r.newQueue(admission.Wait).Demands(t.Context(), desired.HostedControlPlane(&state.Observed{HC: w.hostedCluster()}), nil)
			g.Expect(err).NotTo(HaveOccurred())
			n := 0
			for _, group := range groups {
				if group.Component == packagepod.ConnectorName {
					n++
				}
			}
			return n
		}
		g.Expect(count()).To(BeZero())
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(packagesv1.GroupVersion.WithKind("ObjectSetPhase"), meta.RESTScopeNamespace)
		r.Management = &management.Cluster{Reader: w.client, Mapper: meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{mapper, w.client.RESTMapper()}}, NativeSidecars: true, Clock: clock.RealClock{}}
		g.Expect(count()).To(Equal(1))
	})
}

// room makes a node of so much CPU that is ready, and nothing else runs on.
func (w *world) room(t testing.TB, name, cpu string) *corev1.Node {
	t.Helper()
	g := NewWithT(t)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, "of": w.ns}}}
	g.Expect(w.client.Create(t.Context(), n)).To(Succeed())
	t.Cleanup(func() { _ = w.client.Delete(context.Background(), n) })
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("200")}
	n.Status.Capacity = n.Status.Allocatable
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	g.Expect(w.client.Status().Update(t.Context(), n)).To(Succeed())
	live := &corev1.Node{}
	g.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(n), live)).To(Succeed())
	// No controller here takes off the taint of a node that has just come. This one keeps off what other tests have left.
	live.Spec.Taints = []corev1.Taint{{Key: "of", Value: w.ns, Effect: corev1.TaintEffectNoSchedule}}
	g.Expect(w.client.Update(t.Context(), live)).To(Succeed())
	return live
}

// When more hosted clusters are made at once than fit, those that came first should start, the others say why and make nothing, and the next
// start when there is room.
func TestCapacity(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	w.room(t, "room-"+w.ns, "1300m") // two of some 510 millicores and a spare one
	selected := func(hc *hyperv1.HostedCluster) {
		hc.Spec.ControllerAvailabilityPolicy = hyperv1.SingleReplica // three of everything is the default
		hc.Spec.NodeSelector, hc.Spec.Tolerations = map[string]string{"of": w.ns}, []corev1.Toleration{{Key: "of", Value: w.ns}}
	}
	w.run(t, rest.CopyConfig(w.env.Config), func(r *Reconciler) { r.Admission = r.newQueue(admission.Wait) })
	for i := range 4 {
		hc := w.hostedCluster(selected, func(hc *hyperv1.HostedCluster) { hc.Name = fmt.Sprintf("c%d", i) })
		g.Expect(w.client.Create(t.Context(), hc)).To(Succeed())
	}
	state := func(name string) string {
		hc, err := w.get(t.Context(), name)
		if err != nil {
			return err.Error()
		}
		c := conditions.Get(hc.Status.Conditions, hyperv1.ControlPlaneAdmitted)
		if c == nil {
			return "unknown"
		}
		return string(c.Status)
	}
	for name, want := range map[string]string{"c0": "True", "c1": "True", "c2": "False", "c3": "False"} {
		g.Eventually(state).WithArguments(name).WithTimeout(time.Minute).Should(Equal(want), name)
	}
	g.Eventually(func() string { return w.message(t.Context(), "c2", hyperv1.ControlPlaneAdmitted) }).WithTimeout(time.Minute).Should(ContainSubstring("It is number 1 of 2 in the queue"))
	hc, err := w.get(t.Context(), "c2")
	g.Expect(err).NotTo(HaveOccurred())
	waiting := conditions.Get(hc.Status.Conditions, hyperv1.ControlPlaneAdmitted)
	g.Expect(waiting.Message).To(And(ContainSubstring("m CPU, "), HavePrefix("The control plane needs "), ContainSubstring("CPU is missing"), ContainSubstring("It is number 1 of 2 in the queue"), ContainSubstring("room-"+w.ns)))
	for _, other := range []string{hyperv1.HostedClusterAvailable, hyperv1.HostedClusterProgressing} {
		c := conditions.Get(hc.Status.Conditions, other)
		g.Expect(c.Status).To(Equal(metav1.ConditionFalse), other)
		g.Expect(c.Reason).To(Equal(hyperv1.WaitingForCapacityReason), other)
		g.Expect(c.Message).To(Equal(waiting.Message), other)
	}
	namespaces := &corev1.NamespaceList{}
	g.Expect(w.client.List(t.Context(), namespaces, client.MatchingLabels{hyperv1.HostedControlPlaneLabel: "true"})).To(Succeed())
	for _, ns := range namespaces.Items {
		g.Expect(ns.Name).NotTo(Or(Equal(w.ns+"-c2"), Equal(w.ns+"-c3")), "nothing is made before there is room")
	}

	t.Run("When one of those that run is destroyed the next should start, and only that", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.client.Delete(t.Context(), w.hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Name = "c0" }))).To(Succeed())
		g.Eventually(state).WithArguments("c2").WithTimeout(time.Minute).Should(Equal("True"))
		g.Consistently(state).WithArguments("c3").WithTimeout(3 * time.Second).Should(Equal("False"))
	})
	t.Run("When a node comes the rest should start", func(t *testing.T) {
		g := NewWithT(t)
		w.room(t, "more-"+w.ns, "1300m")
		g.Eventually(state).WithArguments("c3").WithTimeout(time.Minute).Should(Equal("True"))
	})
}

// One that exists is never held back, whatever there is room for.
func TestCapacityLeavesWhatExists(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	obs := &state.Observed{HC: w.hostedCluster(), HCP: &hyperv1.HostedControlPlane{}}
	r := &Reconciler{Admission: &admission.Queue{}} // which can't be asked
	g.Expect(r.admit(t.Context(), obs, time.Now())).To(Succeed())
	g.Expect(obs.Admission.Waits).To(BeFalse())

	obs.HCP = nil
	obs.Namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{hyperv1.HostedClusterAnnotation: names.BackReference(obs.HC)}}}
	g.Expect(r.admit(t.Context(), obs, time.Now())).To(Succeed())
	g.Expect(obs.Admission.Waits).To(BeFalse(), "the operator died between the namespace and the HostedControlPlane")
}
