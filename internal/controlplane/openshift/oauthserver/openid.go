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

// subject is the claim that is a user's ID.
const subject = "sub"

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

// overrideOf is what the annotation says of a provider; nil: there is none.
func overrideOf(hcp *hyperv1.HostedControlPlane, provider string) (*override, error) {
	annotation := hyperv1.IDPOverridesAnnotationPrefix + provider
	text, overridden := hcp.Annotations[annotation]
	if !overridden {
		return nil, nil
	}
	o := &override{}
	if err := json.Unmarshal([]byte(text), o); err != nil {
		return nil, fmt.Errorf("annotation %s is not the JSON that it must be: %w", annotation, err)
	}
	if o.URLs.Authorize == "" || o.URLs.Token == "" {
		return nil, errors.New("annotation " + annotation + " lacks urls.authorize or urls.token")
	}
	if len(o.Claims.ID) == 0 {
		o.Claims.ID = []string{subject}
	}
	return o, nil
}

// answers are the URLs of a provider, and how its claims make users: as the annotation says, else as its issuer answered.
func (c *converter) answers(idp *configv1.IdentityProvider) (override, error) {
	given, err := overrideOf(c.ctx.HCP, idp.Name)
	if err != nil {
		return override{}, err
	}
	answer, asked := c.ctx.OpenID[idp.Name]
	if given != nil {
		if given.Challenge == nil && asked {
			c.warn(answer.Problem)
			given.Challenge = &answer.Challenge
		}
		return *given, nil
	}
	if asked && answer.Authorize != "" {
		c.warn(answer.Problem)
		return discovered(idp.OpenID, answer.Authorize, answer.Token, answer.UserInfo, answer.Challenge), nil
	}
	problem := answer.Problem
	switch {
	case !asked:
		problem = fmt.Errorf("the URLs of issuer %q are not known", idp.OpenID.Issuer)
	case problem == nil:
		return override{}, fmt.Errorf("issuer %q is being asked for its URLs", idp.OpenID.Issuer)
	}
	return override{}, fmt.Errorf("%w; or give its URLs by annotation %s of the HostedCluster, as JSON {\"urls\":{\"authorize\":…,\"token\":…,\"userInfo\":…},\"claims\":{…},\"challenge\":false}",
		problem, hyperv1.IDPOverridesAnnotationPrefix+idp.Name)
}

// discovered is what an issuer answered, with the claims that the user wants.
func discovered(p *configv1.OpenIDIdentityProvider, authorize, token, userInfo string, challenge bool) override {
	o := override{Challenge: &challenge}
	o.URLs.Authorize, o.URLs.Token, o.URLs.UserInfo = authorize, token, userInfo
	o.Claims.ID = []string{subject}
	o.Claims.PreferredUsername, o.Claims.Name, o.Claims.Email = p.Claims.PreferredUsername, p.Claims.Name, p.Claims.Email
	for _, group := range p.Claims.Groups {
		o.Claims.Groups = append(o.Claims.Groups, string(group))
	}
	return o
}
