// Package credentials finds out of pull secrets what proves to a registry who asks.
//
// Its rules are those of the kubelet, so that what a pod may pull an operator may, too, with one difference: "quay.io/org" is not for
// "quay.io/organization".
package credentials

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	corev1 "k8s.io/api/core/v1"
)

// ErrMalformed: the content of a pull secret can't be used. All functions of this package that read one wrap it.
var ErrMalformed = errors.New("malformed pull secret")

// Remedy says what a pull secret should be.
const Remedy = `key .dockerconfigjson must hold JSON like {"auths":{"registry.example.com":{"auth":"…"}}}`

// maxSize is what a Secret can hold.
const maxSize = 1 << 20

// Keyring is what pull secrets hold. Its keys name a registry ("quay.io"), a part of one ("quay.io/org"), or a pattern ("*.example.com"), in which a star
// does not stand for a dot. The zero value is anonymous. It implements authn.Keychain.
type Keyring struct{ entries []entry } // the longest key first

type entry struct {
	key  string
	auth authn.AuthConfig
}

// registryAuth is what a pull secret says about one key.
type registryAuth struct {
	Auth          string `json:"auth"`
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// Parse reads the content of a .dockerconfigjson key; of no bytes it makes the anonymous Keyring. The error holds no data of the secret.
func Parse(dockerConfigJSON []byte) (Keyring, error) {
	if len(dockerConfigJSON) == 0 {
		return Keyring{}, nil
	}
	config := struct {
		Auths map[string]registryAuth `json:"auths"`
	}{}
	if err := decode(dockerConfigJSON, &config); err != nil {
		return Keyring{}, err
	}
	if config.Auths == nil {
		return Keyring{}, errNoAuths
	}
	return keyring(config.Auths)
}

// Validate tells whether Parse could read it.
func Validate(dockerConfigJSON []byte) error {
	_, err := Parse(dockerConfigJSON)
	return err
}

// Add takes in a pull secret of either type; other secrets are ignored. After an error, which names the Secret and the remedy and holds no data of it,
// the Keyring is as before.
func (k *Keyring) Add(secret *corev1.Secret) error {
	var more Keyring
	var err error
	switch secret.Type {
	case corev1.SecretTypeDockerConfigJson:
		more, err = Parse(secret.Data[corev1.DockerConfigJsonKey])
	case corev1.SecretTypeDockercfg:
		auths := map[string]registryAuth{}
		if err = decode(secret.Data[corev1.DockerConfigKey], &auths); err == nil {
			more, err = keyring(auths)
		}
	}
	if err != nil {
		return fmt.Errorf("Secret %s/%s: %w: %s", secret.Namespace, secret.Name, err, Remedy)
	}
	k.entries = append(k.entries, more.entries...)
	slices.SortStableFunc(k.entries, byKey)
	return nil
}

var errNoAuths = fmt.Errorf("%w: it is not JSON with an auths object", ErrMalformed)

// decode leaves out the JSON error, which quotes the input.
func decode(data []byte, into any) error {
	if len(data) > maxSize {
		return fmt.Errorf("%w: it is larger than 1 MiB", ErrMalformed)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return errNoAuths
	}
	return nil
}

func keyring(auths map[string]registryAuth) (Keyring, error) {
	var k Keyring
	for _, key := range slices.Sorted(maps.Keys(auths)) {
		a := auths[key]
		auth := authn.AuthConfig{Username: a.Username, Password: a.Password, IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken}
		if a.Auth != "" {
			var ok bool
			if auth.Username, auth.Password, ok = userAndPassword(a.Auth); !ok {
				return Keyring{}, fmt.Errorf("%w: auth of one of its registries is not base64 of user:password", ErrMalformed)
			}
		}
		k.entries = append(k.entries, entry{key: normal(key), auth: auth})
	}
	slices.SortStableFunc(k.entries, byKey)
	return k, nil
}

func byKey(a, b entry) int {
	return cmp.Or(cmp.Compare(len(b.key), len(a.key)), strings.Compare(a.key, b.key))
}

func userAndPassword(auth string) (user, password string, ok bool) {
	decoded, err := base64.StdEncoding.DecodeString(auth)
	if err != nil {
		return "", "", false
	}
	return strings.Cut(strings.TrimRight(string(decoded), "\x00"), ":")
}

// normal strips what clients put around the name of a registry: a scheme and the version of the API.
func normal(key string) string {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	key = strings.TrimSuffix(key, "/")
	for _, suffix := range []string{"/v1", "/v2"} {
		key = strings.TrimSuffix(key, suffix)
	}
	if key == "docker.io" {
		return "index.docker.io" // what the client library calls it
	}
	return key
}

// For lists the credentials to try for a repository ("host:port/path"), the most specific first; anonymous is the last resort.
func (k Keyring) For(repository string) []authn.Authenticator {
	var out []authn.Authenticator
	for _, e := range k.entries {
		if e.matches(repository) {
			out = append(out, e.authenticator())
		}
	}
	return append(out, authn.Anonymous)
}

// Resolve implements authn.Keychain with the first of For.
func (k Keyring) Resolve(target authn.Resource) (authn.Authenticator, error) {
	return k.For(target.String())[0], nil
}

func (e entry) authenticator() authn.Authenticator {
	if e.auth == (authn.AuthConfig{}) {
		return authn.Anonymous
	}
	return authn.FromConfig(e.auth)
}

func (e entry) matches(repository string) bool {
	keyHost, keyPath, _ := strings.Cut(e.key, "/")
	host, repoPath, _ := strings.Cut(repository, "/")
	if ok, err := path.Match(keyHost, host); err != nil || !ok || strings.Count(keyHost, ".") != strings.Count(host, ".") {
		return false
	}
	return keyPath == "" || repoPath == keyPath || strings.HasPrefix(repoPath, keyPath+"/")
}
