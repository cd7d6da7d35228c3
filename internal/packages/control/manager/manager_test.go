package manager_test

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/packagestest"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func TestDeployment(t *testing.T) {
	g := NewWithT(t)
	w := packagestest.Start(t)
	ns := w.Namespace(t)
	od := packagestest.ObjectDeployment(ns, "web", packagestest.Phase("a", packagestest.ConfigMap("one", map[string]any{"v": "1"}), packagestest.ConfigMap("two", nil)))
	g.Expect(w.Client.Create(t.Context(), od)).To(Succeed())
	w.Eventually(t, od, packagestest.HasCondition(od, &od.Status.Conditions, "Available", "True", "Available", "Latest Revision is Available."))
	g.Expect(od.Status.Revision).To(Equal(int64(1)))

	od.Spec.Template.Spec.Phases[0].Objects[0] = packagestest.ConfigMap("one", map[string]any{"v": "2"})
	g.Expect(w.Client.Update(t.Context(), od)).To(Succeed())
	w.Eventually(t, od, packagestest.HasCondition(od, &od.Status.Conditions, "Available", "True", "Available", "Latest Revision is Available."))
	g.Expect(od.Status.Revision).To(Equal(int64(2)))
	cm := &corev1.ConfigMap{}
	g.Expect(w.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "one"}, cm)).To(Succeed())
	g.Expect(cm.Data).To(HaveKeyWithValue("v", "2"))
	g.Expect(cm.Labels).To(HaveKeyWithValue(v1alpha1.CacheLabel, "True"))
	g.Expect(cm.Annotations).To(HaveKeyWithValue(v1alpha1.RevisionAnnotation, "2"))

	g.Expect(w.Client.Delete(t.Context(), od, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	w.Gone(t, od)
	w.Gone(t, cm)
}
