package hostedcluster

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
)

func TestRestoration(t *testing.T) {
	t.Run("When a restored cluster is whole again its mark should go, and not before", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		const mark = hyperv1.HostedClusterRestoredFromBackupAnnotation
		g.Expect(w.client.Create(t.Context(), w.hostedCluster(func(hc *hyperv1.HostedCluster) { hc.Annotations = map[string]string{mark: ""} }))).To(Succeed())
		g.Expect(w.settle(t.Context(), w.client, "demo")).To(Succeed())
		hc, err := w.get(t.Context(), "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(hc.Annotations).To(HaveKey(mark))
		hcp := &hyperv1.HostedControlPlane{}
		key := client.ObjectKey{Namespace: names.ControlPlaneNamespace(w.ns, "demo"), Name: "demo"}
		g.Expect(w.client.Get(t.Context(), key, hcp)).To(Succeed())
		g.Expect(hcp.Annotations).To(HaveKey(mark))
		conditions.Set(&hcp.Status.Conditions, time.Now(), metav1.Condition{Type: hyperv1.HostedClusterRestoredFromBackup, Status: metav1.ConditionTrue, Reason: "RecoveryFinished"})
		g.Expect(w.client.Status().Update(t.Context(), hcp)).To(Succeed())
		g.Expect(w.settle(t.Context(), w.client, "demo")).To(Succeed())
		hc, err = w.get(t.Context(), "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(hc.Annotations).NotTo(HaveKey(mark))
		g.Expect(w.settle(t.Context(), w.client, "demo")).To(Succeed())
		g.Expect(w.client.Get(t.Context(), key, hcp)).To(Succeed())
		g.Expect(hcp.Annotations).NotTo(HaveKey(mark))
	})
}
