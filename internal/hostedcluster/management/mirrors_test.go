package management

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"hcp.internal/platform/internal/oci/rewrite"
	"hcp.internal/platform/internal/testenv"
)

func TestManagementMirrors(t *testing.T) {
	g := NewWithT(t)
	env, scheme := testenv.Start(t), runtime.NewScheme()
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	c := env.Client(t, scheme)
	clk := clocktesting.NewFakePassiveClock(time.Now())
	httpClient, err := rest.HTTPClientFor(env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	mapper, err := apiutil.NewDynamicRESTMapper(env.Config, httpClient)
	g.Expect(err).NotTo(HaveOccurred())
	m := &Mirrors{Reader: c, Mapper: mapper, Clock: clk}
	g.Expect(m.Get(t.Context())).To(BeEmpty(), "no such kind is no mirror")

	g.Expect(c.Create(t.Context(), &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "imagedigestmirrorsets.config.openshift.io", Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, a test"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "config.openshift.io", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "imagedigestmirrorsets", Singular: "imagedigestmirrorset", Kind: "ImageDigestMirrorSet", ListKind: "ImageDigestMirrorSetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}}}},
		},
	})).To(Succeed())
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "ImageDigestMirrorSet", "metadata": map[string]any{"name": "mirrors"},
		"spec": map[string]any{"imageDigestMirrors": []any{
			map[string]any{"source": "quay.io/releases", "mirrors": []any{"mirror.example.com/a", "mirror.example.com/b"}},
			map[string]any{"source": "quay.io/none"}, "nonsense",
		}},
	}}
	g.Eventually(func() error { return client.IgnoreAlreadyExists(c.Create(t.Context(), set)) }).WithTimeout(30 * time.Second).Should(Succeed())
	g.Expect(m.Get(t.Context())).To(BeEmpty(), "what was read a moment ago is believed")
	clk.SetTime(clk.Now().Add(mirrorsFresh))
	g.Eventually(func() ([]rewrite.Mirror, error) {
		clk.SetTime(clk.Now().Add(mirrorsFresh))
		return m.Get(t.Context())
	}).WithTimeout(30 * time.Second).Should(Equal([]rewrite.Mirror{{Source: "quay.io/releases", Mirrors: []string{"mirror.example.com/a", "mirror.example.com/b"}}}))
	found, err := m.Get(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(FormatMirrors(found)).To(Equal("quay.io/releases=mirror.example.com/a,quay.io/releases=mirror.example.com/b"))
}
