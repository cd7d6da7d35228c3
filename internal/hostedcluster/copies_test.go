package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/testenv"
)

func TestCopies(t *testing.T) {
	t.Run("When nothing refers to a source any more its copy should go, and nothing else", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		for _, name := range []string{"first-key", "other"} {
			g.Expect(w.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}, Data: map[string][]byte{"id_rsa.pub": []byte("ssh-ed25519 AAAA")}})).To(Succeed())
		}
		hc := w.hostedCluster()
		hc.Spec.SSHKey.Name = "first-key"
		g.Expect(w.client.Create(t.Context(), hc)).To(Succeed())
		g.Expect(w.settle(t.Context(), w.client, "demo")).To(Succeed())
		copied := func(name string) error {
			return w.client.Get(t.Context(), client.ObjectKey{Namespace: names.ControlPlaneNamespace(w.ns, "demo"), Name: name}, &corev1.Secret{})
		}
		g.Expect(copied("ssh-key")).To(Succeed())
		// Of somebody else, under a name that we might use.
		g.Expect(w.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.ControlPlaneNamespace(w.ns, "demo"), Name: "other"}})).To(Succeed())
		hc, err := w.get(t.Context(), "demo")
		g.Expect(err).NotTo(HaveOccurred())
		hc.Spec.SSHKey.Name = ""
		g.Expect(w.client.Update(t.Context(), hc)).To(Succeed())
		g.Expect(w.settle(t.Context(), w.client, "demo")).To(Succeed())
		g.Expect(apierrors.IsNotFound(copied("ssh-key"))).To(BeTrue())
		g.Expect(copied("other")).To(Succeed())
		g.Expect(copied("pull-secret")).To(Succeed())
	})
}

func TestCreatedSecrets(t *testing.T) {
	t.Run("When the CLI made a Secret for the cluster it should belong to it, and others should not", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		pull := &corev1.Secret{}
		g.Expect(w.client.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "pull"}, pull)).To(Succeed())
		pull.Labels = map[string]string{"hypershift.openshift.io/safe-to-delete-with-cluster": "true", "hypershift.openshift.io/auto-created-for-infra": "demo-abcde"}
		g.Expect(w.client.Update(t.Context(), pull)).To(Succeed())
		g.Expect(w.client.Create(t.Context(), w.hostedCluster())).To(Succeed())
		g.Expect(w.settle(t.Context(), w.client, "demo")).To(Succeed())
		hc, err := w.get(t.Context(), "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(pull), pull)).To(Succeed())
		g.Expect(pull.OwnerReferences).To(HaveLen(1))
		g.Expect(pull.OwnerReferences[0].UID).To(Equal(hc.UID))
		g.Expect(pull.Labels).NotTo(HaveKey(names.OwnedByLabel))
		testenv.ExpectQuiet(t, w.client, func(c client.WithWatch) error { return w.settle(t.Context(), c, "demo") })
	})
}
