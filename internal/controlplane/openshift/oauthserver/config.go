package oauthserver

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/controlplane/settings"
)

// adaptConfig tells the server who it is, where users and the console reach it, and who may log in.
func adaptConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	if !ctx.Preview() && (ctx.Infra.OAuthHost == "" || ctx.Infra.OAuthPort == 0) {
		return errors.New("waiting for the address of the OAuth server: spec.services must publish OAuthServer, and the management cluster give it a host and a port")
	}
	if err := remember(ctx, cm); err != nil {
		return err
	}
	return kit.EditConfig(cm, "config.yaml", func(config map[string]any) error {
		serving := kit.Section(config, "servingInfo")
		kit.TLSOf(ctx.HCP).ServingInfo(serving)
		var named []any
		for i, cert := range settings.APIServer(ctx.HCP).ServingCerts.NamedCertificates {
			entry := map[string]any{"certFile": namedDir(i) + "/tls.crt", "keyFile": namedDir(i) + "/tls.key"}
			kit.SetUnlessEmpty(entry, "names", kit.List(cert.Names))
			named = append(named, entry)
		}
		kit.SetUnlessEmpty(serving, "namedCertificates", named)

		section := kit.Section(config, "oauthConfig")
		section["masterURL"] = "https://" + serviceHost(ctx.HCP) + ":6443"
		section["masterPublicURL"] = fmt.Sprintf("https://%s:%d", ctx.Infra.OAuthHost, ctx.Infra.OAuthPort)
		section["loginURL"] = loginURL(ctx)
		tokens, configured := kit.Section(section, "tokenConfig"), oauth(ctx.HCP).TokenConfig
		if configured.AccessTokenMaxAgeSeconds > 0 {
			tokens["accessTokenMaxAgeSeconds"] = configured.AccessTokenMaxAgeSeconds
		}
		if timeout := configured.AccessTokenInactivityTimeout; timeout != nil {
			tokens["accessTokenInactivityTimeout"] = timeout.Duration.String()
		}
		providers, _ := identityProviders(ctx) // ProvidersProblem tells of those that are left out
		var list []any
		for _, p := range providers {
			list = append(list, p.config)
		}
		kit.SetUnlessEmpty(section, "identityProviders", list)
		return nil
	})
}

// loginURL is the API that users log in to.
func loginURL(ctx component.WorkloadContext) string {
	if url := ctx.HCP.Annotations[hyperv1.OauthLoginURLOverrideAnnotation]; url != "" {
		return url
	}
	host, port := kit.Published(ctx)
	if name := ctx.HCP.Spec.KubeAPIServerDNSName; name != "" {
		host = name
	}
	return fmt.Sprintf("https://%s:%d", host, port)
}
