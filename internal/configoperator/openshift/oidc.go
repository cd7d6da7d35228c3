package openshift

import (
	"errors"
	"fmt"

	configv1 "hcp.internal/api/config/v1"
	"hcp.internal/platform/internal/contract/names"
)

// sourcedAnnotation is on Secrets of the control plane namespace that came from the hosted cluster: they are not given back.
const sourcedAnnotation = "hypershift.openshift.io/hosted-cluster-sourced"

// externalLogin is what the console and other clients of an OIDC provider need: whom to trust, and their secrets. Of several providers the first counts.
func externalLogin(in Input) ([]Action, error) {
	auth := in.configuration().Authentication
	if auth == nil || auth.Type != configv1.AuthenticationTypeOIDC || len(auth.OIDCProviders) == 0 {
		return nil, nil
	}
	provider := auth.OIDCProviders[0]
	var actions []Action
	var errs []error
	if name := provider.Issuer.CertificateAuthority.Name; name != "" {
		if cm := in.Control.ConfigMaps[name]; cm != nil {
			actions = append(actions, apply(configMap(openshiftConfig, name, map[string]string{names.CABundleKey: cm.Data[names.CABundleKey]}))...)
		} else {
			errs = append(errs, fmt.Errorf("configuration.authentication.oidcProviders[0].issuer.issuerCertificateAuthority names ConfigMap %s, which is not in the control plane namespace", name))
		}
	}
	for i, c := range provider.OIDCClients {
		name := c.ClientSecret.Name
		if name == "" {
			continue
		}
		s := in.secret(name)
		switch {
		case s == nil:
			errs = append(errs, fmt.Errorf("configuration.authentication.oidcProviders[0].oidcClients[%d].clientSecret names Secret %s, which is not in the control plane namespace", i, name))
		case in.aro() && s.Annotations[sourcedAnnotation] == "true":
		default:
			actions = append(actions, apply(secret(openshiftConfig, name, "", map[string][]byte{"clientSecret": s.Data["clientSecret"]}))...)
		}
	}
	return actions, errors.Join(errs...)
}
