package inplace

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/hold"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// pool is a MachineSet with two machines in an API server that is both clusters.
type pool struct {
	client client.WithWatch
	set    *clusterv1.MachineSet
	nodes  []string
}

func newPool(t testing.TB) *pool {
	t.Helper()
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{hyperv1.AddToScheme, clusterv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	p := &pool{client: env.Client(t, scheme)}
	ns := env.Namespace(t)
	create := func(o client.Object) {
		if err := p.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	name := ns + "-p" // namespaces of the hosted cluster are made after it
	infra := clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "LocalMachine", Name: "x"}
	p.set = &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Annotations: map[string]string{
		hyperv1.NodePoolTargetConfigVersionAnnotation: "v2", hyperv1.NodePoolCurrentConfigVersionAnnotation: "v1", hyperv1.NodePoolMaxUnavailableAnnotation: "1",
	}}}
	p.set.Spec.ClusterName, p.set.Spec.Replicas = "demo", ptr.To[int32](2)
	p.set.Spec.Selector.MatchLabels = map[string]string{"pool": name}
	p.set.Spec.Template.Labels = map[string]string{"pool": name}
	p.set.Spec.Template.Spec = clusterv1.MachineSpec{ClusterName: "demo", InfrastructureRef: infra, Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("user-data-" + name + "-v2")}}
	create(p.set)
	create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: tokenSecret(name, "v2")}, Data: map[string][]byte{payloadKey: []byte("H4sI"), releaseKey: []byte("quay.io/ocp:4.20.4"), releaseVersionKey: []byte("1.36.3")}})
	for _, suffix := range []string{"-a", "-b"} {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name + suffix, Labels: map[string]string{"pool": name}}}
		// As Cluster API does: a Machine has the newest user data of its MachineSet, whatever it was made with.
		m.Spec = *p.set.Spec.Template.Spec.DeepCopy()
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(p.set, clusterv1.GroupVersion.WithKind("MachineSet"))}
		create(m)
		m.Status.NodeRef = clusterv1.MachineNodeReference{Name: m.Name}
		if err := p.client.Status().Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name, Labels: map[string]string{hyperv1.NodePoolFirstConfigVersionLabel: "v1"}}}
		create(node)
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if err := p.client.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.client.Delete(t.Context(), node) })
		p.nodes = append(p.nodes, m.Name)
	}
	return p
}

func (p *pool) request() ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p.set)}
}

func (p *pool) pass(t testing.TB, c client.WithWatch) error {
	_, err := p.reconciler(c).Reconcile(t.Context(), p.request())
	return err
}

func (p *pool) reconciler(c client.WithWatch) *Reconciler {
	return &Reconciler{Management: c, Hosted: c, Image: "registry.example.com/daemon:1", Clock: clocktesting.NewFakePassiveClock(noon), Hold: hold.For("")}
}

func (p *pool) drainer(c client.WithWatch) *Drainer {
	return &Drainer{Management: c, Hosted: c, Clock: clocktesting.NewFakePassiveClock(noon), Hold: hold.For("")}
}

func (p *pool) node(t testing.TB, i int) *corev1.Node {
	t.Helper()
	node := &corev1.Node{}
	if err := p.client.Get(t.Context(), client.ObjectKey{Name: p.nodes[i]}, node); err != nil {
		t.Fatal(err)
	}
	return node
}

