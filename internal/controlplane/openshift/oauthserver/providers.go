package oauthserver

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	configv1 "hcp.internal/api/config/v1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// provider is an identity provider as the server is configured with it.
type provider struct {
	config map[string]any
	files  []file
}

// file is an object of the user's that is mounted into the server, for a key of it.
type file struct {
	volume corev1.Volume
	dir    string
}

// ProvidersProblem says which identity providers of spec.configuration.oauth are left out or can't be asked, and why; nil when all are configured.
func ProvidersProblem(ctx component.WorkloadContext) error {
	_, err := identityProviders(ctx)
	if err != nil {
		return fmt.Errorf("failed to initialize identity providers: %w", err)
	}
	return nil
}

// identityProviders are those of spec.configuration.oauth that can be configured. One that can't is left out, so that users of the others still log
// in; the error says why.
func identityProviders(ctx component.WorkloadContext) ([]provider, error) {
	var list []provider
	var errs []error
	seen := map[string]bool{}
	for i := range oauth(ctx.HCP).IdentityProviders {
		idp := &oauth(ctx.HCP).IdentityProviders[i]
		field := fmt.Sprintf("spec.configuration.oauth.identityProviders[%d]", i)
		p, warnings, err := convert(ctx, i, idp)
		switch {
		case idp.Name == "":
			err = errors.New("name is empty: give the provider one, it becomes a part of its users' identities")
		case seen[idp.Name]:
			err = errors.New("another provider has this name: give it one of its own")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s (%q) is left out: %w", field, idp.Name, err))
			continue
		}
		if warnings != nil {
			errs = append(errs, fmt.Errorf("%s (%q) is configured with what was known before: %w", field, idp.Name, warnings))
		}
		seen[idp.Name] = true
		list = append(list, p)
	}
	return list, errors.Join(errs...)
}

// converter makes one provider.
type converter struct {
	ctx   component.WorkloadContext
	index int
	files []file
	errs  []error
	// warnings don't keep the provider from being configured.
	warnings []error
}

// warn notes what doesn't keep the provider from being configured; nil is nothing.
func (c *converter) warn(err error) {
	if err != nil {
		c.warnings = append(c.warnings, err)
	}
}

// convert makes the configuration of the provider with an index. The second result says what is wrong with it although it can be used.
func convert(ctx component.WorkloadContext, index int, idp *configv1.IdentityProvider) (_ provider, warnings, _ error) {
	c := &converter{ctx: ctx, index: index}
	of := map[configv1.IdentityProviderType]func(*configv1.IdentityProvider) converted{
		configv1.IdentityProviderTypeBasicAuth: c.basicAuth, configv1.IdentityProviderTypeGitHub: c.gitHub, configv1.IdentityProviderTypeGitLab: c.gitLab,
		configv1.IdentityProviderTypeGoogle: c.google, configv1.IdentityProviderTypeHTPasswd: c.htpasswd, configv1.IdentityProviderTypeKeystone: c.keystone,
		configv1.IdentityProviderTypeLDAP: c.ldap, configv1.IdentityProviderTypeOpenID: c.openID, configv1.IdentityProviderTypeRequestHeader: c.requestHeader,
	}[idp.Type]
	if of == nil {
		return provider{}, nil, fmt.Errorf("type %q is unknown: it must be BasicAuth, GitHub, GitLab, Google, HTPasswd, Keystone, LDAP, OpenID or RequestHeader", idp.Type)
	}
	out := of(idp)
	if err := errors.Join(c.errs...); err != nil {
		return provider{}, nil, err
	}
	out.fields["apiVersion"], out.fields["kind"] = "osin.config.openshift.io/v1", out.kind
	mapping := idp.MappingMethod
	if mapping == "" {
		mapping = configv1.MappingMethodClaim
	}
	return provider{files: c.files, config: map[string]any{
		"name": idp.Name, "challenge": out.challenge, "login": out.login, "mappingMethod": string(mapping), "provider": out.fields,
	}}, errors.Join(c.warnings...), nil
}

// converted is the part of a provider that depends on its type. challenge: clients without a browser can log in by it; login: those with one.
type converted struct {
	kind             string
	challenge, login bool
	fields           map[string]any
}

// missing is the answer for a provider whose type says one thing and whose fields another.
func (c *converter) missing(field string) converted {
	c.errs = append(c.errs, fmt.Errorf("%s is missing: it configures a provider of this type", field))
	return converted{fields: map[string]any{}}
}

// require notes a field that is empty.
func (c *converter) require(field, value string) string {
	if value == "" {
		c.errs = append(c.errs, fmt.Errorf("%s is empty", field))
	}
	return value
}

// secret mounts a Secret and returns where the key is, empty when no Secret is named.
func (c *converter) secret(field, short, name, key string) string {
	if name == "" {
		return ""
	}
	if err := kit.Present(c.ctx, &corev1.Secret{}, field, name, key); err != nil {
		c.errs = append(c.errs, err)
		return ""
	}
	return c.mount("secret", short, key, func(volume string) corev1.Volume { return component.SecretVolume(volume, name) })
}

// configMap is secret for a ConfigMap with key ca.crt.
func (c *converter) configMap(field, name string) string {
	const key = "ca.crt"
	if name == "" {
		return ""
	}
	if err := kit.Present(c.ctx, &corev1.ConfigMap{}, field, name, key); err != nil {
		c.errs = append(c.errs, err)
		return ""
	}
	return c.mount("cm", "ca", key, func(volume string) corev1.Volume { return component.ConfigMapVolume(volume, name) })
}

func (c *converter) mount(kind, short, key string, volume func(string) corev1.Volume) string {
	dir := fmt.Sprintf("/etc/oauth/idp/idp_%s_%d_%s", kind, c.index, short)
	c.files = append(c.files, file{volume(fmt.Sprintf("idp-%s-%d-%s", kind, c.index, short)), dir})
	return dir + "/" + key
}

// needed is secret for one that the provider can't do without, as osin's files name it.
func (c *converter) needed(field, short, name, key string) map[string]any {
	if c.require(field, name) == "" {
		return nil
	}
	return map[string]any{"file": c.secret(field, short, name, key)}
}

// remote are the fields of how a server is reached.
func (c *converter) remote(prefix string, r configv1.OAuthRemoteConnectionInfo) map[string]any {
	fields := map[string]any{"url": c.require(prefix+".url", r.URL)}
	kit.SetUnlessEmpty(fields, "ca", c.configMap(prefix+".ca.name", r.CA.Name))
	kit.SetUnlessEmpty(fields, "certFile", c.secret(prefix+".tlsClientCert.name", "tls-client-cert", r.TLSClientCert.Name, corev1.TLSCertKey))
	kit.SetUnlessEmpty(fields, "keyFile", c.secret(prefix+".tlsClientKey.name", "tls-client-key", r.TLSClientKey.Name, corev1.TLSPrivateKeyKey))
	return fields
}

// client are the fields of an OAuth client.
func (c *converter) client(prefix, id, secret string) map[string]any {
	return map[string]any{
		"clientID":     c.require(prefix+".clientID", id),
		"clientSecret": c.needed(prefix+".clientSecret.name", "client-secret", secret, clientSecretKey),
	}
}
