package ignitionserver

import (
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
	secret := func(namespace, name, token string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{}}}
		if token != "" {
			s.Annotations[hyperv1.TokenSecretAnnotation] = token
		}
		return s
	}
	for name, tc := range map[string]struct {
		secrets []*corev1.Secret
		want    []string
	}{
		"When there are tokens it should name them and nothing else": {
			secrets: []*corev1.Secret{secret("ns", "token-b", "true"), secret("ns", "root-ca", ""), secret("ns", "token-a", "true"), secret("ns", "off", "false"), secret("other", "token-c", "true")},
			want:    []string{"token-a", "token-b"},
		},
		"When there are none it should have no rule, as one without names is for all": {secrets: []*corev1.Secret{secret("ns", "root-ca", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := fake.NewClientBuilder()
			for _, s := range tc.secrets {
				b = b.WithObjects(s)
			}
			ctx := component.WorkloadContext{Context: t.Context(), Reader: b.Build(), HCP: &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}}
			role := &rbacv1.Role{}
			g.Expect(adaptRole(ctx, role)).To(Succeed())
			if len(tc.want) == 0 {
				g.Expect(role.Rules).To(BeEmpty())
				return
			}
			g.Expect(role.Rules).To(HaveLen(1))
			g.Expect(role.Rules[0].ResourceNames).To(Equal(tc.want))
		})
	}
}
