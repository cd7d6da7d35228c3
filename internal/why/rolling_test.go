package why_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/rolls"
	"hcp.internal/platform/internal/why"
)

// rolling has machines replaced since a ConfigMap was added: one is new and its node has no network yet, another one goes.
func rolling(w *world) {
	note, _ := rolls.Next(rolls.Note{}, false, "a", nil, noon)
	note, _ = rolls.Next(note, true, "b", map[string]string{"ConfigMap tuned": "11"}, noon)
	w.NodePools[0].Annotations[hyperv1.NodePoolRollsAnnotation], _ = note.Text()
	w.poolSays(hyperv1.NodePoolUpdatingConfigConditionType, yes, "AsExpected", "Updating config to b")
	w.poolSays(hyperv1.NodePoolAllMachinesReadyConditionType, no, "NotReady", "1 of 2 machines are not ready")
	w.machineSays(clusterv1.MachineNodeHealthyCondition, no, "NodeNotHealthy", "Node.Ready: cni plugin not initialized")
	node := &w.Hosted["clusters/demo"].Nodes[0]
	node.CreationTimestamp = ago(10 * time.Second)
	node.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: "cni plugin not initialized", LastTransitionTime: ago(10 * time.Second)}
}

func TestRolling(t *testing.T) {
	t.Run("When machines are being replaced it should say since what, whatever new ones still lack", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld()
		rolling(w)
		a := why.Explain(&w.Snapshot, workers)
		g.Expect(a.Rule).To(Equal("pool-updating"), "%+v", a)
		g.Expect(a.State).To(Equal(why.Waiting))
		g.Expect(a.Cause).To(ContainSubstring("since ConfigMap tuned: added (11)"))
	})
	t.Run("When a new node does not get ready it should say that instead", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld()
		rolling(w)
		w.Hosted["clusters/demo"].Nodes[0].CreationTimestamp = ago(6 * time.Minute)
		a := why.Explain(&w.Snapshot, workers)
		g.Expect(a.Rule).To(Equal("hosted-node-not-ready"), "%+v", a)
		g.Expect(a.State).To(Equal(why.Broken))
	})
}
