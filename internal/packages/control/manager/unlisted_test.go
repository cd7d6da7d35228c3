package manager_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	. "hcp.internal/platform/internal/packages/packagestest"
)

// gears is the definition of a kind of two versions. Without conversion objects of v1 can't be read, nor can v2 be listed.
func gears(group string, broken bool) *apiextensionsv1.CustomResourceDefinition {
	version := func(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Storage: storage, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}}}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gears." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "gears", Singular: "gear", Kind: "Gear", ListKind: "GearList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", !broken), version("v2", broken)},
		},
	}
	if broken {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/convert")}, ConversionReviewVersions: []string{"v1"}}}
	}
	return crd
}

// unconvertible leaves a kind behind whose second version can't be listed until mend is called.
func unconvertible(t *testing.T, w *World, ns string) (group string, mend func()) {
	t.Helper()
	g, scheme := NewWithT(t), runtime.NewScheme()
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	c := w.Env.Client(t, scheme)
	group = ns + ".example.com"
	crd := gears(group, false)
	g.Expect(c.Create(t.Context(), crd)).To(Succeed())
	old := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Gear", "metadata": map[string]any{"name": "old", "namespace": ns}}}
	old.SetLabels(map[string]string{v1alpha1.CacheLabel: v1alpha1.CacheLabelValue})
	g.Eventually(func() error { return w.Client.Create(t.Context(), old.DeepCopy()) }, Timeout).Should(Succeed())
	change := func(to *apiextensionsv1.CustomResourceDefinition) {
		g.Eventually(func() error {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
				return err
			}
			crd.Spec.Versions, crd.Spec.Conversion = to.Spec.Versions, to.Spec.Conversion
			return c.Update(t.Context(), crd)
		}, Timeout).Should(Succeed())
	}
	change(gears(group, true))
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": group + "/v2", "kind": "GearList"}}
	g.Eventually(func() error { return w.Client.List(t.Context(), list, client.InNamespace(ns)) }, Timeout).Should(MatchError(ContainSubstring("conversion webhook")))
	return group, func() {
		fixed := gears(group, true)
		fixed.Spec.Conversion = nil
		change(fixed)
	}
}

func TestUnlisted(t *testing.T) {
	t.Run("When a kind can't be listed until a phase before it is there it should roll out that phase, and go on afterwards", func(t *testing.T) {
		t.Parallel()
		each(t, func(t *testing.T, class string) {
			g, w := NewWithT(t), Start(t)
			ns := w.Namespace(t)
			group, mend := unconvertible(t, w, ns)
			gear := inNamespace(ns, Object(map[string]any{"apiVersion": group + "/v2", "kind": "Gear", "metadata": map[string]any{"name": "new"}}))
			od := ObjectDeployment(ns, "web", classed(class, Phase("webhook", inNamespace(ns, ConfigMap("cm", nil)))), classed(class, Phase("gears", gear)))
			g.Expect(w.Client.Create(t.Context(), od)).To(Succeed())
			g.Eventually(func() error { return get(w, t, configMap(ns, "cm")) }, Timeout).Should(Succeed(), "what would mend the kind")
			mend()
			w.Eventually(t, od, latest(od))
			g.Expect(w.Client.Delete(t.Context(), od, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
			w.Gone(t, od)
		})
	})
	t.Run("When a kind can't be listed, and is never mended, its revision should nevertheless be torn down", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		group, _ := unconvertible(t, w, ns)
		gear := inNamespace(ns, Object(map[string]any{"apiVersion": group + "/v2", "kind": "Gear", "metadata": map[string]any{"name": "new"}}))
		os := ObjectSet(ns, "set", 1, Phase("a", inNamespace(ns, ConfigMap("cm", nil))), Phase("b", gear))
		g.Expect(w.Client.Create(t.Context(), os)).To(Succeed())
		w.Eventually(t, os, available(os)) // what is written and read alone needs no conversion
		g.Expect(w.Client.Delete(t.Context(), os)).To(Succeed())
		w.Gone(t, os)
		g.Expect(get(w, t, configMap(ns, "cm"))).NotTo(Succeed())
	})
	t.Run("When a kind is never stored it should be refused, and deleted", func(t *testing.T) {
		t.Parallel()
		each(t, func(t *testing.T, class string) {
			g, w := NewWithT(t), Start(t)
			ns := w.Namespace(t)
			question := inNamespace(ns, Object(map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "LocalSubjectAccessReview", "metadata": map[string]any{"name": "may"},
				"spec": map[string]any{"user": "somebody", "resourceAttributes": map[string]any{"namespace": ns, "verb": "get", "resource": "pods"}}}))
			os := ObjectSet(ns, "set", 1, classed(class, Phase("a", question)))
			g.Expect(w.Client.Create(t.Context(), os)).To(Succeed())
			w.Eventually(t, os, func() error {
				if c := meta.FindStatusCondition(os.Status.Conditions, "Available"); c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "the server could not find the requested resource") {
					return fmt.Errorf("Available is %v", c)
				}
				return nil
			})
			g.Expect(w.Client.Delete(t.Context(), os)).To(Succeed())
			w.Gone(t, os)
		})
	})
}