// says is what the daemon on a node would write.
func (p *pool) says(t testing.TB, i int, annotations map[string]string) {
	t.Helper()
	node := p.node(t, i)
	before := node.DeepCopy()
	for k, v := range annotations {
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, k, v)
	}
	if err := p.client.Patch(t.Context(), node, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func (p *pool) annotations(t testing.TB) map[string]string {
	t.Helper()
	if err := p.client.Get(t.Context(), client.ObjectKeyFromObject(p.set), p.set); err != nil {
		t.Fatal(err)
	}
	return p.set.Annotations
}

// ready sets what the kubelet of a node says.
func (p *pool) ready(t testing.TB, i int, status corev1.ConditionStatus) {
	t.Helper()
	node := p.node(t, i)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	if err := p.client.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
}

// finish plays both nodes until the set is done.
func (p *pool) finish(t testing.TB) {
	t.Helper()
	for range 6 {
		for i := range p.nodes {
			if p.node(t, i).Annotations[desiredConfig] == "v2" {
				p.says(t, i, map[string]string{currentConfig: "v2", stateAnnotation: stateDone})
			}
		}
		if err := p.pass(t, p.client); err != nil {
			t.Fatal(err)
		}
		if p.annotations(t)[hyperv1.NodePoolCurrentConfigVersionAnnotation] == "v2" {
			return
		}
	}
	t.Fatal("the upgrade doesn't end")
}

func TestReconcile(t *testing.T) {
	t.Run("When an upgrade runs it should take one node after the other and clean up at the end", func(t *testing.T) {
		g := NewWithT(t)
		p := newPool(t)
		g.Expect(p.pass(t, p.client)).To(Succeed())
		g.Expect(p.node(t, 0).Annotations[desiredConfig]).To(Equal("v2"))
		g.Expect(p.node(t, 1).Annotations).NotTo(HaveKey(desiredConfig))
		g.Expect(p.annotations(t)[hyperv1.NodePoolUpgradeInProgressTrueAnnotation]).To(Equal("Upgrade in progress. Total Nodes: 2. Upgraded: 0"))
		pod := &corev1.Pod{}
		g.Expect(p.client.Get(t.Context(), client.ObjectKey{Namespace: namespaceOf(p.set.Name), Name: daemonPrefix + p.nodes[0]}, pod)).To(Succeed())
		g.Expect(pod.Spec.NodeName).To(Equal(p.nodes[0]))
		testenv.ExpectQuiet(t, p.client, func(c client.WithWatch) error { return p.pass(t, c) })

		p.finish(t)
		a := p.annotations(t)
		g.Expect(a).NotTo(Or(HaveKey(hyperv1.NodePoolUpgradeInProgressTrueAnnotation), HaveKey(hyperv1.NodePoolUpgradeInProgressFalseAnnotation)))
		m := &clusterv1.Machine{}
		g.Expect(p.client.Get(t.Context(), client.ObjectKey{Namespace: p.set.Namespace, Name: p.nodes[1]}, m)).To(Succeed())
		g.Expect(m.Annotations[hyperv1.NodePoolReleaseVersionAnnotation]).To(Equal("1.36.3"))
		ns := &corev1.Namespace{}
		err := p.client.Get(t.Context(), client.ObjectKey{Name: namespaceOf(p.set.Name)}, ns)
		g.Expect(apierrors.IsNotFound(err) || !ns.DeletionTimestamp.IsZero()).To(BeTrue())
		testenv.ExpectQuiet(t, p.client, func(c client.WithWatch) error { return p.pass(t, c) })
	})
	t.Run("When a node is degraded it should begin no other and say which", func(t *testing.T) {
		g := NewWithT(t)
		p := newPool(t)
		g.Expect(p.pass(t, p.client)).To(Succeed())
		p.says(t, 0, map[string]string{stateAnnotation: stateDegraded, reasonAnnotation: "disk full\x00\n"})
		g.Expect(p.pass(t, p.client)).To(Succeed())
		g.Expect(p.annotations(t)[hyperv1.NodePoolUpgradeInProgressFalseAnnotation]).To(Equal("Node " + p.nodes[0] + " in nodepool degraded: disk full"))
		g.Expect(p.node(t, 1).Annotations).NotTo(HaveKey(desiredConfig))
		p.finish(t)
	})
	t.Run("When a node is not ready after its change it should begin no other, and go on once it is", func(t *testing.T) {
		g := NewWithT(t)
		p := newPool(t)
		g.Expect(p.pass(t, p.client)).To(Succeed())
		p.says(t, 0, map[string]string{currentConfig: "v2", stateAnnotation: stateDone})
		for _, status := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionUnknown} {
			p.ready(t, 0, status)
			g.Expect(p.pass(t, p.client)).To(Succeed())
			g.Expect(p.node(t, 1).Annotations).NotTo(HaveKey(desiredConfig))
			g.Expect(p.annotations(t)[hyperv1.NodePoolUpgradeInProgressTrueAnnotation]).To(Equal("Upgrade in progress. Total Nodes: 2. Upgraded: 1; not ready: Node " + p.nodes[0]))
		}
		p.ready(t, 0, corev1.ConditionTrue)
		g.Expect(p.pass(t, p.client)).To(Succeed())
		g.Expect(p.node(t, 1).Annotations[desiredConfig]).To(Equal("v2"))
		p.finish(t)
	})
	t.Run("When a node is not ready before its change it should be the first to be told", func(t *testing.T) {
		g := NewWithT(t)
		p := newPool(t)
		p.ready(t, 1, corev1.ConditionUnknown)
		g.Expect(p.pass(t, p.client)).To(Succeed())
		g.Expect(p.node(t, 0).Annotations).NotTo(HaveKey(desiredConfig))
		g.Expect(p.node(t, 1).Annotations[desiredConfig]).To(Equal("v2"))
	})
}

