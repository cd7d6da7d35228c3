package hostedcluster

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestEndLegacy(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations []map[string]string // of hosted clusters
		gone        bool
	}{
		"When there is no hosted cluster the legacy operator should go":          {gone: true},
		"When all are private it should go":                                      {annotations: []map[string]string{{privateKey: "true"}, {privateKey: "true"}}, gone: true},
		"When others look after the rest it should go":                           {annotations: []map[string]string{{privateKey: "true"}, {scopeKey: "other"}}, gone: true},
		"When one is from before it should stay":                                 {annotations: []map[string]string{{privateKey: "true"}, {scopeKey: "legacy"}}},
		"When one has not been looked at it should stay":                         {annotations: []map[string]string{{privateKey: "true"}, {}}},
		"When one is being moved it should stay, for the move may be taken back": {annotations: []map[string]string{{privateKey: "true", lockKey: "true"}}},
		"When one was moved a moment ago it should stay":                         {annotations: []map[string]string{{privateKey: "true", hyperv1.PrivateCAPIMovedAnnotation: time.Now().Format(time.RFC3339)}}},
		"When one was moved the day before yesterday it should go":               {annotations: []map[string]string{{privateKey: "true", hyperv1.PrivateCAPIMovedAnnotation: time.Now().Add(-48 * time.Hour).Format(time.RFC3339)}}, gone: true},
		"When one is asked back it should stay":                                  {annotations: []map[string]string{{privateKey: "true", hyperv1.PrivateCAPIRollbackAnnotation: "true"}}},
		"When one says both it should stay":                                      {annotations: []map[string]string{{privateKey: "true", scopeKey: "legacy"}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme, err := NewScheme()
			g.Expect(err).NotTo(HaveOccurred())
			legacy := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "hypershift", Name: LegacyDeployment, UID: "1"},
				Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{}, Template: corev1.PodTemplateSpec{}}}
			objs := []client.Object{legacy}
			for i, a := range tc.annotations {
				objs = append(objs, &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: string(rune('a' + i)), Annotations: a}})
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).Build()
			for range 2 {
				g.Expect(endLegacyOnce(t.Context(), c, c, "hypershift")).To(Succeed())
			}
			err = c.Get(t.Context(), client.ObjectKeyFromObject(legacy), legacy)
			if tc.gone {
				g.Expect(client.IgnoreNotFound(err)).To(Succeed())
			}
			g.Expect(err != nil).To(Equal(tc.gone))
		})
	}
}
