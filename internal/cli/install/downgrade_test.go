package install

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/testenv"
	"hcp.internal/platform/internal/version"
)

type props = map[string]apiextensionsv1.JSONSchemaProps

func text() apiextensionsv1.JSONSchemaProps { return apiextensionsv1.JSONSchemaProps{Type: "string"} }

func objectWith(fields props) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: fields}
}

func listOf(item apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}}
}

func mapOf(item apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &item}}
}

func TestRemovedFields(t *testing.T) {
	for name, tc := range map[string]struct {
		had, has props
		want     []string
	}{
		"When nothing goes it should find nothing":           {had: props{"a": text()}, has: props{"a": text(), "b": text()}},
		"When a field goes it should name it":                {had: props{"a": text(), "b": text()}, has: props{"a": text()}, want: []string{"b"}},
		"When a field in a list goes it should lead there":   {had: props{"l": listOf(objectWith(props{"x": text()}))}, has: props{"l": listOf(objectWith(nil))}, want: []string{"l[].x"}},
		"When a field in a map goes it should lead there":    {had: props{"m": mapOf(objectWith(props{"x": text()}))}, has: props{"m": mapOf(objectWith(nil))}, want: []string{"m{}.x"}},
		"When a whole object goes it should name it alone":   {had: props{"o": objectWith(props{"x": text()})}, has: props{}, want: []string{"o"}},
		"When a field of status goes it should not count it": {had: props{"status": objectWith(props{"x": text()})}, has: props{"status": objectWith(nil)}},
		"When unknown fields are kept it should find nothing": {
			had: props{"o": objectWith(props{"x": text()})}, has: props{"o": {Type: "object", XPreserveUnknownFields: ptr.To(true)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var got []string
			for _, path := range removedFields(gadget(tc.had), gadget(tc.has))["v1"] {
				got = append(got, path.String())
			}
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestHolds(t *testing.T) {
	obj := map[string]any{"l": []any{map[string]any{}, map[string]any{"x": "1"}}, "m": map[string]any{"k": map[string]any{"x": "1"}}, "empty": nil}
	for path, want := range map[*fieldPath]bool{
		{"l", "[]", "x"}: true, {"m", "{}", "x"}: true, {"l", "[]", "y"}: false, {"m", "[]", "x"}: false, {"empty"}: false, {"none", "deeper"}: false,
	} {
		t.Run("When the path is "+path.String()+" it should find what is there", func(t *testing.T) {
			NewWithT(t).Expect(holds(obj, *path)).To(Equal(want))
		})
	}
}

func gadget(fields props) *apiextensionsv1.CustomResourceDefinition {
	schema := objectWith(fields)
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gadgets.downgrade.hypershift.openshift.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "downgrade.hypershift.openshift.io", Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema}}},
		},
	}
}

func TestRefusePruning(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	c := env.Client(t, connect.Scheme())
	newer := gadget(props{"spec": objectWith(props{"old": text(), "new": text()})})
	older := gadget(props{"spec": objectWith(props{"old": text()})})
	_, err := connect.Apply(t.Context(), c, newer)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = c.Delete(t.Context(), newer) })

	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "downgrade.hypershift.openshift.io/v1", "kind": "Gadget", "metadata": map[string]any{"name": "g", "namespace": env.Namespace(t)},
		"spec": map[string]any{"old": "1", "new": "2"},
	}}
	g.Eventually(func() error { return c.Create(t.Context(), obj.DeepCopy()) }).Should(Succeed(), "the definition is served after a moment")

	err = refusePruning(t.Context(), c, []client.Object{older})
	g.Expect(err).To(MatchError(ErrPrunes))
	g.Expect(err).To(MatchError(ContainSubstring("spec.new of Gadget " + obj.GetNamespace() + "/g")))
	g.Expect(refusePruning(t.Context(), c, []client.Object{newer})).To(Succeed())

	// Once nobody uses the field it may go.
	g.Expect(c.Delete(t.Context(), obj.DeepCopy())).To(Succeed())
	g.Eventually(func() error { return refusePruning(t.Context(), c, []client.Object{older}) }).Should(Succeed())
}

func TestRefuseSkew(t *testing.T) {
	g := NewWithT(t)
	c := testenv.Start(t).Client(t, connect.Scheme())
	key := client.ObjectKey{Name: hostedClusters}
	note := func(version string) {
		ctx := context.WithoutCancel(t.Context()) // also at the end
		live := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(c.Get(ctx, key, live)).To(Succeed())
		before := live.DeepCopy()
		if live.Annotations == nil {
			live.Annotations = map[string]string{}
		}
		if live.Annotations[installedVersion] = version; version == "" {
			delete(live.Annotations, installedVersion)
		}
		g.Expect(c.Patch(ctx, live, client.MergeFrom(before))).To(Succeed())
	}
	t.Cleanup(func() { note("") })
	note("")
	g.Expect(refuseSkew(t.Context(), c)).To(Succeed(), "of before versions were noted")
	note(version.Semver())
	g.Expect(refuseSkew(t.Context(), c)).To(Succeed())
	note("7.1.0")
	err := refuseSkew(t.Context(), c)
	g.Expect(err).To(MatchError(ErrSkew))
	g.Expect(err).To(MatchError(ContainSubstring("v7.1.0 is installed")))
}

func TestDefinitionsHaveTheVersion(t *testing.T) {
	g := NewWithT(t)
	o := NewOptions()
	o.PackageOperator, o.TechPreview = true, true
	crds, err := CRDs(o)
	g.Expect(err).NotTo(HaveOccurred())
	for _, crd := range crds {
		g.Expect(crd.GetAnnotations()).To(HaveKeyWithValue(installedVersion, version.Semver()), crd.GetName())
	}
}
