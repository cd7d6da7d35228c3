package oauthserver

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/oauthserver/issuers"
)

const (
	// clientSecretKey is the key of an OAuth client's password.
	clientSecretKey = "clientSecret"
	// memoryAnnotation is on the ConfigMap of the server: what issuers answered, as JSON by provider, so that another process of the operator neither
	// leaves a provider out until its issuer has answered again nor tries another login.
	memoryAnnotation = "hypershift.openshift.io/openid-answers"
	// maxQuestions bounds the issuers that are asked.
	maxQuestions = 32
)

// memory is an answer as the annotation has it.
type memory struct {
	Issuer    string `json:"issuer,omitempty"`
	Authorize string `json:"authorize,omitempty"`
	Token     string `json:"token"`
	UserInfo  string `json:"userInfo,omitempty"`
	Challenge bool   `json:"challenge"`
	Secret    string `json:"secret,omitempty"`
}

// Questions are what has to be asked of OpenID providers. One that is not complete is left out; ProvidersProblem says why it is.
func Questions(ctx component.WorkloadContext) ([]issuers.Question, error) {
	var out []issuers.Question
	var known map[string]memory
	for i := range oauth(ctx.HCP).IdentityProviders {
		idp := &oauth(ctx.HCP).IdentityProviders[i]
		if idp.Type != configv1.IdentityProviderTypeOpenID || idp.OpenID == nil || idp.Name == "" || len(out) == maxQuestions {
			continue
		}
		q := issuers.Question{Name: idp.Name, Issuer: idp.OpenID.Issuer, ClientID: idp.OpenID.ClientID}
		given, err := overrideOf(ctx.HCP, idp.Name)
		if err != nil || given != nil && given.Challenge != nil {
			continue // there is nothing to ask, or what there is can't be read
		}
		if given != nil {
			q.Issuer, q.Token = "", given.URLs.Token
		}
		complete, err := credentials(ctx, idp.OpenID, &q)
		if err != nil {
			return nil, err
		}
		if !complete {
			continue
		}
		if known == nil {
			if known, err = remembered(ctx); err != nil {
				return nil, err
			}
		}
		m := known[idp.Name]
		q.Before = component.OpenIDAnswer{Issuer: m.Issuer, Authorize: m.Authorize, Token: m.Token, UserInfo: m.UserInfo, Challenge: m.Challenge, Secret: m.Secret}
		out = append(out, q)
	}
	return out, nil
}

// credentials reads what a question is asked with, and says whether all of it is there.
func credentials(ctx component.WorkloadContext, p *configv1.OpenIDIdentityProvider, q *issuers.Question) (bool, error) {
	secret, bundle := &corev1.Secret{}, &corev1.ConfigMap{}
	for _, part := range []struct {
		kind, name string
		into       client.Object
	}{{"Secret", p.ClientSecret.Name, secret}, {"ConfigMap", p.CA.Name, bundle}} {
		if part.name == "" {
			continue
		}
		err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: part.name}, part.into)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("reading %s %s: %w", part.kind, part.name, err)
		}
	}
	q.CA, q.ClientSecret, q.Secret = issuers.CA(bundle), string(secret.Data[clientSecretKey]), secret.ResourceVersion
	return p.ClientID != "" && p.ClientSecret.Name != "", nil
}

// remembered is what the ConfigMap of the server remembers. One that can't be read is no memory.
func remembered(ctx component.WorkloadContext) (map[string]memory, error) {
	cm, out := &corev1.ConfigMap{}, map[string]memory{}
	err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: Name}, cm)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", Name, err)
	}
	if json.Unmarshal([]byte(cm.Annotations[memoryAnnotation]), &out) != nil {
		return map[string]memory{}, nil //nolint:nilerr // because then all is asked anew
	}
	return out, nil
}

// remember writes into the ConfigMap of the server what the OpenID providers in it were made of.
func remember(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	known := map[string]memory{}
	for name, a := range ctx.OpenID {
		if a.Authorize != "" || a.Secret != "" {
			known[name] = memory{a.Issuer, a.Authorize, a.Token, a.UserInfo, a.Challenge, a.Secret}
		}
	}
	if len(known) == 0 {
		return nil
	}
	text, err := json.Marshal(known)
	if err != nil {
		return fmt.Errorf("remembering what issuers answered: %w", err)
	}
	if cm.Annotations == nil {
		cm.Annotations = map[string]string{}
	}
	cm.Annotations[memoryAnnotation] = string(text)
	return nil
}
