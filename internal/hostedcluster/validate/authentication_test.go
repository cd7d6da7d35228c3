package validate

import (
	"testing"

	"hcp.internal/platform/internal/hostedcluster/sources"

	. "github.com/onsi/gomega"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestAuthenticationIsValid(t *testing.T) {
	provider := func(change func(*configv1.OIDCProvider)) configv1.OIDCProvider {
		p := configv1.OIDCProvider{
			Name: "corporate", Issuer: configv1.TokenIssuer{URL: "https://login.example.com", Audiences: []configv1.TokenAudience{"console"}},
			ClaimMappings: configv1.TokenClaimMappings{Username: configv1.UsernameClaimMapping{Claim: "sub"}},
		}
		if change != nil {
			change(&p)
		}
		return p
	}
	const at = "spec.configuration.authentication.oidcProviders[0]"
	for name, tc := range map[string]struct {
		providers []configv1.OIDCProvider
		sources   sources.Set
		want      []string
	}{
		"When everything is right it should find nothing": {providers: []configv1.OIDCProvider{provider(nil)}},
		"When the issuer is no https URL it should say so": {providers: []configv1.OIDCProvider{provider(func(p *configv1.OIDCProvider) { p.Issuer.URL = "http://login" })},
			want: []string{at + ".issuer.issuerURL: it must be a URL that begins with https://"}},
		"When the issuer is the cluster itself it should say so": {providers: []configv1.OIDCProvider{provider(func(p *configv1.OIDCProvider) { p.Issuer.URL = defaultIssuer })},
			want: []string{at + ".issuer.issuerURL: it is that of the hosted cluster's own ServiceAccounts: use another issuer"}},
		"When there is no audience it should ask for one": {providers: []configv1.OIDCProvider{provider(func(p *configv1.OIDCProvider) { p.Issuer.Audiences = nil })},
			want: []string{at + ".issuer.audiences: it is empty: name who the tokens are for"}},
		"When users have no name it should ask for a claim": {providers: []configv1.OIDCProvider{provider(func(p *configv1.OIDCProvider) { p.ClaimMappings.Username.Claim = "" })},
			want: []string{at + ".claimMappings.username: it has neither claim nor expression: say how users are named"}},
		"When the prefix is missing it should ask for it": {providers: []configv1.OIDCProvider{provider(func(p *configv1.OIDCProvider) { p.ClaimMappings.Username.PrefixPolicy = configv1.Prefix })},
			want: []string{at + ".claimMappings.username.prefix: prefixPolicy is Prefix, so set prefixString"}},
		"When the certificates are missing it should name the ConfigMap": {providers: []configv1.OIDCProvider{provider(func(p *configv1.OIDCProvider) { p.Issuer.CertificateAuthority.Name = "ca" })},
			sources: sources.Set{{Kind: sources.ConfigMap, Name: "ca"}: {Missing: true}},
			want:    []string{at + ".issuer.issuerCertificateAuthority: ConfigMap clusters/ca does not exist: create it, or name another"}},
		"When two providers are the same it should say what to do": {providers: []configv1.OIDCProvider{provider(nil), provider(nil)}, want: []string{
			`spec.configuration.authentication.oidcProviders[1].name: "corporate" is also the name of oidcProviders[0]: give every provider its own name`,
			"spec.configuration.authentication.oidcProviders[1].issuer.issuerURL: it is also the URL of oidcProviders[0]: put the audiences of both into one provider"}},
	} {
		t.Run(name, func(t *testing.T) {
			hc := &hyperv1.HostedCluster{}
			hc.Namespace = "clusters"
			hc.Spec.Configuration = &hyperv1.ClusterConfiguration{Authentication: &configv1.AuthenticationSpec{Type: configv1.AuthenticationTypeOIDC, OIDCProviders: tc.providers}}
			NewWithT(t).Expect(authenticationIsValid(&Input{HC: hc, Sources: tc.sources})).To(Equal(tc.want))
		})
	}
}
