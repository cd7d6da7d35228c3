package encryption

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"
)

const (
	// ConfigSecret holds the configuration that kube-apiserver is given, under ConfigKey.
	ConfigSecret = "kas-secret-encryption-config"
	// ConfigKey is the key in ConfigSecret.
	ConfigKey = "config.yaml"
	// HashAnnotation on the pods of kube-apiserver is ConfigHash of their configuration.
	HashAnnotation = "hypershift.openshift.io/encryption-config-hash"
	// KeySize is that of AES-256, which the API documents for these keys.
	KeySize = 32
)

// Key is an AES key and the name under which etcd's values remember it.
type Key struct {
	Name string
	Data []byte
}

// unencrypted is the fingerprint of Plain.
const unencrypted = "identity"

// Plain stands for no encryption: what is written with it is stored as it is. Every server reads such data.
var Plain = Key{Name: unencrypted}

func (k Key) plain() bool { return len(k.Data) == 0 }

// NewKey names a key after its bytes, so that it keeps its name when it moves from active to backup, or to another Secret. The
// name tells keys apart without telling what they are.
func NewKey(data []byte) Key { return Key{Name: "key-" + Fingerprint(data)[:16], Data: data} }

// Hash is the fingerprint of the key, as status.secretEncryption has it.
func (k Key) Hash() string {
	if k.plain() {
		return unencrypted
	}
	return Fingerprint(k.Data)
}

// Fingerprint is the hex SHA-256 of the bytes of a key.
func Fingerprint(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// ConfigHash is what HashAnnotation says of a configuration.
func ConfigHash(raw []byte) string { return "sha256:" + Fingerprint(raw) }

// index finds the key of a fingerprint, -1 when it is not there.
func index(keys []Key, hash string) int {
	return slices.IndexFunc(keys, func(k Key) bool { return k.Hash() == hash })
}

// Find gives the key of a fingerprint.
func Find(keys []Key, hash string) (Key, bool) {
	if i := index(keys, hash); i >= 0 {
		return keys[i], true
	}
	return Key{}, false
}

// Config encrypts Secrets with the first key, which may be Plain, and reads them with all of them, and those that were stored
// before there was a key as they are.
func Config(keys []Key) ([]byte, error) {
	aes := &apiserverv1.AESConfiguration{}
	for _, key := range keys {
		if !key.plain() {
			aes.Keys = append(aes.Keys, apiserverv1.Key{Name: key.Name, Secret: base64.StdEncoding.EncodeToString(key.Data)})
		}
	}
	providers := []apiserverv1.ProviderConfiguration{{AESCBC: aes}, {Identity: &apiserverv1.IdentityConfiguration{}}}
	if keys[0].plain() {
		slices.Reverse(providers)
	}
	raw, err := yaml.Marshal(&apiserverv1.EncryptionConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "EncryptionConfiguration"},
		Resources: []apiserverv1.ResourceConfiguration{{
			Resources: []string{"secrets"},
			Providers: providers,
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the encryption configuration: %w", err)
	}
	return raw, nil
}

// ParseKeys are the AES keys of an encryption configuration, the writing one first. Plain is among them only when it writes.
func ParseKeys(raw []byte) ([]Key, error) {
	var config apiserverv1.EncryptionConfiguration
	if err := yaml.Unmarshal(raw, &config); err != nil {
		// The parser's words may quote a key.
		return nil, fmt.Errorf("parsing %s of Secret %s: it is no encryption configuration", ConfigKey, ConfigSecret)
	}
	var keys []Key
	for _, resource := range config.Resources {
		for _, provider := range resource.Providers {
			if provider.Identity != nil && len(keys) == 0 {
				keys = append(keys, Plain)
			}
			if provider.AESCBC == nil {
				continue
			}
			for _, key := range provider.AESCBC.Keys {
				data, err := base64.StdEncoding.DecodeString(key.Secret)
				if err != nil {
					return nil, fmt.Errorf("parsing %s of Secret %s: key %s is not base64", ConfigKey, ConfigSecret, key.Name)
				}
				keys = append(keys, Key{Name: key.Name, Data: data})
			}
		}
	}
	return keys, nil
}
