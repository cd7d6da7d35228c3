package nodepool

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/internal/autoscaler"
	"hcp.internal/platform/internal/testenv"
)

// scaled is a NodePool that is sized by its pods: the controller and the autoscaler are real, Cluster API is played.
type scaled struct {
	*world
	hosted       client.WithWatch
	loop         *autoscaler.Loop
	clock        *testclock.FakeClock
	events, pods *events.FakeRecorder
	made         int
}

func newScaled(t *testing.T) *scaled {
	t.Helper()
	g := NewWithT(t)
	s := &scaled{world: newWorld(t), clock: testclock.NewFakeClock(time.Now()), events: events.NewFakeRecorder(100), pods: events.NewFakeRecorder(100)}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	s.hosted = testenv.StartOther(t).Client(t, scheme)
	o := autoscaler.Defaults()
	s.loop = &autoscaler.Loop{Management: s.client, Hosted: s.hosted, Namespace: s.hcpNS, Options: o, Clock: s.clock, ManagementEvents: s.events, HostedEvents: s.pods}
	g.Expect(s.client.Create(t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.hcpNS, Name: "demo-abcde"}, Spec: clusterv1.ClusterSpec{
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalCluster", Name: "demo"}}})).To(Succeed())
	return s
}

// settle plays Cluster API and the kubelets: as many Machines as the MachineDeployment asks for, each a Ready node.
func (s *scaled) settle(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	ctx := t.Context()
	md := s.deployment(t)
	list := &clusterv1.MachineList{}
	g.Expect(s.client.List(ctx, list, client.InNamespace(s.hcpNS))).To(Succeed())
	slices.SortFunc(list.Items, func(a, b clusterv1.Machine) int { // marked ones go first
		return -len(a.Annotations[autoscaler.DeleteAnnotation]) + len(b.Annotations[autoscaler.DeleteAnnotation])
	})
	want := int(ptr.Deref(md.Spec.Replicas, 0))
	for i := range max(len(list.Items)-want, 0) {
		m := &list.Items[i]
		g.Expect(s.client.Patch(ctx, m, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		g.Expect(s.client.Delete(ctx, m)).To(Succeed())
		g.Expect(s.hosted.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name}})).To(Succeed())
	}
	for range want - len(list.Items) {
		s.made++
		m := s.machine(t, fmt.Sprintf("workers-%d", s.made), md)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name, Labels: map[string]string{corev1.LabelHostname: m.Name}}}
		g.Expect(s.hosted.Create(ctx, node)).To(Succeed())
		node.Spec.Taints = nil // the server's admission takes a new node for one that is not ready
		g.Expect(s.hosted.Update(ctx, node)).To(Succeed())
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		node.Status.Allocatable = offer()
		g.Expect(s.hosted.Status().Update(ctx, node)).To(Succeed())
		m.Status.NodeRef = clusterv1.MachineNodeReference{Name: m.Name}
		g.Expect(s.client.Status().Update(ctx, m)).To(Succeed())
	}
	g.Eventually(func() error { return s.complete(ctx, md) }, patience, often).Should(Succeed())
}

func offer() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110")}
}

// run makes a pod of three processors on a node, or one that waits for any.
func (s *scaled) run(t *testing.T, name, node string) {
	t.Helper()
	g := NewWithT(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "1", Controller: ptr.To(true)}}},
		Spec: corev1.PodSpec{NodeName: node, AutomountServiceAccountToken: ptr.To(false), Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}}}},
	}
	g.Expect(s.hosted.Create(t.Context(), pod)).To(Succeed())
	if node == "" {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		g.Expect(s.hosted.Status().Update(t.Context(), pod)).To(Succeed())
	}
}

func (s *scaled) stop(t *testing.T, name string) {
	t.Helper()
	NewWithT(t).Expect(s.hosted.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}, client.GracePeriodSeconds(0))).To(Succeed())
}

func (s *scaled) pass(t *testing.T) {
	t.Helper()
	NewWithT(t).Eventually(func() error { return s.loop.Pass(t.Context()) }, patience, often).Should(Succeed(), "a conflict with the NodePool controller is tried again")
}

