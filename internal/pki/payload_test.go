package pki

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestPayload(t *testing.T) {
	secrets := func(t *testing.T, payload *Payload) (all []string) {
		t.Helper()
		leaves, err := demo(func(s *Spec) { s.Payload = payload }).leaves()
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, l := range leaves {
			all = append(all, l.secret)
		}
		return all
	}
	t.Run("When the release is OpenShift's its servers should have certificates, as far as their names are known", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(secrets(t, &Payload{})).To(And(ContainElements(AuthenticatorClient, "openshift-apiserver-cert", "aws-pod-identity-webhook-serving-cert"), Not(ContainElement("oauth-server-crt"))))
		g.Expect(secrets(t, &Payload{OAuthHost: "oauth.example.com", AppsDomain: "apps.example.com"})).To(ContainElements("oauth-server-crt", "ingress-crt"))
	})
	t.Run("When metrics are forwarded what does it should have authorities of its own", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(secrets(t, &Payload{})).NotTo(ContainElement(MetricsProxyServing))
		spec := demo(func(s *Spec) { s.Payload = &Payload{MetricsForwarding: true, MetricsHost: "metrics.example.com"} })
		leaves, err := spec.leaves()
		g.Expect(err).NotTo(HaveOccurred())
		signers := map[string]string{}
		for _, l := range leaves {
			signers[l.secret] = l.signer
			if l.secret == MetricsProxyServing {
				g.Expect(l.dns).To(ContainElements("metrics.example.com", "metrics-proxy"))
			}
		}
		g.Expect(signers).To(And(HaveKeyWithValue(MetricsProxyServing, MetricsProxyCA), HaveKeyWithValue(EndpointResolverServing, EndpointResolverCA)))
		g.Expect(spec.authorities()).To(ContainElement(authority{MetricsProxyCA, "metrics-proxy-ca", "openshift"}))
		g.Expect(typeOf(MetricsProxyCA)).To(BeEquivalentTo("kubernetes.io/tls"))
	})
	t.Run("When the release is one of Kubernetes there should be none of them", func(t *testing.T) {
		NewWithT(t).Expect(secrets(t, nil)).NotTo(ContainElement(AuthenticatorClient))
	})
}
