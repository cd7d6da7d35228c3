package oauthserver

import (
	configv1 "hcp.internal/api/config/v1"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

func (c *converter) basicAuth(idp *configv1.IdentityProvider) converted {
	if idp.BasicAuth == nil {
		return c.missing("basicAuth")
	}
	return converted{"BasicAuthPasswordIdentityProvider", true, true, c.remote("basicAuth", idp.BasicAuth.OAuthRemoteConnectionInfo)}
}

func (c *converter) gitHub(idp *configv1.IdentityProvider) converted {
	p := idp.GitHub
	if p == nil {
		return c.missing("github")
	}
	fields := c.client("github", p.ClientID, p.ClientSecret.Name)
	kit.SetUnlessEmpty(fields, "organizations", kit.List(p.Organizations))
	kit.SetUnlessEmpty(fields, "teams", kit.List(p.Teams))
	kit.SetUnlessEmpty(fields, "hostname", p.Hostname)
	kit.SetUnlessEmpty(fields, "ca", c.configMap("github.ca.name", p.CA.Name))
	return converted{"GitHubIdentityProvider", false, true, fields}
}

func (c *converter) gitLab(idp *configv1.IdentityProvider) converted {
	p := idp.GitLab
	if p == nil {
		return c.missing("gitlab")
	}
	fields := c.client("gitlab", p.ClientID, p.ClientSecret.Name)
	fields["url"], fields["legacy"] = c.require("gitlab.url", p.URL), false // legacy: before OpenID Connect
	kit.SetUnlessEmpty(fields, "ca", c.configMap("gitlab.ca.name", p.CA.Name))
	return converted{"GitLabIdentityProvider", true, true, fields}
}

func (c *converter) google(idp *configv1.IdentityProvider) converted {
	p := idp.Google
	if p == nil {
		return c.missing("google")
	}
	fields := c.client("google", p.ClientID, p.ClientSecret.Name)
	kit.SetUnlessEmpty(fields, "hostedDomain", p.HostedDomain)
	return converted{"GoogleIdentityProvider", false, true, fields}
}

func (c *converter) htpasswd(idp *configv1.IdentityProvider) converted {
	const field = "htpasswd.fileData.name"
	if idp.HTPasswd == nil {
		return c.missing("htpasswd")
	}
	path := c.secret(field, "file-data", c.require(field, idp.HTPasswd.FileData.Name), "htpasswd")
	return converted{"HTPasswdPasswordIdentityProvider", true, true, map[string]any{"file": path}}
}

func (c *converter) keystone(idp *configv1.IdentityProvider) converted {
	p := idp.Keystone
	if p == nil {
		return c.missing("keystone")
	}
	fields := c.remote("keystone", p.OAuthRemoteConnectionInfo)
	fields["useKeystoneIdentity"] = true // identities are IDs, for names come to belong to others
	kit.SetUnlessEmpty(fields, "domainName", p.DomainName)
	return converted{"KeystonePasswordIdentityProvider", true, true, fields}
}

func (c *converter) ldap(idp *configv1.IdentityProvider) converted {
	p := idp.LDAP
	if p == nil {
		return c.missing("ldap")
	}
	attributes := map[string]any{}
	kit.SetUnlessEmpty(attributes, "id", kit.List(p.Attributes.ID))
	kit.SetUnlessEmpty(attributes, "preferredUsername", kit.List(p.Attributes.PreferredUsername))
	kit.SetUnlessEmpty(attributes, "name", kit.List(p.Attributes.Name))
	kit.SetUnlessEmpty(attributes, "email", kit.List(p.Attributes.Email))
	fields := map[string]any{"url": c.require("ldap.url", p.URL), "insecure": p.Insecure}
	kit.SetUnlessEmpty(fields, "attributes", attributes)
	kit.SetUnlessEmpty(fields, "bindDN", p.BindDN)
	if path := c.secret("ldap.bindPassword.name", "bind-password", p.BindPassword.Name, "bindPassword"); path != "" {
		fields["bindPassword"] = map[string]any{"file": path}
	}
	kit.SetUnlessEmpty(fields, "ca", c.configMap("ldap.ca.name", p.CA.Name))
	return converted{"LDAPPasswordIdentityProvider", true, true, fields}
}

func (c *converter) requestHeader(idp *configv1.IdentityProvider) converted {
	p := idp.RequestHeader
	if p == nil {
		return c.missing("requestHeader")
	}
	fields := map[string]any{}
	kit.SetUnlessEmpty(fields, "loginURL", p.LoginURL)
	kit.SetUnlessEmpty(fields, "challengeURL", p.ChallengeURL)
	c.require("requestHeader.ca.name", p.ClientCA.Name) // without it anybody could say to be anybody
	kit.SetUnlessEmpty(fields, "clientCA", c.configMap("requestHeader.ca.name", p.ClientCA.Name))
	for key, list := range map[string][]string{
		"clientCommonNames": p.ClientCommonNames, "headers": p.Headers,
		"preferredUsernameHeaders": p.PreferredUsernameHeaders, "nameHeaders": p.NameHeaders, "emailHeaders": p.EmailHeaders,
	} {
		kit.SetUnlessEmpty(fields, key, kit.List(list))
	}
	return converted{"RequestHeaderIdentityProvider", p.ChallengeURL != "", p.LoginURL != "", fields}
}
