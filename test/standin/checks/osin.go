package checks

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// provider is what an identity provider of any kind may have; which of it a kind must have is in providerKinds.
type provider struct {
	typeMeta `json:",inline"`

	CA            string  `json:"ca,omitempty"`
	CertFile      string  `json:"certFile,omitempty"`
	KeyFile       string  `json:"keyFile,omitempty"`
	File          string  `json:"file,omitempty"`
	ClientCA      string  `json:"clientCA,omitempty"`
	ClientSecret  *secret `json:"clientSecret,omitempty"`
	BindPassword  *secret `json:"bindPassword,omitempty"`
	ClientID      string  `json:"clientID,omitempty"`
	URL           string  `json:"url,omitempty"`
	BindDN        string  `json:"bindDN,omitempty"`
	Insecure      bool    `json:"insecure,omitempty"`
	Legacy        *bool   `json:"legacy,omitempty"`
	Hostname      string  `json:"hostname,omitempty"`
	HostedDomain  string  `json:"hostedDomain,omitempty"`
	DomainName    string  `json:"domainName,omitempty"`
	LoginURL      string  `json:"loginURL,omitempty"`
	ChallengeURL  string  `json:"challengeURL,omitempty"`
	UseKeystoneID bool    `json:"useKeystoneIdentity,omitempty"`

	Organizations            []string            `json:"organizations,omitempty"`
	Teams                    []string            `json:"teams,omitempty"`
	ExtraScopes              []string            `json:"extraScopes,omitempty"`
	ExtraAuthorizeParameters map[string]string   `json:"extraAuthorizeParameters,omitempty"`
	Attributes               map[string][]string `json:"attributes,omitempty"`
	Claims                   map[string][]string `json:"claims,omitempty"`
	URLs                     map[string]string   `json:"urls,omitempty"`
	ClientCommonNames        []string            `json:"clientCommonNames,omitempty"`
	Headers                  []string            `json:"headers,omitempty"`
	PreferredUsernameHeaders []string            `json:"preferredUsernameHeaders,omitempty"`
	NameHeaders              []string            `json:"nameHeaders,omitempty"`
	EmailHeaders             []string            `json:"emailHeaders,omitempty"`
}

type secret struct {
	Value   string `json:"value,omitempty"`
	Env     string `json:"env,omitempty"`
	File    string `json:"file,omitempty"`
	KeyFile string `json:"keyFile,omitempty"`
}

// providerKinds are the kinds of identity providers with the fields that each must have.
var providerKinds = map[string][]string{
	"BasicAuthPasswordIdentityProvider": {"url"}, "GitHubIdentityProvider": {"clientID", "clientSecret"}, "GitLabIdentityProvider": {"url", "clientID", "clientSecret"},
	"GoogleIdentityProvider": {"clientID", "clientSecret"}, "HTPasswdPasswordIdentityProvider": {"file"}, "KeystonePasswordIdentityProvider": {"url", "domainName"},
	"LDAPPasswordIdentityProvider": {"url", "attributes"}, "OpenIDIdentityProvider": {"clientID", "clientSecret", "urls", "claims"}, "RequestHeaderIdentityProvider": {"headers"},
}

