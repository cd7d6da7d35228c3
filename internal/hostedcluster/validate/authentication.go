package validate

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	configv1 "hcp.internal/api/config/v1"
	"hcp.internal/platform/internal/contract/names"
)

// defaultIssuer is that of the hosted cluster's own ServiceAccounts when spec.issuerURL names none.
const defaultIssuer = "https://kubernetes.default.svc"

// authenticationIsValid: kube-apiserver does not start with a configuration of OIDC that it finds wrong, and says so in its log only.
func authenticationIsValid(in *Input) []string {
	config := in.HC.Spec.Configuration
	if config == nil || config.Authentication == nil || config.Authentication.Type != configv1.AuthenticationTypeOIDC {
		return nil
	}
	var mistakes []string
	byName, issuers := map[string]int{}, map[string]int{}
	for i, p := range config.Authentication.OIDCProviders {
		field := fmt.Sprintf("spec.configuration.authentication.oidcProviders[%d]", i)
		say := func(format string, args ...any) { mistakes = append(mistakes, field+fmt.Sprintf(format, args...)) }
		if first, taken := byName[p.Name]; taken {
			say(".name: %q is also the name of oidcProviders[%d]: give every provider its own name", p.Name, first)
		} else {
			byName[p.Name] = i
		}
		if first, taken := issuers[p.Issuer.URL]; taken {
			say(".issuer.issuerURL: it is also the URL of oidcProviders[%d]: put the audiences of both into one provider", first)
		} else {
			issuers[p.Issuer.URL] = i
		}
		for _, problem := range issuerProblems(p.Issuer, cmp.Or(in.HC.Spec.IssuerURL, defaultIssuer)) {
			say(".issuer%s", problem)
		}
		for _, problem := range mappingProblems(p) {
			say("%s", problem)
		}
		if name := p.Issuer.CertificateAuthority.Name; name != "" {
			switch s := in.Sources.ConfigMap(name); {
			case s.Missing:
				say(".issuer.issuerCertificateAuthority: ConfigMap %s/%s does not exist: create it, or name another", in.HC.Namespace, name)
			case len(s.Data[names.CABundleKey]) == 0:
				say(".issuer.issuerCertificateAuthority: ConfigMap %s/%s has no key %q: add it", in.HC.Namespace, name, names.CABundleKey)
			}
		}
	}
	return mistakes
}

func issuerProblems(issuer configv1.TokenIssuer, own string) (problems []string) {
	u, err := url.Parse(issuer.URL)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "":
		problems = append(problems, ".issuerURL: it must be a URL that begins with https://")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		problems = append(problems, ".issuerURL: it must hold no user, query or fragment")
	case issuer.URL == own:
		problems = append(problems, ".issuerURL: it is that of the hosted cluster's own ServiceAccounts: use another issuer")
	}
	if discovery := issuer.DiscoveryURL; discovery != "" {
		if d, err := url.Parse(discovery); err != nil || d.Scheme != "https" || d.Host == "" || strings.TrimRight(discovery, "/") == strings.TrimRight(issuer.URL, "/") {
			problems = append(problems, ".discoveryURL: it must be a URL that begins with https:// and is not issuerURL")
		}
	}
	if len(issuer.Audiences) == 0 {
		problems = append(problems, ".audiences: it is empty: name who the tokens are for")
	}
	seen := map[configv1.TokenAudience]bool{}
	for _, audience := range issuer.Audiences {
		if audience == "" || seen[audience] {
			problems = append(problems, fmt.Sprintf(".audiences: %q is empty or listed twice: name each audience once", audience))
		}
		seen[audience] = true
	}
	return problems
}

func mappingProblems(p configv1.OIDCProvider) (problems []string) {
	user := p.ClaimMappings.Username
	switch {
	case user.Claim == "" && user.Expression == "":
		problems = append(problems, ".claimMappings.username: it has neither claim nor expression: say how users are named")
	case user.Claim != "" && user.Expression != "":
		problems = append(problems, ".claimMappings.username: it has both claim and expression: keep one of them")
	case user.PrefixPolicy == configv1.Prefix && (user.Prefix == nil || user.Prefix.PrefixString == ""):
		problems = append(problems, ".claimMappings.username.prefix: prefixPolicy is Prefix, so set prefixString")
	}
	if groups := p.ClaimMappings.Groups; groups.Claim != "" && groups.Expression != "" {
		problems = append(problems, ".claimMappings.groups: it has both claim and expression: keep one of them")
	}
	for i, rule := range p.ClaimValidationRules {
		required := rule.Type == configv1.TokenValidationRuleTypeRequiredClaim && rule.RequiredClaim != nil && rule.RequiredClaim.Claim != "" && rule.RequiredClaim.RequiredValue != ""
		expression := rule.Type == configv1.TokenValidationRuleTypeCEL && rule.CEL != nil && rule.CEL.Expression != ""
		if !required && !expression {
			problems = append(problems, fmt.Sprintf(".claimValidationRules[%d]: type %s has no complete content of that type: set claim and requiredValue, or an expression", i, rule.Type))
		}
	}
	return problems
}
