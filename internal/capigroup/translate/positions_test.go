package translate

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// TestPositions translates the same object in both encodings: numbers of protobuf fields are written down in the rules, and nothing but the
// types themselves can tell that they are right.
func TestPositions(t *testing.T) {
	const machines = "machines." + Standard
	for name, tc := range map[string]struct {
		path   string
		object runtime.Object
		want   []string // what is in it in the other view, and what stays
	}{
		"When a FlowSchema is about machines it should rename their group, and the path of a group": {
			"/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
			&flowcontrolv1.FlowSchema{
				TypeMeta: metav1.TypeMeta{APIVersion: "flowcontrol.apiserver.k8s.io/v1", Kind: "FlowSchema"},
				Spec: flowcontrolv1.FlowSchemaSpec{Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
					ResourceRules:    []flowcontrolv1.ResourcePolicyRule{{APIGroups: []string{"apps", Standard}, Resources: []string{"*"}, Verbs: []string{"*"}}},
					NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/apis/" + Standard}}},
				}}},
			}, []string{Private, "/apis/" + Private, "apps"}},
		"When a migration of storage names a resource it should rename its group": {
			"/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations",
			&storagemigrationv1beta1.StorageVersionMigration{
				TypeMeta: metav1.TypeMeta{APIVersion: "storagemigration.k8s.io/v1beta1", Kind: "StorageVersionMigration"},
				Spec:     storagemigrationv1beta1.StorageVersionMigrationSpec{Resource: metav1.GroupResource{Group: Standard, Resource: "machines"}},
			}, []string{Private}},
		"When one asks what one may do it should rename groups, names of definitions and paths": {
			"/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
			&authorizationv1.SelfSubjectRulesReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectRulesReview"},
				Status: authorizationv1.SubjectRulesReviewStatus{
					ResourceRules: []authorizationv1.ResourceRule{
						{APIGroups: []string{Standard}, Resources: []string{"machines"}},
						{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, ResourceNames: []string{machines}},
						{Resources: []string{"secrets"}, ResourceNames: []string{"clusters." + Standard}},
					},
					NonResourceRules: []authorizationv1.NonResourceRule{{NonResourceURLs: []string{"/apis/" + Standard + "/*"}}},
				},
			}, []string{Private, "machines." + Private, "/apis/" + Private + "/*", "clusters." + Standard}},
		"When one asks whether a path may be read it should rename the group in it": {
			"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
			&authorizationv1.SelfSubjectAccessReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
				Spec:     authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/apis/" + Standard, Verb: "get"}},
			}, []string{"/apis/" + Private}},
		"When an autoscaler looks at a MachineDeployment's metric it should rename that in spec and status": {
			"/apis/autoscaling/v2/namespaces/n/horizontalpodautoscalers",
			&autoscalingv2.HorizontalPodAutoscaler{
				TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"},
				Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
					ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: Standard + "/v1beta1", Kind: "MachineDeployment"},
					Metrics:        []autoscalingv2.MetricSpec{{Object: &autoscalingv2.ObjectMetricSource{DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: Standard + "/v1beta2"}}}},
				},
				Status: autoscalingv2.HorizontalPodAutoscalerStatus{
					CurrentMetrics: []autoscalingv2.MetricStatus{{Object: &autoscalingv2.ObjectMetricStatus{DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: Standard + "/v1beta3"}}}},
				},
			}, []string{Private + "/v1beta1", Private + "/v1beta2", Private + "/v1beta3"}},
		"When a definition is created it should rename its short names and category as when it is read": {
			"/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
			definition(machines, Standard, "ma", "cluster-api"), []string{"machines." + Private, "hma", privateCategory}},
		"When a definition of somebody else's is created it should leave its short names alone": {
			"/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
			definition("machines.example.com", "example.com", "ma", "cluster-api"), []string{"machines.example.com", "ma", standardCategory}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			r := in(t, "POST", tc.path)
			var raw, wire bytes.Buffer
			g.Expect(json.NewSerializerWithOptions(json.DefaultMetaFactory, nil, nil, json.SerializerOptions{}).Encode(tc.object, &raw)).To(Succeed())
			fromJSON := translate(t, r.Body(), raw.String())
			for _, want := range tc.want {
				g.Expect(fromJSON).To(ContainSubstring(`"` + want + `"`))
			}
			g.Expect(translate(t, r.Answer(true), fromJSON)).To(Equal(raw.String()), "an answer is read as the body was written")

			g.Expect(protobuf.NewSerializer(nil, nil).Encode(tc.object, &wire)).To(Succeed())
			edited, err := Protobuf(r.Body(), nil, wire.Bytes())
			g.Expect(err).NotTo(HaveOccurred())
			decoded := tc.object.DeepCopyObject()
			reset, _ := decoded.(interface{ Reset() })
			reset.Reset()
			var envelope runtime.Unknown
			g.Expect(envelope.Unmarshal(edited[len(protobufMagic):])).To(Succeed())
			into, _ := decoded.(interface{ Unmarshal([]byte) error })
			g.Expect(into.Unmarshal(envelope.Raw)).To(Succeed())
			decoded.GetObjectKind().SetGroupVersionKind(tc.object.GetObjectKind().GroupVersionKind())
			var again bytes.Buffer
			g.Expect(json.NewSerializerWithOptions(json.DefaultMetaFactory, nil, nil, json.SerializerOptions{}).Encode(decoded, &again)).To(Succeed())
			g.Expect(again.String()).To(MatchJSON(fromJSON), "protobuf says the same")
		})
	}
}

func definition(name, group, short, category string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "machines", ShortNames: []string{short}, Categories: []string{category}}},
		// As the API server answers, which has managed fields with nothing in them but names.
		Status: apiextensionsv1.CustomResourceDefinitionStatus{AcceptedNames: apiextensionsv1.CustomResourceDefinitionNames{ShortNames: []string{short}}},
	}
}
