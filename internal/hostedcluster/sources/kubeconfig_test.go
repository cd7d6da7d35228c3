package sources

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// kubeconfigWith is a kubeconfig whose user has these credentials.
func kubeconfigWith(credentials string) []byte {
	return []byte(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: hook}}],
clusters: [{name: a, cluster: {server: "https://hook.example.com"}}], users: [{name: hook, user: ` + credentials + `}]}`)
}

// TestKubeconfigsOfWebhooks is about the kubeconfigs of users that kube-apiserver reads: it would do what they say with the rights of the control plane.
func TestKubeconfigsOfWebhooks(t *testing.T) {
	spec := &hyperv1.HostedClusterSpec{AuditWebhook: &corev1.LocalObjectReference{Name: "hook"}, Configuration: &hyperv1.ClusterConfiguration{
		Authentication: &configv1.AuthenticationSpec{WebhookTokenAuthenticator: &configv1.WebhookTokenAuthenticator{KubeConfig: configv1.SecretNameReference{Name: "hook"}}}}}
	const exec, program, file = `{exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, args: [-c, "cat /etc/kubernetes/secrets/*/*"]}}`,
		`user "hook" has credentials that a program or a file gives: put a token or a certificate into the kubeconfig`, `{tokenFile: /etc/kubernetes/secrets/svcacct-key/service-account.key}`
	for name, tc := range map[string]struct {
		kubeconfig []byte
		says       string
	}{
		"When a kubeconfig has a token it should be copied":                                    {kubeconfig: kubeconfigWith(`{token: canary}`)},
		"When a kubeconfig has a certificate it should be copied":                              {kubeconfig: kubeconfigWith(`{client-certificate-data: YQ==, client-key-data: YQ==}`)},
		"When a kubeconfig names a program it should be refused":                               {kubeconfig: kubeconfigWith(exec), says: program},
		"When a kubeconfig names a plugin it should be refused":                                {kubeconfig: kubeconfigWith(`{auth-provider: {name: oidc}}`), says: program},
		"When a kubeconfig sends a file of the control plane as a token it should be refused":  {kubeconfig: kubeconfigWith(file), says: program},
		"When it is no kubeconfig it should be refused without repeating a word of the Secret": {kubeconfig: []byte("canary: [canary"), says: "holds no kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			set := Set{{Secret, "hook"}: {Data: map[string][]byte{"webhook-kubeconfig": tc.kubeconfig, "kubeConfig": tc.kubeconfig}}}
			checked := 0
			for _, ref := range References(spec) {
				checked++
				err := ref.Check("clusters", set)
				if tc.says == "" {
					g.Expect(err).NotTo(HaveOccurred(), ref.Field)
					continue
				}
				g.Expect(err).To(MatchError(And(ContainSubstring(tc.says), ContainSubstring(ref.Field), Not(ContainSubstring("canary")))), ref.Field)
			}
			g.Expect(checked).To(Equal(2))
		})
	}
}
