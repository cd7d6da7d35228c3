package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/testenv"
)

func TestShards(t *testing.T) {
	t.Run("When etcd has shards kube-apiserver should wait for all of them, and a settled pass should write nothing", func(t *testing.T) {
		const waits, rolls, done = component.WaitingForDependenciesReason, component.WaitingForRolloutCompleteReason, component.AsExpectedReason
		g := NewWithT(t)
		w := newWorld(t)
		etcdShards(w.hcp) // not before it is stored: the definitions of this server are without previews
		w.mustPass()
		g.Expect(w.why()).To(And(HaveKeyWithValue("etcd-events", rolls), HaveKeyWithValue("etcd-pods", rolls), HaveKeyWithValue("kube-apiserver", waits)))
		g.Expect(w.exists(&policyv1.PodDisruptionBudget{}, "etcd-pods")).To(BeTrue())
		g.Expect(w.exists(&policyv1.PodDisruptionBudget{}, "etcd-events")).To(BeFalse(), "a single member must not keep a node from being drained")
		for _, name := range []string{"etcd-client-events", "etcd-discovery-events", "etcd-client-pods", "etcd-discovery-pods"} {
			g.Expect(w.exists(&corev1.Service{}, name)).To(BeTrue(), name)
		}

		w.rolledOut("etcd")
		w.rolledOut("etcd-events")
		w.mustPass()
		g.Expect(w.why()).To(And(HaveKeyWithValue("etcd-events", done+" 1.36.3"), HaveKeyWithValue("kube-apiserver", waits)))
		g.Expect(w.exists(&appsv1.Deployment{}, "kube-scheduler")).To(BeFalse(), "it can do nothing before the API is whole")

		w.rolledOut("etcd-pods")
		w.mustPass()
		g.Expect(w.why()).To(And(HaveKeyWithValue("etcd-pods", done+" 1.36.3"), HaveKeyWithValue("kube-apiserver", rolls)))
		w.settle()
		testenv.ExpectQuiet(t, w.c, w.pass)

		live := &appsv1.StatefulSet{}
		w.get(client.ObjectKey{Namespace: w.hcp.Namespace, Name: "etcd-pods"}, live)
		g.Expect(live.Spec.VolumeClaimTemplates).To(BeEmpty())
	})
}
