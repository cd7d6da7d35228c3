package ignitionserver

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

func TestRole(t *testing.T) {
	published := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch", "update", "patch", "delete"}}
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "token-a", Annotations: map[string]string{hyperv1.TokenSecretAnnotation: "true"}}}
	role := func(g Gomega, preview bool) *rbacv1.Role {
		ctx := component.WorkloadContext{Context: t.Context(), Reader: fake.NewClientBuilder().WithObjects(token).Build(), PublishedRights: preview,
			HCP: &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}}
		out := &rbacv1.Role{Rules: []rbacv1.PolicyRule{published}}
		g.Expect(adaptRole(ctx, out)).To(Succeed())
		return out
	}
	t.Run("When a payload runs its server should have the right to tokens and what payloads are made of, and to no other Secret", func(t *testing.T) {
		g := NewWithT(t)
		var named []string
		for _, rule := range role(g, false).Rules {
			if slices.Contains(rule.Resources, "secrets") {
				g.Expect(rule.ResourceNames).NotTo(BeEmpty(), "that would be a right to the keys of all authorities")
				named = append(named, rule.ResourceNames...)
			}
		}
		g.Expect(named).To(ConsistOf("bootstrap-kubeconfig", "pull-secret", "token-a"))
	})
	t.Run("When it is a preview it should stay as published", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(role(g, true).Rules).To(Equal([]rbacv1.PolicyRule{published}))
	})
}
