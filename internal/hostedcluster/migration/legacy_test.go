package migration

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestEndLegacy(t *testing.T) {
	const private, scope, lock = hyperv1.PrivateCAPITypesAnnotation, hyperv1.HostedClusterScopeAnnotation, hyperv1.PrivateCAPIMigrationInProgressAnnotation
	for name, tc := range map[string]struct {
		annotations []map[string]string // of hosted clusters
		gone        bool
	}{
		"When there is no hosted cluster the legacy operator should go":          {gone: true},
		"When all are private it should go":                                      {annotations: []map[string]string{{private: "true"}, {private: "true"}}, gone: true},
		"When others look after the rest it should go":                           {annotations: []map[string]string{{private: "true"}, {scope: "other"}}, gone: true},
		"When one is from before it should stay":                                 {annotations: []map[string]string{{private: "true"}, {scope: "legacy"}}},
		"When one has not been looked at it should stay":                         {annotations: []map[string]string{{private: "true"}, {}}},
		"When one is being moved it should stay, for the move may be taken back": {annotations: []map[string]string{{private: "true", lock: "true"}}},
		"When one was moved a moment ago it should stay":                         {annotations: []map[string]string{{private: "true", hyperv1.PrivateCAPIMovedAnnotation: time.Now().Format(time.RFC3339)}}},
		"When one was moved the day before yesterday it should go":               {annotations: []map[string]string{{private: "true", hyperv1.PrivateCAPIMovedAnnotation: time.Now().Add(-48 * time.Hour).Format(time.RFC3339)}}, gone: true},
		"When one is asked back it should stay":                                  {annotations: []map[string]string{{private: "true", hyperv1.PrivateCAPIRollbackAnnotation: "true"}}},
		"When one says both it should stay":                                      {annotations: []map[string]string{{private: "true", scope: "legacy"}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(errors.Join(appsv1.AddToScheme(scheme), hyperv1.AddToScheme(scheme))).To(Succeed())
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
			err := c.Get(t.Context(), client.ObjectKeyFromObject(legacy), legacy)
			if tc.gone {
				g.Expect(client.IgnoreNotFound(err)).To(Succeed())
			}
			g.Expect(err != nil).To(Equal(tc.gone))
		})
	}
}
