package nodes

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func machine(mutate ...func(*clusterv1.Machine)) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name:   "w-1",
		Labels: map[string]string{labelPrefix + "example.com/role": "web", labelPrefix: "empty", "other": "x"},
		Annotations: map[string]string{
			hyperv1.NodePoolAnnotation:       "clusters/workers",
			hyperv1.NodePoolTaintsAnnotation: `[{"key":"dedicated","value":"web","effect":"NoSchedule"}]`,
		},
	}}
	for _, f := range mutate {
		f(m)
	}
	return m
}

func TestWanted(t *testing.T) {
	t.Run("When a Machine has labels and taints for its Node it should find them", func(t *testing.T) {
		g := NewWithT(t)
		w, err := wantedOf(machine())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.Labels).To(Equal(map[string]string{"example.com/role": "web", hyperv1.NodePoolLabel: "workers"}))
		g.Expect(w.Taints).To(Equal([]corev1.Taint{{Key: "dedicated", Value: "web", Effect: corev1.TaintEffectNoSchedule}}))
	})
	for name, text := range map[string]string{
		"When the taints are no JSON it should name the annotation": "nonsense",
		"When the taints are huge it should name the annotation":    strings.Repeat(" ", maxTaintBytes+1),
		"When there are many taints it should name the annotation":  "[" + strings.Repeat("{},", maxTaints) + "{}]",
		"When the taints are no list it should name the annotation": "{}",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := wantedOf(machine(func(m *clusterv1.Machine) { m.Annotations[hyperv1.NodePoolTaintsAnnotation] = text }))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(hyperv1.NodePoolTaintsAnnotation)))
		})
	}
	t.Run("When a Node has taints of its own it should keep them", func(t *testing.T) {
		g := NewWithT(t)
		node := &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "a", Effect: "NoExecute"}, {Key: "dedicated", Value: "old", Effect: "NoSchedule"}}}}
		w, err := wantedOf(machine())
		g.Expect(err).NotTo(HaveOccurred())
		complete(node, w)
		g.Expect(node.Spec.Taints).To(Equal([]corev1.Taint{{Key: "a", Effect: "NoExecute"}, {Key: "dedicated", Value: "web", Effect: "NoSchedule"}}))
		g.Expect(synced(node)).To(BeTrue())
	})
}

func TestReconcile(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	c := env.Client(t, scheme)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w-1", Annotations: map[string]string{"cluster.x-k8s.io/machine": "another"}}}
	g.Expect(c.Create(t.Context(), node)).To(Succeed())
	t.Cleanup(func() { _ = c.Delete(t.Context(), node) })
	m := machine(func(m *clusterv1.Machine) {
		m.Namespace, m.Spec.ClusterName = env.Namespace(t), "demo"
		delete(m.Labels, labelPrefix) // no valid key for the API server
		secret := "user-data"
		m.Spec.Bootstrap.DataSecretName = &secret
		m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "LocalMachine", Name: "w-1"}
	})
	g.Expect(c.Create(t.Context(), m)).To(Succeed())
	m.Status.NodeRef = clusterv1.MachineNodeReference{Name: "w-1"}
	g.Expect(c.Status().Update(t.Context(), m)).To(Succeed())
	pass := func(c client.WithWatch) error {
		_, err := (&Reconciler{Management: c, Hosted: c}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
		return err
	}

	g.Expect(pass(c)).To(Succeed())
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(node), node)).To(Succeed())
	g.Expect(node.Labels).To(And(HaveKeyWithValue("example.com/role", "web"), HaveKeyWithValue(hyperv1.NodePoolLabel, "workers")))
	g.Expect(node.Spec.Taints).To(ContainElement(HaveField("Key", "dedicated")))

	delete(node.Labels, "example.com/role")
	g.Expect(c.Update(t.Context(), node)).To(Succeed())
	testenv.ExpectQuiet(t, c, pass)
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(node), node)).To(Succeed())
	g.Expect(node.Labels).NotTo(HaveKey("example.com/role"), "When its owner changes a label later it should stay changed")
}
