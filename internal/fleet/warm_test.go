package fleet

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/placement"
	"hcp.internal/platform/internal/testenv"
)

const image = "registry.invalid/operator:1"

func (s *scene) placeholders() map[string]int32 {
	list, found := &appsv1.DeploymentList{}, map[string]int32{}
	NewWithT(s.T).Expect(s.c.List(s.Context(), list, client.InNamespace(placement.Namespace))).To(Succeed())
	for _, d := range list.Items {
		found[d.Name] = *d.Spec.Replicas
	}
	return found
}

func TestPlaceholders(t *testing.T) {
	s := newScene(t)
	g := NewWithT(t)
	config := s.configure(func(c *schedulingv1alpha1.ClusterSizingConfiguration) {
		c.Spec.Sizes[0].Management = &schedulingv1alpha1.Management{Placeholders: 2}
		c.Spec.Sizes[1].Management = &schedulingv1alpha1.Management{Placeholders: 1}
	})
	placer := func(c client.Client) *Scheduler { p := s.placer(c); p.Image = image; return p }
	warm := func(c client.WithWatch) error {
		_, err := (&Warmer{Client: c, Live: c, Image: image, Scheduler: placer(c)}).Reconcile(t.Context(), ctrl.Request{})
		return err
	}
	t.Cleanup(func() {
		_ = s.c.DeleteAllOf(context.Background(), &appsv1.Deployment{}, client.InNamespace(placement.Namespace))
	})
	g.Expect(warm(s.c)).To(Succeed())
	g.Expect(s.placeholders()).To(Equal(map[string]int32{"placeholder-small-0": 2, "placeholder-small-1": 2, "placeholder-medium-0": 2}))
	testenv.ExpectQuiet(t, s.c, warm)

	// A cluster that lacks nodes has a placeholder of its own, which goes when they are there.
	hc := s.dedicated("waits", 3)
	pass := func() {
		s.pass(s.c, s.sizer(s.c), client.ObjectKeyFromObject(hc))
		s.pass(s.c, placer(s.c), client.ObjectKeyFromObject(hc))
	}
	pass()
	g.Expect(s.placeholders()).To(HaveKeyWithValue(names.NamespaceOf(hc), int32(2)))
	g.Expect(warm(s.c)).To(Succeed())
	g.Expect(s.placeholders()).To(HaveKey(names.NamespaceOf(hc)))
	s.nodes("warm", "small")
	pass()
	g.Expect(s.owned(hc)).To(HaveLen(2))
	g.Expect(s.placeholders()).NotTo(HaveKey(names.NamespaceOf(hc)))

	// Warm ones leave the pair that is taken.
	g.Expect(warm(s.c)).To(Succeed())
	d := &appsv1.Deployment{}
	g.Expect(s.c.Get(t.Context(), client.ObjectKey{Namespace: placement.Namespace, Name: "placeholder-small-0"}, d)).To(Succeed())
	g.Expect(d.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions).To(ContainElement(
		corev1.NodeSelectorRequirement{Key: hyperv1.PairedNodesLabel, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"warm"}}))

	config.Spec.Sizes[0].Management.Placeholders = 0
	g.Expect(s.c.Update(t.Context(), config)).To(Succeed())
	g.Expect(warm(s.c)).To(Succeed())
	g.Expect(s.placeholders()).To(Equal(map[string]int32{"placeholder-medium-0": 2}))
}

// vpaDefinition is as much of the vertical pod autoscaler's as is needed: the real one is not among our modules.
func vpaDefinition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "verticalpodautoscalers.autoscaling.k8s.io", Annotations: map[string]string{"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/63797"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: verticalPodAutoscaler.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "verticalpodautoscalers", Singular: "verticalpodautoscaler", Kind: verticalPodAutoscaler.Kind, ListKind: "VerticalPodAutoscalerList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec":   {Type: "object", XPreserveUnknownFields: ptr.To(true)},
					"status": {Type: "object", XPreserveUnknownFields: ptr.To(true)},
				}}}}},
		},
	}
}

func TestRecommender(t *testing.T) {
	s := newScene(t)
	g := NewWithT(t)
	s.configure(func(c *schedulingv1alpha1.ClusterSizingConfiguration) {
		for i, memory := range []string{"8Gi", "32Gi", "64Gi"} {
			c.Spec.Sizes[i].Capacity = &schedulingv1alpha1.SizeCapacity{Memory: ptr.To(resource.MustParse(memory))}
		}
	})
	hc := s.cluster("used", 3)
	key := client.ObjectKeyFromObject(hc)
	hc.Annotations = map[string]string{hyperv1.ResourceBasedControlPlaneAutoscalingAnnotation: "true"}
	g.Expect(s.c.Update(t.Context(), hc)).To(Succeed())
	recommender := func(c client.Client) *Recommender { return &Recommender{Client: c, Live: c, Clock: s.now} }
	recommended := func() string {
		s.pass(s.c, recommender(s.c), key)
		s.size(hc)
		return hc.Annotations[hyperv1.RecommendedClusterSizeAnnotation]
	}
	g.Expect(recommended()).To(BeEmpty(), "there is no vertical pod autoscaler")

	definition := vpaDefinition()
	testenv.Start(t).Install(t, definition)
	t.Cleanup(func() {
		_ = envtest.UninstallCRDs(testenv.Start(t).Config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{definition}})
	})
	s.c = testenv.Start(t).Client(t, s.c.Scheme()) // which finds the new kind
	g.Expect(recommended()).To(BeEmpty(), "there is no control plane")
	g.Expect(s.c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.NamespaceOf(hc)}})).To(Succeed())
	g.Expect(recommended()).To(BeEmpty(), "it has seen nothing")
	vpa := &unstructured.Unstructured{}
	vpa.SetGroupVersionKind(verticalPodAutoscaler)
	g.Expect(s.c.Get(t.Context(), client.ObjectKey{Namespace: names.NamespaceOf(hc), Name: "kube-apiserver"}, vpa)).To(Succeed())
	mode, _, _ := unstructured.NestedString(vpa.Object, "spec", "updatePolicy", "updateMode")
	g.Expect(mode).To(Equal("Off"), "it watches only")
	uses := func(memory string) {
		g.Expect(s.c.Get(t.Context(), client.ObjectKeyFromObject(vpa), vpa)).To(Succeed())
		vpa.Object["status"] = map[string]any{"recommendation": map[string]any{"containerRecommendations": []any{
			map[string]any{"containerName": "kube-apiserver", "uncappedTarget": map[string]any{"memory": memory, "cpu": "1"}}}}}
		g.Expect(s.c.Status().Update(t.Context(), vpa)).To(Succeed())
	}
	for memory, want := range map[string]string{"1Gi": "small", "6Gi": "medium", "30Gi": "large", "300Gi": "large"} {
		uses(memory)
		g.Expect(recommended()).To(Equal(want), memory)
	}
	testenv.ExpectQuiet(t, s.c, func(c client.WithWatch) error {
		_, err := recommender(c).Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		return err
	})
	s.pass(s.c, s.sizer(s.c), key)
	g.Expect(s.size(hc)).To(Equal(hc.Annotations[hyperv1.RecommendedClusterSizeAnnotation]))

	delete(hc.Annotations, hyperv1.ResourceBasedControlPlaneAutoscalingAnnotation)
	g.Expect(s.c.Update(t.Context(), hc)).To(Succeed())
	g.Expect(recommended()).To(BeEmpty())
	g.Expect(client.IgnoreNotFound(s.c.Get(t.Context(), client.ObjectKeyFromObject(vpa), vpa))).To(Succeed())
}
