package images

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	corev1 "k8s.io/api/core/v1"
)

// Credentials are what pull secrets hold. The zero value is anonymous.
type Credentials struct{ entries []credential }

type credential struct {
	key  string
	auth authn.AuthConfig
}

type dockerEntry struct {
	Auth          string `json:"auth"`
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// Add reads a pull secret of either type; other secrets are ignored. The error holds no data of the secret.
func (c *Credentials) Add(secret *corev1.Secret) error {
	entries := map[string]dockerEntry{}
	var err error
	switch secret.Type {
	case corev1.SecretTypeDockerConfigJson:
		config := struct {
			Auths map[string]dockerEntry `json:"auths"`
		}{}
		err = json.Unmarshal(secret.Data[corev1.DockerConfigJsonKey], &config)
		entries = config.Auths
	case corev1.SecretTypeDockercfg:
		err = json.Unmarshal(secret.Data[corev1.DockerConfigKey], &entries)
	}
	if err != nil {
		return fmt.Errorf("pull secret %s/%s is not JSON of registries", secret.Namespace, secret.Name) // the JSON error quotes the input
	}
	for key, entry := range entries {
		auth := authn.AuthConfig{Username: entry.Username, Password: entry.Password, IdentityToken: entry.IdentityToken, RegistryToken: entry.RegistryToken}
		if decoded, err := base64.StdEncoding.DecodeString(entry.Auth); err == nil && entry.Auth != "" {
			if user, password, ok := strings.Cut(strings.TrimRight(string(decoded), "\x00"), ":"); ok {
				auth.Username, auth.Password = user, password
			}
		}
		c.entries = append(c.entries, credential{key: registryKey(key), auth: auth})
	}
	slices.SortStableFunc(c.entries, func(a, b credential) int {
		return cmp.Or(cmp.Compare(len(b.key), len(a.key)), strings.Compare(a.key, b.key))
	})
	return nil
}

// registryKey strips what clients put around the name of a registry.
func registryKey(key string) string {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	key = strings.TrimSuffix(key, "/")
	for _, suffix := range []string{"/v1", "/v2"} {
		key = strings.TrimSuffix(key, suffix)
	}
	if key == "docker.io" {
		return "index.docker.io"
	}
	return key
}

// For lists the credentials to try for a repository ("host:port/path"), the most specific first; anonymous is the last resort.
func (c Credentials) For(repository string) []authn.Authenticator {
	var out []authn.Authenticator
	for _, e := range c.entries {
		if e.matches(repository) {
			out = append(out, authn.FromConfig(e.auth))
		}
	}
	return append(out, authn.Anonymous)
}

func (e credential) matches(repository string) bool {
	keyHost, keyPath, _ := strings.Cut(e.key, "/")
	host, repoPath, _ := strings.Cut(repository, "/")
	if ok, err := path.Match(keyHost, host); err != nil || !ok || strings.Count(keyHost, ".") != strings.Count(host, ".") {
		return false
	}
	return keyPath == "" || repoPath == keyPath || strings.HasPrefix(repoPath, keyPath+"/")
}
