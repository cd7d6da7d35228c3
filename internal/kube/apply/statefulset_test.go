package apply_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/testenv"
)

func TestStatefulSetWithStatus(t *testing.T) {
	t.Run("When a StatefulSet has replicas it should send nothing for it", func(t *testing.T) {
		g := NewWithT(t)
		env := testenv.Start(t)
		c := env.Client(t, newScheme(t))
		labels := map[string]string{"app": "db"}
		desired := &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "db"},
			Spec: appsv1.StatefulSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: "db:1"}}},
				},
			},
		}
		g.Expect(apply.New(c, "test").Apply(t.Context(), desired)).To(Succeed())
		live := &appsv1.StatefulSet{}
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(desired), live)).To(Succeed())
		live.Status = appsv1.StatefulSetStatus{Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
		g.Expect(c.Status().Update(t.Context(), live)).To(Succeed())
		counting := testenv.NewFaultClient(c, testenv.FailWrite, 0)
		g.Expect(apply.New(counting, "test").Apply(t.Context(), desired)).To(Succeed())
		g.Expect(counting.Writes()).To(BeZero())
	})
}
