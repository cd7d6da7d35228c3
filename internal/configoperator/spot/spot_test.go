package spot

import (
	"os"
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

func TestConcerns(t *testing.T) {
	whole := func() *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{hyperv1.InterruptibleInstanceLabel: ""}}}
		m.Status.NodeRef.Name = "w-1"
		return m
	}
	for name, tc := range map[string]struct {
		change func(*clusterv1.Machine)
		want   bool
	}{
		"When a machine may be taken away and has a Node it should be looked at": {func(*clusterv1.Machine) {}, true},
		"When a machine may not be taken away it should be left alone":           {func(m *clusterv1.Machine) { m.Labels = nil }, false},
		"When it has no Node it should be left alone":                            {func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "" }, false},
		"When another was asked for it should be left alone": {func(m *clusterv1.Machine) {
			m.Annotations = map[string]string{hyperv1.SpotInterruptionSignalAnnotation: "x"}
		}, false},
		"When it is being deleted it should be left alone": {func(m *clusterv1.Machine) { now := metav1.Now(); m.DeletionTimestamp = &now }, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := whole()
			tc.change(m)
			NewWithT(t).Expect(concerns(m)).To(Equal(tc.want))
		})
	}
}

func TestSignal(t *testing.T) {
	for name, tc := range map[string]struct {
		keys []string
		want string
	}{
		"When a Node has no taint it should stay":                                         {nil, ""},
		"When a Node has taints of others it should stay":                                 {[]string{"node.kubernetes.io/unreachable", "aws-node-termination-handlers/x"}, ""},
		"When the termination handler taints it its taint should be the signal":           {[]string{"a", "aws-node-termination-handler/spot-itn"}, "aws-node-termination-handler/spot-itn"},
		"When there are several the signal should not depend on the order that they have": {[]string{"aws-node-termination-handler/spot-itn", "aws-node-termination-handler/rebalance-recommendation"}, "aws-node-termination-handler/rebalance-recommendation"},
	} {
		t.Run(name, func(t *testing.T) {
			var taints []corev1.Taint
			for _, key := range tc.keys {
				taints = append(taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
			}
			NewWithT(t).Expect(signalOf(taints)).To(Equal(tc.want))
		})
	}
}

func TestReconcile(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	c := env.Client(t, scheme)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "spot-1"}}
	g.Expect(c.Create(t.Context(), node)).To(Succeed())
	t.Cleanup(func() { _ = c.Delete(t.Context(), node) })
	secret := "user-data"
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "spot-1", Labels: map[string]string{hyperv1.InterruptibleInstanceLabel: ""}}}
	m.Spec.ClusterName, m.Spec.Bootstrap.DataSecretName = "demo", &secret
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachine", Name: "spot-1"}
	g.Expect(c.Create(t.Context(), m)).To(Succeed())
	m.Status.NodeRef = clusterv1.MachineNodeReference{Name: "spot-1"}
	g.Expect(c.Status().Update(t.Context(), m)).To(Succeed())
	pass := func(c client.WithWatch) error {
		_, err := (&Reconciler{Management: c, Hosted: c}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
		return err
	}
	t.Run("When nobody takes the machine away nothing should be written", func(t *testing.T) { testenv.ExpectQuiet(t, c, pass) })
	t.Run("When its Node is tainted by the termination handler its remediation should be asked for, once", func(t *testing.T) {
		g := NewWithT(t)
		node.Spec.Taints = []corev1.Taint{{Key: "aws-node-termination-handler/spot-itn", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
		g.Expect(c.Update(t.Context(), node)).To(Succeed())
		g.Expect(pass(c)).To(Succeed())
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(m), m)).To(Succeed())
		g.Expect(m.Annotations).To(And(HaveKeyWithValue(hyperv1.SpotInterruptionSignalAnnotation, "aws-node-termination-handler/spot-itn"), HaveKey(clusterv1.RemediateMachineAnnotation)))
		testenv.ExpectQuiet(t, c, pass)
	})
}