// Osin reads the configuration of the OAuth server.
func Osin(raw []byte) (Config, error) {
	var c struct {
		typeMeta   `json:",inline"`
		KubeClient kubeClient `json:"kubeClientConfig"`
		Serving    Serving    `json:"servingInfo"`
		OAuth      struct {
			MasterCA        string `json:"masterCA"`
			MasterURL       string `json:"masterURL"`
			MasterPublicURL string `json:"masterPublicURL"`
			LoginURL        string `json:"loginURL"`
			GrantConfig     struct {
				Method               string `json:"method"`
				ServiceAccountMethod string `json:"serviceAccountMethod"`
			} `json:"grantConfig"`
			SessionConfig struct {
				SessionSecretsFile   string `json:"sessionSecretsFile"`
				SessionMaxAgeSeconds int    `json:"sessionMaxAgeSeconds"`
				SessionName          string `json:"sessionName"`
			} `json:"sessionConfig"`
			Templates struct {
				Login             string `json:"login"`
				ProviderSelection string `json:"providerSelection"`
				Error             string `json:"error"`
			} `json:"templates"`
			TokenConfig struct {
				AuthorizeTokenMaxAgeSeconds  int    `json:"authorizeTokenMaxAgeSeconds"`
				AccessTokenMaxAgeSeconds     int    `json:"accessTokenMaxAgeSeconds"`
				AccessTokenInactivityTimeout string `json:"accessTokenInactivityTimeout,omitempty"`
			} `json:"tokenConfig"`
			AlwaysShow        bool `json:"alwaysShowProviderSelection,omitempty"`
			IdentityProviders []struct {
				Name          string          `json:"name"`
				UseAsChallnge bool            `json:"challenge"`
				UseAsLogin    bool            `json:"login"`
				MappingMethod string          `json:"mappingMethod"`
				Provider      json.RawMessage `json:"provider"`
			} `json:"identityProviders,omitempty"`
		} `json:"oauthConfig"`
	}
	if err := decode(raw, "osin.config.openshift.io/v1", "OsinServerConfig", &c, &c.typeMeta); err != nil {
		return Config{}, err
	}
	if err := c.Serving.check(true); err != nil {
		return Config{}, err
	}
	o := c.OAuth
	for field, address := range map[string]string{"masterURL": o.MasterURL, "masterPublicURL": o.MasterPublicURL, "loginURL": o.LoginURL} {
		if u, err := url.Parse(address); err != nil || u.Scheme != "https" || u.Hostname() == "" {
			return Config{}, fmt.Errorf("oauthConfig.%s %q is no https address with a host", field, address)
		}
	}
	out := Config{
		Serving: c.Serving, Authorities: []string{o.MasterCA}, Kubeconfigs: []string{c.KubeClient.KubeConfig},
		Files: []string{o.SessionConfig.SessionSecretsFile, o.Templates.Login, o.Templates.ProviderSelection, o.Templates.Error},
	}
	if slices.Contains(append(out.Files, o.MasterCA, c.KubeClient.KubeConfig), "") {
		return Config{}, fmt.Errorf("oauthConfig: masterCA, sessionConfig.sessionSecretsFile, the three templates and kubeClientConfig.kubeConfig must all name files")
	}
	for i, p := range o.IdentityProviders {
		files, authorities, err := identityProvider(p.Name, p.MappingMethod, p.Provider)
		if err != nil {
			return Config{}, fmt.Errorf("oauthConfig.identityProviders[%d]: %w", i, err)
		}
		out.Files, out.Authorities = append(out.Files, files...), append(out.Authorities, authorities...)
	}
	for _, n := range c.Serving.NamedCertificates {
		out.Files = append(out.Files, n.CertFile, n.KeyFile)
	}
	return finish(out)
}

func identityProvider(name, mapping string, raw json.RawMessage) (files, authorities []string, err error) {
	if name == "" || !slices.Contains([]string{"claim", "lookup", "generate", "add"}, mapping) {
		return nil, nil, fmt.Errorf("name %q, mappingMethod %q: want a name, and claim, lookup, generate or add", name, mapping)
	}
	p := provider{}
	if err := yaml.UnmarshalStrict(raw, &p); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	required, ok := providerKinds[p.Kind]
	if !ok || p.APIVersion != "osin.config.openshift.io/v1" {
		return nil, nil, fmt.Errorf("%s: %s %s is no kind of identity provider", name, p.APIVersion, p.Kind)
	}
	var set map[string]any
	if err := json.Unmarshal(raw, &set); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, field := range required {
		if set[field] == nil || set[field] == "" {
			return nil, nil, fmt.Errorf("%s: %s must have %s", name, p.Kind, field)
		}
	}
	for _, s := range []*secret{p.ClientSecret, p.BindPassword} {
		if s == nil {
			continue
		}
		if s.Value != "" || s.File == "" {
			return nil, nil, fmt.Errorf("%s: a secret must be in a file, not in the configuration", name)
		}
		files = append(files, s.File)
	}
	files = notEmpty(append(files, p.File, p.CertFile, p.KeyFile))
	for _, f := range files {
		if !strings.HasPrefix(f, "/etc/oauth/idp/") {
			return nil, nil, fmt.Errorf("%s: file %s is not below /etc/oauth/idp, where providers' files are mounted", name, f)
		}
	}
	return files, notEmpty([]string{p.CA, p.ClientCA}), nil
}
