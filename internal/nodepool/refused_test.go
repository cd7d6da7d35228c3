package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/testenv"
)

func TestRefused(t *testing.T) {
	t.Run("When Cluster API's webhooks would refuse an object it should not be written, and the pool should name the field and what to change", func(t *testing.T) {
		w := newWorld(t)
		g := NewWithT(t)
		g.Expect(w.client.Create(t.Context(), examplePool(w.ns, func(np *hyperv1.NodePool) {
			np.Spec.Management.AutoRepair = true
			np.Annotations = map[string]string{hyperv1.MachineHealthCheckNodeStartupTimeoutAnnotation: "10s"}
		}))).To(Succeed())
		g.Expect(w.settle(t.Context(), w.client)).To(Succeed())
		w.reachIgnition(t)
		g.Expect(w.settle(t.Context(), w.client)).To(Succeed())
		c := findCondition(w.pool(t).Status.Conditions, hyperv1.NodePoolAutorepairEnabledConditionType)
		g.Expect(string(c.Status) + "/" + c.Reason).To(Equal("False/ValidationFailed"))
		g.Expect(c.Message).To(Equal("MachineHealthCheck workers can't be written: spec.checks.nodeStartupTimeoutSeconds: Invalid value: 10: must be at least 30s" +
			" (change annotation hypershift.openshift.io/machine-health-check-node-startup-timeout of the NodePool or its HostedCluster)"))
		list := &clusterv1.MachineHealthCheckList{}
		g.Expect(w.client.List(t.Context(), list, client.InNamespace(w.hcpNS))).To(Succeed())
		g.Expect(list.Items).To(BeEmpty())
		testenv.ExpectQuiet(t, w.client, func(c client.WithWatch) error {
			_, err := w.reconciler(c).Reconcile(t.Context(), w.request())
			return err
		})

		g.Expect(w.client.Patch(t.Context(), w.pool(t), client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"annotations":{"hypershift.openshift.io/machine-health-check-node-startup-timeout":"10m"}}}`)))).To(Succeed())
		g.Expect(w.settle(t.Context(), w.client)).To(Succeed())
		g.Expect(w.condition(t, hyperv1.NodePoolAutorepairEnabledConditionType)).To(Equal("True/AsExpected"))
	})
}

// reachIgnition has a machine fetch its configuration.
func (w *world) reachIgnition(t testing.TB) {
	g := NewWithT(t)
	secrets := &corev1.SecretList{}
	g.Expect(w.client.List(t.Context(), secrets, client.InNamespace(w.hcpNS), client.MatchingLabels(ownLabels()))).To(Succeed())
	for i := range secrets.Items {
		if s := &secrets.Items[i]; s.Annotations[hyperv1.TokenSecretAnnotation] == "true" {
			body := []byte(`{"metadata":{"annotations":{"hypershift.openshift.io/ignition-reached":"True"}},"stringData":{"reason":"AsExpected"}}`)
			g.Expect(w.client.Patch(t.Context(), s, client.RawPatch("application/merge-patch+json", body))).To(Succeed())
		}
	}
}
