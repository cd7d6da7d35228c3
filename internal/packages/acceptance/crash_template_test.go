package acceptance

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/packages/control/objecttemplate"
	"hcp.internal/platform/internal/packages/engine/phase"
	"hcp.internal/platform/internal/packages/engine/scope"
	"hcp.internal/platform/internal/packages/engine/status"
	"hcp.internal/platform/internal/packages/packagestest"
	"hcp.internal/platform/internal/testenv"
)

// render makes a fresh reconciler and calls it until a template has settled.
func render(ctx context.Context, c client.WithWatch, mapper meta.RESTMapper, key client.ObjectKey) error {
	s := scope.Namespaced
	r := &objecttemplate.Reconciler{
		Scope: s, Client: c, Live: testenv.Uncached(c), Clock: clock.RealClock{}, Status: &status.Writer{Client: c, Kind: s.GroupVersionKind("ObjectTemplate")},
		Engine:      &phase.Engine{Client: testenv.Uncached(c), Mapper: mapper, Watch: packagestest.Unwatched{}, Rules: phase.Templated()},
		Environment: objecttemplate.NewEnvironment(func(context.Context, string) (any, error) { return map[string]any{}, nil }),
	}
	for range 4 {
		if _, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: key}); err != nil {
			return err
		}
	}
	return nil
}

// TestCrashOfTemplates interrupts the making and the change of an object from a Secret at each write.
func TestCrashOfTemplates(t *testing.T) {
	w := packagestest.Serve(t)
	httpClient, err := rest.HTTPClientFor(w.Env.Config)
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := process.NewMapper(w.Env.Config, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]bool{"made": false, "changed": true} {
		t.Run(name, func(t *testing.T) {
			fresh := func(t testing.TB) testenv.CrashCase {
				g, ns := NewWithT(t), w.Namespace(t)
				secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "source"}, Data: map[string][]byte{"value": []byte("one")}}
				g.Expect(w.Client.Create(t.Context(), secret)).To(Succeed())
				ot := &v1alpha1.ObjectTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "template"}, Spec: v1alpha1.ObjectTemplateSpec{
					Template: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\ndata: {value: {{ .config.value | b64dec | quote }}}\n",
					Sources: []v1alpha1.ObjectTemplateSource{{APIVersion: "v1", Kind: "Secret", Name: "source",
						Items: []v1alpha1.ObjectTemplateSourceItem{{Key: "data.value", Destination: ".value"}}}},
				}}
				g.Expect(w.Client.Create(t.Context(), ot)).To(Succeed())
				key, want := client.ObjectKeyFromObject(ot), "one"
				if change {
					g.Expect(render(t.Context(), w.Client, kinds, key)).To(Succeed())
					want = "two"
					g.Expect(w.Client.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"value":"two"}}`)))).To(Succeed())
				}
				return testenv.CrashCase{
					Client: w.Client,
					Run:    func(c client.WithWatch) error { return render(t.Context(), c, kinds, key) },
					Check: func(t testing.TB) {
						g, made := NewWithT(t), &corev1.ConfigMap{}
						g.Expect(w.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "made"}, made)).To(Succeed())
						g.Expect(made.Data).To(HaveKeyWithValue("value", want))
						g.Expect(w.Client.Get(t.Context(), key, ot)).To(Succeed())
						g.Expect(metav1.IsControlledBy(made, ot)).To(BeTrue())
						g.Expect(ot.Finalizers).To(ConsistOf(v1alpha1.CachedFinalizer))
						g.Expect(meta.FindStatusCondition(ot.Status.Conditions, v1alpha1.ConditionTemplateInvalid)).To(BeNil())
						g.Expect(ot.Status.ControllerOf).To(HaveValue(Equal(v1alpha1.ControlledObjectReference{Kind: "ConfigMap", Version: "v1", Name: "made", Namespace: ns})))
					},
				}
			}
			testenv.CrashAtEveryWrite(t, 1, fresh)
			testenv.Storm(t, 2, fresh)
		})
	}
}
