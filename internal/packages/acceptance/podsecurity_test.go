package acceptance

import (
	"bytes"
	"context"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// TestRestricted asks an API server that enforces the pod security standard "restricted" whether it takes the pods of installed operators.
func TestRestricted(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.create(t, `{apiVersion: v1, kind: Namespace, metadata: {name: NAMESPACE-restricted, labels: {pod-security.kubernetes.io/enforce: restricted}}}`)
	data, err := os.ReadFile("../../cli/install/testdata/package-operator.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	found := 0
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		class := &schedulingv1.PriorityClass{}
		if g.Expect(yaml.Unmarshal(document, class)).To(Succeed()); class.Kind == "PriorityClass" {
			g.Expect(w.Client.Create(t.Context(), class)).To(Succeed()) // pods that name it are refused without
			t.Cleanup(func() { _ = w.Client.Delete(context.Background(), class) })
			continue
		}
		deployment := &appsv1.Deployment{}
		g.Expect(yaml.Unmarshal(document, deployment)).To(Succeed())
		if deployment.Kind != "Deployment" || deployment.Name != "package-operator-manager" {
			continue
		}
		found++
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.home + "-restricted", Name: deployment.Name}, Spec: deployment.Spec.Template.Spec}
		g.Expect(w.Client.Create(t.Context(), pod, client.DryRunAll)).To(Succeed())
	}
	g.Expect(found).To(Equal(1))
	bad := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.home + "-restricted", Name: "bad"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	g.Expect(w.Client.Create(t.Context(), bad, client.DryRunAll)).To(MatchError(ContainSubstring("violates PodSecurity")), "the server does enforce it")
}
