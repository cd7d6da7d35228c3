package release

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
)

// keychain finds credentials in the content of a dockerconfigjson Secret. Entries may name a registry ("quay.io"), a part of one
// ("quay.io/org"), or a pattern ("*.example.com"); the longest that fits wins, as for the kubelet.
type keychain struct{ auths map[string]authn.AuthConfig }

// ValidatePullSecret tells whether the content of a .dockerconfigjson key can be used. The error wraps ErrBadPullSecret and holds no data
// of the secret.
func ValidatePullSecret(pullSecret []byte) error {
	_, err := newKeychain(pullSecret)
	return err
}

// maxPullSecret is more than a Secret can hold.
const maxPullSecret = 1 << 20

func newKeychain(pullSecret []byte) (*keychain, error) {
	k := &keychain{auths: map[string]authn.AuthConfig{}}
	if len(pullSecret) == 0 {
		return k, nil
	}
	if len(pullSecret) > maxPullSecret {
		return nil, fmt.Errorf("%w: it is larger than 1 MiB", ErrBadPullSecret)
	}
	config := struct {
		Auths map[string]struct {
			Auth          string `json:"auth"`
			Username      string `json:"username"`
			Password      string `json:"password"`
			IdentityToken string `json:"identitytoken"`
			RegistryToken string `json:"registrytoken"`
		} `json:"auths"`
	}{}
	if err := json.Unmarshal(pullSecret, &config); err != nil || config.Auths == nil {
		// The JSON error quotes the input: leave it out.
		return nil, fmt.Errorf("%w: it is not JSON with an auths object", ErrBadPullSecret)
	}
	for key, entry := range config.Auths {
		auth := authn.AuthConfig{Username: entry.Username, Password: entry.Password, IdentityToken: entry.IdentityToken, RegistryToken: entry.RegistryToken}
		if entry.Auth != "" {
			user, password, err := decodeAuth(entry.Auth)
			if err != nil {
				return nil, fmt.Errorf("%w: auth of one of its registries is not base64 of user:password", ErrBadPullSecret)
			}
			auth.Username, auth.Password = user, password
		}
		k.auths[normalizeKey(key)] = auth
	}
	return k, nil
}

func decodeAuth(s string) (user, password string, err error) {
	decoded, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return "", "", err
	}
	user, password, ok := strings.Cut(strings.TrimRight(string(decoded), "\x00"), ":")
	if !ok {
		return "", "", fmt.Errorf("no colon")
	}
	return user, password, nil
}

// normalizeKey strips what old clients put around a registry's name: a scheme and the API version.
func normalizeKey(key string) string {
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

// Resolve implements authn.Keychain.
func (k *keychain) Resolve(target authn.Resource) (authn.Authenticator, error) {
	best, found := "", false
	for key := range k.auths {
		if matchesKey(key, target.String()) && (!found || len(key) > len(best) || (len(key) == len(best) && key < best)) {
			best, found = key, true
		}
	}
	if !found || k.auths[best] == (authn.AuthConfig{}) {
		return authn.Anonymous, nil
	}
	return authn.FromConfig(k.auths[best]), nil
}

// matchesKey tells whether repository ("host:port/path") lies under key.
func matchesKey(key, repository string) bool {
	keyHost, keyPath, _ := strings.Cut(key, "/")
	host, repoPath, _ := strings.Cut(repository, "/")
	if ok, err := path.Match(keyHost, host); err != nil || !ok || strings.Count(keyHost, ".") != strings.Count(host, ".") {
		return false
	}
	return keyPath == "" || repoPath == keyPath || strings.HasPrefix(repoPath, keyPath+"/")
}

// fingerprint stands for a pull secret in cache keys, so that what one secret may read is not given to another.
func fingerprint(pullSecret []byte) string {
	sum := sha256.Sum256(pullSecret)
	return hex.EncodeToString(sum[:])
}
