package install

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/testenv"
)

func handedOver(group, description string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group,
			Labels:      map[string]string{"cluster.x-k8s.io/v1beta2": "v1", "hypershift.openshift.io/managed": "true"},
			Annotations: map[string]string{"hypershift.openshift.io/x": "y", "theirs": "z"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Description: description}}}},
		},
	}
}

// beEstablished matches a definition of which the API server has said so. Until then it writes to the definition itself, too.
var beEstablished = HaveField("Status.Conditions", ContainElement(And(HaveField("Type", apiextensionsv1.Established), HaveField("Status", apiextensionsv1.ConditionTrue))))

func TestHandOver(t *testing.T) {
	g := NewWithT(t)
	c := testenv.Start(t).Client(t, connect.Scheme())
	p := func(out *bytes.Buffer) *progress.Printer { return progress.New(out, clock.RealClock{}) }
	standard, private := handedOver("handover.cluster.x-k8s.io", "ours"), handedOver("handover.cluster.hypershift.openshift.io", "ours")
	foreign := handedOver("handover.example.com", "ours")
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{standard, private, foreign} {
		_, err := connect.Apply(t.Context(), c, crd)
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = c.Delete(t.Context(), crd) })
		live := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(crd), live)).To(Succeed())
		before := live.DeepCopy()
		live.Spec.PreserveUnknownFields = false
		live.Annotations["by"] = "keeper"
		g.Expect(c.Patch(t.Context(), live, client.MergeFrom(before), client.FieldOwner(names.HypershiftOperator))).To(Succeed())
		g.Eventually(func() *apiextensionsv1.CustomResourceDefinition {
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(crd), live)).To(Succeed())
			return live
		}).Should(beEstablished)
	}
	// The platform's own definition says something else than ours.
	theirs := func() error {
		u, err := connect.Unstructured(connect.Scheme(), handedOver(standard.Spec.Group, "theirs"))
		g.Expect(err).NotTo(HaveOccurred())
		unstructured.RemoveNestedField(u.Object, "status")
		return c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("platform"))
	}
	g.Expect(apierrors.IsConflict(theirs())).To(BeTrue(), "before it is handed over it is ours")

	var out bytes.Buffer
	g.Expect(handOver(t.Context(), c, p(&out))).To(Succeed())
	g.Expect(out.String()).To(ContainSubstring("handed over CustomResourceDefinition widgets.handover.cluster.x-k8s.io"))
	g.Expect(out.String()).NotTo(Or(ContainSubstring("hypershift.openshift.io"), ContainSubstring("example.com")))

	owners := func(crd *apiextensionsv1.CustomResourceDefinition) (all []string) {
		live := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(crd), live)).To(Succeed())
		for _, e := range live.ManagedFields {
			if e.Subresource == "" {
				all = append(all, e.Manager)
			}
		}
		slices.Sort(all)
		crd.ObjectMeta, crd.Spec = live.ObjectMeta, live.Spec
		return slices.Compact(all)
	}
	g.Expect(owners(standard)).NotTo(Or(ContainElement(connect.FieldOwner), ContainElement(names.HypershiftOperator)))
	g.Expect(standard.Spec.Versions[0].Schema.OpenAPIV3Schema.Description).To(Equal("ours"), "nothing in it changes")
	g.Expect(standard.Labels).To(Equal(map[string]string{"cluster.x-k8s.io/v1beta2": "v1"}), "Cluster API looks for its label")
	g.Expect(standard.Annotations).To(Equal(map[string]string{"theirs": "z", "by": "keeper"}))
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{private, foreign} {
		g.Expect(owners(crd)).To(ContainElements(connect.FieldOwner, names.HypershiftOperator))
		g.Expect(crd.Labels).To(HaveKey("hypershift.openshift.io/managed"))
	}

	g.Expect(theirs()).To(Succeed(), "nobody is in the way any more")
	owners(standard)
	version := standard.ResourceVersion
	out.Reset()
	g.Expect(handOver(t.Context(), c, p(&out))).To(Succeed())
	owners(standard)
	g.Expect(standard.ResourceVersion).To(Equal(version), "what is handed over is left alone, even if it says something of us")
	g.Expect(out.String()).To(BeEmpty())
}

func TestEndConversion(t *testing.T) {
	g := NewWithT(t)
	c := testenv.Start(t).Client(t, connect.Scheme())
	const namespace = "hypershift-end"
	crd := handedOver("end.cluster.x-k8s.io", "ours")
	crd.Labels = map[string]string{"cluster.x-k8s.io/v1beta1": "v0", "cluster.x-k8s.io/v1beta2": "v1"}
	old := *crd.Spec.Versions[0].DeepCopy()
	old.Name, old.Storage = "v0", false
	crd.Spec.Versions = append(crd.Spec.Versions, old)
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ConversionReviewVersions: []string{"v1"},
		ClientConfig:             &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: namespace, Name: config.ConversionService, Path: ptr.To("/convert")}},
	}}
	_, err := connect.Apply(t.Context(), c, crd)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = c.Delete(t.Context(), crd) })
	live := &apiextensionsv1.CustomResourceDefinition{}
	read := func() *apiextensionsv1.CustomResourceDefinition {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(crd), live)).To(Succeed())
		return live
	}
	g.Eventually(read).Should(beEstablished)
	g.Expect(Converts(live, namespace)).To(BeTrue())
	g.Expect(Converts(live, "another")).To(BeFalse())
	g.Expect(EndConversion(t.Context(), c, crd.Name, "another")).To(Succeed())
	g.Expect(Converts(read(), namespace)).To(BeTrue(), "another installation's is left alone")

	g.Expect(EndConversion(t.Context(), c, crd.Name, namespace)).To(Succeed())
	g.Expect(read().Spec.Conversion.Strategy).To(Equal(apiextensionsv1.NoneConverter))
	g.Expect(live.Spec.Versions[0].Served).To(BeTrue())
	g.Expect(live.Spec.Versions[1].Served).To(BeFalse(), "nobody could convert it")
	g.Expect(live.Labels).To(Equal(map[string]string{"cluster.x-k8s.io/v1beta2": "v1"}))
	for _, e := range live.ManagedFields {
		g.Expect(e.Manager).NotTo(BeElementOf(connect.FieldOwner, names.HypershiftOperator))
	}
	version := live.ResourceVersion
	g.Expect(EndConversion(t.Context(), c, crd.Name, namespace)).To(Succeed())
	g.Expect(read().ResourceVersion).To(Equal(version))
	g.Expect(EndConversion(t.Context(), c, "gone."+crd.Name, namespace)).To(Succeed())
}

func TestConversionRights(t *testing.T) {
	for name, tc := range map[string]struct {
		choice capiChoice
		want   []string
	}{
		"When definitions that were handed over need our webhook it should keep the right to write its CA into these": {
			capiChoice{Private: true, converted: []string{"machines.cluster.x-k8s.io"}}, []string{"machines.cluster.x-k8s.io"}},
		"When their owner has replaced them it should have no right to them": {capiChoice{Private: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var standard []string
			for _, n := range tc.choice.conversionRule().ResourceNames {
				if strings.HasSuffix(n, ".cluster.x-k8s.io") {
					standard = append(standard, n)
				}
			}
			NewWithT(t).Expect(standard).To(Equal(tc.want))
		})
	}
}
