package manager_test

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/control/hostedclusterpackage"
	"hcp.internal/platform/internal/packages/control/manager"
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

func TestCacheOptions(t *testing.T) {
	t.Run("When a rollout changes a Package the cache should keep the time of that, by which groups soak, and no other bookkeeping", func(t *testing.T) {
		g, w := NewWithT(t), packagestest.Start(t)
		options := manager.CacheOptions()
		options.Scheme = packagestest.Scheme(t)
		cached, err := cache.New(w.Env.Config, options)
		g.Expect(err).NotTo(HaveOccurred())
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- cached.Start(ctx) }()
		t.Cleanup(func() { stop(); <-ended })
		ns := w.Namespace(t)
		applied := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "package-operator.run/v1alpha1", "kind": "Package",
			"metadata": map[string]any{"name": "addon", "namespace": ns}, "spec": map[string]any{"image": "registry.example/addon:v1", "paused": true}}}
		g.Expect(w.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied.DeepCopy()), hostedclusterpackage.FieldOwner)).To(Succeed())
		theirs := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"color":"green"}}}`))
		g.Expect(w.Client.Patch(t.Context(), applied, theirs, client.FieldOwner("somebody"))).To(Succeed())
		p := &v1alpha1.Package{}
		g.Eventually(func(g Gomega) {
			g.Expect(cached.Get(t.Context(), client.ObjectKeyFromObject(applied), p)).To(Succeed())
			g.Expect(p.Labels).To(HaveKey("color"))
		}, packagestest.Timeout).Should(Succeed())
		g.Expect(hostedclusterpackage.Entry(p)).To(HaveField("Time.Time", BeTemporally("~", time.Now(), time.Hour)))
		g.Expect(p.ManagedFields).To(HaveLen(1))
		g.Expect(p.ManagedFields[0].FieldsV1).To(BeNil())
	})
}
