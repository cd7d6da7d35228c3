package oauthserver

import (
	"encoding/json"
	"errors"
	"fmt"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// override is what an annotation of the control plane says of an OpenID provider, in the place of what the provider itself would answer.
type override struct {
	URLs struct {
		Authorize string `json:"authorize"`
		Token     string `json:"token"`
		UserInfo  string `json:"userInfo"`
	} `json:"urls"`
	Claims struct {
		ID                []string `json:"id"`
		PreferredUsername []string `json:"preferredUsername"`
		Name              []string `json:"name"`
		Email             []string `json:"email"`
		Groups            []string `json:"groups"`
	} `json:"claims"`
	Challenge *bool `json:"challenge"`
}

func (c *converter) openID(idp *configv1.IdentityProvider) converted {
	p := idp.OpenID
	if p == nil {
		return c.missing("openID")
	}
	fields := c.client("openID", p.ClientID, p.ClientSecret.Name)
	kit.SetUnlessEmpty(fields, "ca", c.configMap("openID.ca.name", p.CA.Name))
	kit.SetUnlessEmpty(fields, "extraScopes", kit.List(p.ExtraScopes))
	if len(p.ExtraAuthorizeParameters) > 0 {
		fields["extraAuthorizeParameters"] = p.ExtraAuthorizeParameters
	}
	known, err := c.answers(idp)
	if err != nil {
		c.errs = append(c.errs, err)
		return converted{fields: fields}
	}
	urls := map[string]any{"authorize": known.URLs.Authorize, "token": known.URLs.Token}
	kit.SetUnlessEmpty(urls, "userInfo", known.URLs.UserInfo)
	claims := map[string]any{}
	for key, list := range map[string][]string{
		"id": known.Claims.ID, "preferredUsername": known.Claims.PreferredUsername, "name": known.Claims.Name, "email": known.Claims.Email, "groups": known.Claims.Groups,
	} {
		kit.SetUnlessEmpty(claims, key, kit.List(list))
	}
	fields["urls"], fields["claims"] = urls, claims
	return converted{"OpenIDIdentityProvider", known.Challenge != nil && *known.Challenge, true, fields}
}

// answers are the URLs of a provider, and how its claims make users.
func (c *converter) answers(idp *configv1.IdentityProvider) (override, error) {
	var o override
	annotation := hyperv1.IDPOverridesAnnotationPrefix + idp.Name
	text, overridden := c.ctx.HCP.Annotations[annotation]
	if !overridden {
		// Nothing in the control plane asks the issuer yet: it is reached through the tunnel, and components are planned without a network.
		return o, fmt.Errorf("the URLs of issuer %q are not known: give them by annotation %s of the HostedCluster, as JSON {\"urls\":{\"authorize\":…,\"token\":…,\"userInfo\":…},\"claims\":{…},\"challenge\":false}",
			idp.OpenID.Issuer, annotation)
	}
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return o, fmt.Errorf("annotation %s is not the JSON that it must be: %w", annotation, err)
	}
	if o.URLs.Authorize == "" || o.URLs.Token == "" {
		return o, errors.New("annotation " + annotation + " lacks urls.authorize or urls.token")
	}
	if len(o.Claims.ID) == 0 {
		o.Claims.ID = []string{"sub"}
	}
	return o, nil
}
