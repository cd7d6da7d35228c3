package patch_test

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

const finalizer = "test.example/finalizer"

func configMap(t *testing.T, c client.Client, ns string) *corev1.ConfigMap {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "cm-"}}
	NewWithT(t).Expect(c.Create(t.Context(), cm)).To(Succeed())
	return cm
}

func TestFinalizers(t *testing.T) {
	env := testenv.Start(t)
	c := env.Client(t, clientgoscheme.Scheme)
	ns := env.Namespace(t)

	t.Run("When the finalizer is there already it should not write", func(t *testing.T) {
		g := NewWithT(t)
		cm := configMap(t, c, ns)
		added, err := patch.EnsureFinalizer(t.Context(), c, cm, finalizer)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(added).To(BeTrue())
		counting := testenv.NewFaultClient(c, testenv.FailWrite, 0)
		added, err = patch.EnsureFinalizer(t.Context(), counting, cm, finalizer)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(added).To(BeFalse())
		g.Expect(counting.Writes()).To(BeZero())
	})
	t.Run("When somebody added a finalizer since the read it should conflict instead of dropping theirs", func(t *testing.T) {
		g := NewWithT(t)
		stale := configMap(t, c, ns)
		theirs := stale.DeepCopy()
		theirs.Finalizers = []string{"test.example/theirs"}
		g.Expect(c.Update(t.Context(), theirs)).To(Succeed())
		_, err := patch.EnsureFinalizer(t.Context(), c, stale, finalizer)
		g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "got %v", err)
	})
	t.Run("When the object is gone removing should succeed", func(t *testing.T) {
		g := NewWithT(t)
		cm := configMap(t, c, ns)
		_, err := patch.EnsureFinalizer(t.Context(), c, cm, finalizer)
		g.Expect(err).NotTo(HaveOccurred())
		again := cm.DeepCopy()
		g.Expect(patch.RemoveFinalizer(t.Context(), c, cm, finalizer)).To(Succeed())
		g.Expect(c.Delete(t.Context(), cm)).To(Succeed())
		g.Expect(patch.RemoveFinalizer(t.Context(), c, again, finalizer)).To(Succeed())
	})
}
