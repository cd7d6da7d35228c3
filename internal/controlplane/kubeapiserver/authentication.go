package kubeapiserver

import (
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/settings"
)

const (
	authenticationConfigMap = "auth-config"
	authenticationKey       = "auth.json"
	authenticationVolume    = "auth-config"
	// tokenWebhookKey is the key of the Secret that says how to reach the webhook for tokens.
	tokenWebhookKey = "kubeConfig"
)

// tokenWebhook is the Secret with the kubeconfig of the webhook that is asked about tokens that nothing else knows; empty: none is asked.
func tokenWebhook(hcp *hyperv1.HostedControlPlane) string {
	if webhook := settings.Authentication(hcp).WebhookTokenAuthenticator; webhook != nil {
		return webhook.KubeConfig.Name
	}
	return ""
}

// externalOIDC says whether users log in with tokens of somebody else.
func externalOIDC(ctx component.WorkloadContext) (bool, error) {
	return settings.Authentication(ctx.HCP).Type == configv1.AuthenticationTypeOIDC, nil
}

// adaptAuthentication writes which tokens kube-apiserver takes from whom.
func adaptAuthentication(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	config, err := Authentication(ctx)
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the authentication configuration: %w", err)
	}
	cm.Data = map[string]string{authenticationKey: string(raw) + "\n"}
	return nil
}

// Authentication says which tokens kube-apiserver takes from whom: a JWT authenticator for each of the OIDC providers.
func Authentication(ctx component.WorkloadContext) (apiserverv1.AuthenticationConfiguration, error) {
	config := apiserverv1.AuthenticationConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "AuthenticationConfiguration"},
	}
	for _, provider := range settings.Authentication(ctx.HCP).OIDCProviders {
		jwt, err := jwtOf(ctx, provider)
		if err != nil {
			return config, fmt.Errorf("OIDC provider %q: %w", provider.Name, err)
		}
		config.JWT = append(config.JWT, jwt)
	}
	return config, nil
}

func jwtOf(ctx component.WorkloadContext, provider configv1.OIDCProvider) (apiserverv1.JWTAuthenticator, error) {
	if provider.Issuer.URL == settings.Issuer(ctx.HCP) {
		return apiserverv1.JWTAuthenticator{}, errors.New("its issuerURL is that of the cluster's own ServiceAccounts: use another issuer")
	}
	jwt := apiserverv1.JWTAuthenticator{
		Issuer: apiserverv1.Issuer{
			URL:                 provider.Issuer.URL,
			AudienceMatchPolicy: apiserverv1.AudienceMatchPolicyMatchAny,
		},
		ClaimMappings: claimMappings(provider),
	}
	for _, audience := range provider.Issuer.Audiences {
		jwt.Issuer.Audiences = append(jwt.Issuer.Audiences, string(audience))
	}
	if provider.Issuer.DiscoveryURL != "" {
		jwt.Issuer.DiscoveryURL = ptr.To(provider.Issuer.DiscoveryURL)
	}
	if name := provider.Issuer.CertificateAuthority.Name; name != "" {
		bundle := &corev1.ConfigMap{}
		if err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: name}, bundle); err != nil {
			return jwt, fmt.Errorf("reading its certificate authority, ConfigMap %s: %w", name, err)
		}
		if jwt.Issuer.CertificateAuthority = bundle.Data[names.CABundleKey]; jwt.Issuer.CertificateAuthority == "" {
			return jwt, fmt.Errorf("its certificate authority, ConfigMap %s, has no key %s", name, names.CABundleKey)
		}
	}
	for _, rule := range provider.ClaimValidationRules {
		switch {
		case rule.Type == configv1.TokenValidationRuleTypeRequiredClaim && rule.RequiredClaim != nil:
			jwt.ClaimValidationRules = append(jwt.ClaimValidationRules,
				apiserverv1.ClaimValidationRule{Claim: rule.RequiredClaim.Claim, RequiredValue: rule.RequiredClaim.RequiredValue})
		case rule.Type == configv1.TokenValidationRuleTypeCEL && rule.CEL != nil:
			jwt.ClaimValidationRules = append(jwt.ClaimValidationRules,
				apiserverv1.ClaimValidationRule{Expression: rule.CEL.Expression, Message: rule.CEL.Message})
		default:
			return jwt, fmt.Errorf("claim validation rule of type %q has no content of that type", rule.Type)
		}
	}
	for _, rule := range provider.UserValidationRules {
		jwt.UserValidationRules = append(jwt.UserValidationRules,
			apiserverv1.UserValidationRule{Expression: rule.Expression, Message: rule.Message})
	}
	return jwt, nil
}

func claimMappings(provider configv1.OIDCProvider) apiserverv1.ClaimMappings {
	from := provider.ClaimMappings
	var to apiserverv1.ClaimMappings
	if from.Username.Expression != "" {
		to.Username.Expression = from.Username.Expression
	} else {
		to.Username = apiserverv1.PrefixedClaimOrExpression{Claim: from.Username.Claim, Prefix: ptr.To(usernamePrefix(provider))}
	}
	switch {
	case from.Groups.Expression != "":
		to.Groups.Expression = from.Groups.Expression
	case from.Groups.Claim != "":
		to.Groups = apiserverv1.PrefixedClaimOrExpression{Claim: from.Groups.Claim, Prefix: ptr.To(from.Groups.Prefix)}
	}
	if from.UID != nil {
		to.UID = apiserverv1.ClaimOrExpression{Claim: from.UID.Claim, Expression: from.UID.Expression}
	}
	for _, extra := range from.Extra {
		to.Extra = append(to.Extra, apiserverv1.ExtraMapping{Key: extra.Key, ValueExpression: extra.ValueExpression})
	}
	return to
}

// usernamePrefix keeps users of different issuers apart. An e-mail address is unique by itself, so it gets none unless asked.
func usernamePrefix(provider configv1.OIDCProvider) string {
	username := provider.ClaimMappings.Username
	switch username.PrefixPolicy {
	case configv1.NoPrefix:
		return ""
	case configv1.Prefix:
		if username.Prefix != nil {
			return username.Prefix.PrefixString
		}
		return ""
	}
	if username.Claim == "email" {
		return ""
	}
	return provider.Issuer.URL + "#"
}