func TestCrash(t *testing.T) {
	fresh := func(t testing.TB) testenv.CrashCase {
		p := newPool(t)
		return testenv.CrashCase{
			Client: p.client,
			Run:    func(c client.WithWatch) error { return p.pass(t, c) },
			Check: func(t testing.TB) {
				g := NewWithT(t)
				g.Expect(p.node(t, 0).Annotations[desiredConfig]).To(Equal("v2"))
				g.Expect(p.node(t, 1).Annotations).NotTo(HaveKey(desiredConfig))
				p.finish(t)
			},
		}
	}
	testenv.CrashAtEveryWrite(t, 1, fresh)
	testenv.Storm(t, 2, fresh)
}

func TestDrainer(t *testing.T) {
	g := NewWithT(t)
	p := newPool(t)
	pass := func(c client.WithWatch) error {
		_, err := p.drainer(c).Reconcile(t.Context(), p.request())
		return err
	}
	pod := func(name string) *corev1.Pod {
		po := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.set.Namespace, Name: name, Labels: map[string]string{"app": "web"}}}
		po.Spec = corev1.PodSpec{NodeName: p.nodes[0], AutomountServiceAccountToken: ptr.To(false), TerminationGracePeriodSeconds: ptr.To[int64](0), Containers: []corev1.Container{{Name: "c", Image: "i"}}}
		g.Expect(p.client.Create(t.Context(), po)).To(Succeed())
		po.Status.Phase = corev1.PodRunning
		po.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		g.Expect(p.client.Status().Update(t.Context(), po)).To(Succeed())
		return po
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: p.set.Namespace, Name: "web"}}
	budget.Spec.MinAvailable = ptr.To(intstr.FromInt32(1))
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	g.Expect(p.client.Create(t.Context(), budget)).To(Succeed())
	web := pod("web")

	testenv.ExpectQuiet(t, p.client, pass) // nobody asks for anything
	p.says(t, 0, map[string]string{desiredDrain: "drain-v2"})
	g.Expect(pass(p.client)).To(Succeed())
	g.Expect(p.node(t, 0).Spec.Unschedulable).To(BeTrue())
	g.Expect(p.node(t, 1).Spec.Unschedulable).To(BeFalse())
	g.Expect(p.client.Get(t.Context(), client.ObjectKeyFromObject(web), web)).To(Succeed(), "When a budget forbids it the pod should stay")
	g.Expect(p.node(t, 0).Annotations).NotTo(HaveKey(lastAppliedDrain))
	g.Expect(p.node(t, 0).Annotations).To(HaveKeyWithValue(drainBlocked, "pod "+p.set.Namespace+"/web may not be evicted because of PodDisruptionBudget web"))
	before := p.node(t, 0).ResourceVersion
	g.Expect(pass(p.client)).To(Succeed())
	g.Expect(p.node(t, 0).ResourceVersion).To(Equal(before), "When nothing has changed it should only ask again")

	other := budget.DeepCopy()
	other.ObjectMeta = metav1.ObjectMeta{Namespace: p.set.Namespace, Name: "other"}
	g.Expect(p.client.Create(t.Context(), other)).To(Succeed())
	g.Expect(pass(p.client)).To(Succeed(), "When the API answers an eviction with an error the drain should go on")
	g.Expect(p.node(t, 0).Annotations).To(HaveKeyWithValue(drainBlocked, "pod "+p.set.Namespace+"/web may not be evicted because several PodDisruptionBudgets select it: other, web"))
	g.Expect(p.client.Delete(t.Context(), other)).To(Succeed())
	g.Expect(p.client.Delete(t.Context(), budget)).To(Succeed())
	forbids := interceptor.NewClient(p.client, interceptor.Funcs{SubResourceCreate: func(context.Context, client.Client, string, client.Object, client.Object, ...client.SubResourceCreateOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New("a webhook's text"))
	}})
	g.Expect(pass(forbids)).To(Succeed())
	g.Expect(p.node(t, 0).Annotations).To(HaveKeyWithValue(drainBlocked, "pod "+p.set.Namespace+"/web may not be evicted because the hosted cluster's API refuses it (403 Forbidden)"))
	g.Eventually(func() string {
		g.Expect(pass(p.client)).To(Succeed())
		return p.node(t, 0).Annotations[lastAppliedDrain]
	}).Should(Equal("drain-v2"))
	g.Expect(apierrors.IsNotFound(p.client.Get(t.Context(), client.ObjectKeyFromObject(web), web))).To(BeTrue())
	g.Expect(p.node(t, 0).Annotations).NotTo(HaveKey(drainBlocked))
	testenv.ExpectQuiet(t, p.client, pass)

	p.says(t, 0, map[string]string{desiredDrain: "uncordon-v2"})
	g.Expect(pass(p.client)).To(Succeed())
	g.Expect(p.node(t, 0).Spec.Unschedulable).To(BeFalse())
	g.Expect(p.node(t, 0).Annotations[lastAppliedDrain]).To(Equal("uncordon-v2"))
}