// overtaken makes a pass in which somebody writes the MachineDeployment between what the pass reads and what it asks for.
func (s *scaled) overtaken(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	s.loop.Management = interceptor.NewClient(s.client, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			g.Expect(s.client.Patch(ctx, s.deployment(t), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"somebody":"writes"}}}`)))).To(Succeed())
			return c.SubResource(sub).Update(ctx, obj, opts...)
		},
	})
	defer func() { s.loop.Management = s.client }()
	g.Expect(s.loop.Pass(t.Context())).To(MatchError(apierrors.IsConflict, "IsConflict"))
	g.Expect(s.replicas(t)()).To(BeEquivalentTo(3))
}

func (s *scaled) replicas(t *testing.T) func() int32 {
	return func() int32 { return ptr.Deref(s.deployment(t).Spec.Replicas, -1) }
}

func TestAutoscaling(t *testing.T) {
	t.Run("When pods come and go a pool should grow from no machine and shrink again, and its two writers should not fight", func(t *testing.T) {
		s := newScaled(t)
		s.start(t)
		g := NewWithT(t)
		ctx := t.Context()
		g.Expect(s.client.Create(ctx, examplePool(s.ns, func(np *hyperv1.NodePool) {
			np.Spec.Replicas, np.Spec.AutoScaling = nil, &hyperv1.NodePoolAutoScaling{Min: ptr.To[int32](0), Max: 3}
		}))).To(Succeed())
		g.Eventually(func() error {
			return s.client.Get(ctx, client.ObjectKey{Namespace: s.hcpNS, Name: "workers"}, &clusterv1.MachineDeployment{})
		}, patience, often).Should(Succeed())
		g.Expect(s.replicas(t)()).To(BeZero())
		s.pass(t)
		g.Expect(s.replicas(t)()).To(BeZero())

		for _, name := range []string{"a", "b", "c", "d"} {
			s.run(t, name, "")
		}
		s.pass(t)
		g.Expect(s.replicas(t)()).To(BeZero(), "nobody knows what a machine would offer")
		g.Expect(s.pods.Events).To(Receive(ContainSubstring("NotTriggerScaleUp")))
		s.provide(ctx, g)
		s.pass(t)
		g.Expect(s.replicas(t)()).To(BeEquivalentTo(3))
		g.Expect(s.events.Events).To(Receive(And(ContainSubstring("ScaledUp"), ContainSubstring("from 0 to 3 machines"))))
		g.Consistently(s.replicas(t), time.Second, often).Should(BeEquivalentTo(3), "the NodePool controller takes it over")
		s.settle(t)

		// Each node takes one; the fourth can't be helped.
		for i, name := range []string{"a", "b", "c"} {
			s.stop(t, name)
			s.run(t, name, fmt.Sprintf("workers-%d", i+1))
		}
		s.pass(t)
		testenv.ExpectQuiet(t, s.client, func(c client.WithWatch) error {
			s.loop.Management = c
			defer func() { s.loop.Management = s.client }()
			return s.loop.Pass(ctx)
		})
		status := &corev1.ConfigMap{}
		g.Expect(s.hosted.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: autoscaler.StatusConfigMap}, status)).To(Succeed())
		g.Expect(status.Data["status"]).To(ContainSubstring("pods that fit on no node that could be made: 1"))

		// Two nodes have nothing to do any more.
		for _, name := range []string{"a", "c", "d"} {
			s.stop(t, name)
		}
		s.clock.Step(11 * time.Minute)
		s.pass(t)
		g.Expect(s.replicas(t)()).To(BeEquivalentTo(3), "it has to stay so for a while")
		s.clock.Step(11 * time.Minute)
		s.overtaken(t)
		s.pass(t)
		g.Expect(s.replicas(t)()).To(BeEquivalentTo(1))
		g.Consistently(s.replicas(t), time.Second, often).Should(BeEquivalentTo(1))
		s.settle(t)
		g.Expect(s.machineNames(t)).To(ConsistOf("workers-2"), "the node with a pod stays")
		s.pass(t)
		g.Expect(s.replicas(t)()).To(BeEquivalentTo(1))

		// While it is paused nothing changes.
		s.run(t, "e", "")
		g.Expect(s.client.Patch(ctx, s.pool(t), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"pausedUntil":"true"}}`)))).To(Succeed())
		g.Eventually(func() string { return s.deployment(t).Annotations["cluster.x-k8s.io/paused"] }, patience, often).Should(Equal("true"))
		s.pass(t)
		g.Expect(s.replicas(t)()).To(BeEquivalentTo(1))
	})
}

// provide says what a machine offers, as the provider does.
func (s *scaled) provide(ctx context.Context, g *WithT) {
	list := &infrav1.LocalMachineTemplateList{}
	g.Expect(s.client.List(ctx, list, client.InNamespace(s.hcpNS))).To(Succeed())
	g.Expect(list.Items).NotTo(BeEmpty())
	for i := range list.Items {
		list.Items[i].Status.Capacity = offer()
		g.Expect(s.client.Status().Update(ctx, &list.Items[i])).To(Succeed())
	}
}
