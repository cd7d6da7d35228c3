package encryption

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
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

// Form says who holds a key while API servers run.
type Form string

const (
	// InConfig: kube-apiserver has the key in its configuration, and encrypts every object with it by AES-CBC.
	InConfig Form = ""
	// InPlugin: a plugin beside kube-apiserver has the key. The server asks it, by the protocol of KMS v2, to encrypt the seed of the keys that
	// it encrypts objects with by AES-GCM.
	InPlugin Form = PluginLocal
	// InCloud: a service of a cloud has the key, and a plugin of that cloud asks it, by the same protocol.
	InCloud Form = "cloud"
)

// FormOf is the form that the keys of a control plane are to have.
func FormOf(hcp *hyperv1.HostedControlPlane) Form {
	return Form(hcp.Annotations[PluginAnnotation])
}

// Key is an AES key and the name under which etcd's values remember it. The same bytes in another form are another key: what is encrypted with one
// can't be read with the other.
type Key struct {
	Name string
	Data []byte // none of a cloud's
	Form Form
	// Ref names the key of a cloud; nil: the configuration has its name, and who knows what that stands for is Resolve.
	Ref *Ref
}

// unencrypted is the fingerprint of Plain.
const unencrypted = "identity"

// Plain stands for no encryption: what is written with it is stored as it is. Every server reads such data.
var Plain = Key{Name: unencrypted}

func (k Key) plain() bool { return k.Form == InConfig && len(k.Data) == 0 }

// NewKey names a key after its bytes, so that it keeps its name when it moves from active to backup, or to another Secret. The
// name tells keys apart without telling what they are.
func NewKey(data []byte) Key { return Key{Name: "key-" + Fingerprint(data)[:16], Data: data} }

// In is the key of the same bytes in a form.
func (k Key) In(form Form) Key {
	switch {
	case k.plain() || k.Form == form || k.Form == InCloud:
		return k
	case form == InPlugin:
		k.Form = form
		k.Name = pluginPrefix + k.Hash()[:16]
		return k
	}
	return NewKey(k.Data)
}

// Matching is the key of the same bytes in the form that has a fingerprint.
func (k Key) Matching(hash string) (Key, bool) {
	for _, form := range []Form{InConfig, InPlugin} {
		if in := k.In(form); in.Hash() == hash {
			return in, true
		}
	}
	return Key{}, false
}

// Hash is the fingerprint of the key, as status.secretEncryption has it.
func (k Key) Hash() string {
	switch {
	case k.plain():
		return unencrypted
	case k.Form == InCloud:
		return k.Name // it is made of what identifies the key
	case k.Form == InPlugin:
		return Fingerprint(append([]byte("kms v2\n"), k.Data...))
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
// before there was a key as they are. Keys of plugins are not in it but in Files.
func Config(keys []Key) ([]byte, error) { return Layout{Resources: []string{"secrets"}}.Config(keys) }

// Layout is what configurations differ by besides keys.
type Layout struct {
	// Resources that are encrypted.
	Resources []string
	// Socket is where the plugin of a cloud's key listens, by the place of the key among those of clouds; nil: there are none. Timeout bounds one request to it.
	Socket  func(place int) string
	Timeout time.Duration
}

// Config encrypts resources with the first key, and reads them with all of them, as the function of that name does for Secrets.
func (l Layout) Config(keys []Key) ([]byte, error) {
	clouds := 0
	var providers []apiserverv1.ProviderConfiguration
	var aes *apiserverv1.AESConfiguration // of the keys in a row
	for _, key := range keys {
		switch {
		case key.plain():
			continue
		case key.Form == InPlugin:
			aes = nil
			providers = append(providers, apiserverv1.ProviderConfiguration{KMS: &apiserverv1.KMSConfiguration{
				APIVersion: "v2", Name: key.Name, Endpoint: "unix://" + Socket(PluginSocketDir, key.Name), Timeout: &metav1.Duration{Duration: pluginTimeout},
			}})
			continue
		case key.Form == InCloud:
			if l.Socket == nil {
				return nil, fmt.Errorf("there is no plugin for key %s", key.Name)
			}
			aes = nil
			providers = append(providers, apiserverv1.ProviderConfiguration{KMS: &apiserverv1.KMSConfiguration{
				APIVersion: "v2", Name: key.Name, Endpoint: "unix://" + l.Socket(clouds), Timeout: &metav1.Duration{Duration: l.Timeout},
			}})
			clouds++
			continue
		case aes == nil:
			aes = &apiserverv1.AESConfiguration{}
			providers = append(providers, apiserverv1.ProviderConfiguration{AESCBC: aes})
		}
		aes.Keys = append(aes.Keys, apiserverv1.Key{Name: key.Name, Secret: base64.StdEncoding.EncodeToString(key.Data)})
	}
	at := len(providers)
	if keys[0].plain() {
		at = 0
	}
	providers = slices.Insert(providers, at, apiserverv1.ProviderConfiguration{Identity: &apiserverv1.IdentityConfiguration{}})
	raw, err := yaml.Marshal(&apiserverv1.EncryptionConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "EncryptionConfiguration"},
		Resources: []apiserverv1.ResourceConfiguration{{
			Resources: l.Resources,
			Providers: providers,
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the encryption configuration: %w", err)
	}
	return raw, nil
}

// ParseKeys are the keys of ConfigSecret, the writing one first. Plain is among them only when it writes. Of
// keys of clouds it has the names.
func ParseKeys(data map[string][]byte) ([]Key, error) {
	var config apiserverv1.EncryptionConfiguration
	if err := yaml.Unmarshal(data[ConfigKey], &config); err != nil {
		// The parser's words may quote a key.
		return nil, fmt.Errorf("parsing %s of Secret %s: it is no encryption configuration", ConfigKey, ConfigSecret)
	}
	var keys []Key
	for _, resource := range config.Resources {
		for _, provider := range resource.Providers {
			if provider.Identity != nil && len(keys) == 0 {
				keys = append(keys, Plain)
			}
			if provider.KMS != nil && IsOurs(provider.KMS.Name) {
				file := data[KeyFile(provider.KMS.Name)]
				if len(file) != KeySize {
					return nil, fmt.Errorf("reading %s of Secret %s: it has %d bytes, and a key must have %d", KeyFile(provider.KMS.Name), ConfigSecret, len(file), KeySize)
				}
				keys = append(keys, Key{Name: provider.KMS.Name, Data: file, Form: InPlugin})
			}
			if provider.KMS != nil && !IsOurs(provider.KMS.Name) {
				keys = append(keys, Key{Name: provider.KMS.Name, Form: InCloud})
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

// pluginNames are the names of what plugins hold, in their order; none of what is no configuration.
func pluginNames(raw []byte) (found []string) {
	var config apiserverv1.EncryptionConfiguration
	if err := yaml.Unmarshal(raw, &config); err != nil {
		return nil
	}
	for _, resource := range config.Resources {
		for _, provider := range resource.Providers {
			if provider.KMS != nil {
				found = append(found, provider.KMS.Name)
			}
		}
	}
	return found
}
