// Package token makes the two Secrets with which machines of a NodePool boot: the token Secret, which the ignition server reads, and the
// user data, which machines get from their platform and which sends them to the ignition server with the token.
package token

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	ignition "github.com/coreos/ignition/v2/config/v3_2/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Keys of a token Secret.
const (
	TokenKey           = "token"
	OldTokenKey        = "old_token"
	ReleaseKey         = "release"
	ReleaseVersionKey  = "release-version"
	ConfigKey          = "config"
	PullSecretHashKey  = "pull-secret-hash"
	TrustBundleHashKey = "additional-trust-bundle-hash"
	ClusterConfigKey   = "hc-configuration-hash"
	CloudConfigKey     = "cloud-config-hash"
	OSStreamKey        = "os-stream"
	// NodeLabelsKey and NodeTaintsKey are what nodes register with, in JSON. They may change without a new Secret, because labels and taints of a
	// NodePool replace no machine.
	NodeLabelsKey = "node-labels"
	NodeTaintsKey = "node-taints"
	PayloadKey    = "payload"
	ReasonKey     = "reason"
	MessageKey    = "message"
)

// Keys of a user data Secret.
const (
	UserDataKey          = "value"
	disableTemplatingKey = "disableTemplating"
)

// ReachedValue of annotation ignition-reached tells that a machine has fetched its configuration.
const ReachedValue = "True"

// Prefixes of the names of the two Secrets.
const (
	tokenPrefix    = "token-"
	userDataPrefix = "user-data-"
	maxName        = 253
)

// Name is the name of a token Secret, and UserDataName that of the user data. Pools with longer names than fit are refused, because the
// two other programs that build these names do not shorten them.
func Name(pool, hash string) string { return tokenPrefix + pool + "-" + hash }

// UserDataName is the name of the Secret with user data.
func UserDataName(pool, hash string) string { return userDataPrefix + pool + "-" + hash }

// MaxPoolName is how long a NodePool's name may be for all names to fit.
const MaxPoolName = maxName - len(userDataPrefix) - 1 - 8

// HashOf is the inverse of Name and UserDataName.
func HashOf(pool, secret string) (string, bool) {
	for _, prefix := range []string{tokenPrefix, userDataPrefix} {
		if hash, ok := strings.CutPrefix(secret, prefix+pool+"-"); ok {
			return hash, true
		}
	}
	return "", false
}

// ContentHash identifies a content that machines depend on and that is not in the Secret itself. No content has no hash.
func ContentHash(content []byte) string {
	if len(content) == 0 {
		return ""
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])[:16]
}

// Content is what a token Secret says.
type Content struct {
	Namespace, Pool, Hash string
	// PoolKey is namespace/name of the NodePool.
	PoolKey     string
	UpgradeType hyperv1.UpgradeType
	Release     string
	Version     string
	// Config as nodeconfig.Encode makes it.
	Config                                                        []byte
	PullSecretHash, TrustBundleHash, ClusterConfigHash, CloudHash string
	OSStream                                                      string
	NodeLabels                                                    map[string]string
	Taints                                                        []corev1.Taint
	// Reached marks a Secret of a cluster that was restored from a backup: its machines have booted.
	Reached bool
}

// New makes a token Secret. It must not exist yet: the token is never chosen twice. token has at least 122 random bits.
func New(c Content, token string, now time.Time) *corev1.Secret {
	annotations := map[string]string{
		hyperv1.TokenSecretAnnotation:                    "true",
		hyperv1.NodePoolAnnotation:                       c.PoolKey,
		hyperv1.TokenSecretNodePoolUpgradeTypeAnnotation: string(c.UpgradeType),
		hyperv1.TokenSecretTokenGenerationTimeAnnotation: now.Format(time.RFC3339Nano),
	}
	if c.Reached {
		annotations[hyperv1.TokenSecretIgnitionReachedAnnotation] = ReachedValue
	}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: Name(c.Pool, c.Hash), Annotations: annotations},
		Type:       corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			TokenKey: []byte(token), ReleaseKey: []byte(c.Release), ReleaseVersionKey: []byte(c.Version), ConfigKey: c.Config,
			PullSecretHashKey: []byte(c.PullSecretHash), TrustBundleHashKey: []byte(c.TrustBundleHash), OSStreamKey: []byte(c.OSStream),
		},
	}
	for k, v := range Refreshed(c) {
		s.Data[k] = v
	}
	return s
}

// Refreshed are the keys that follow the world under the same name; the others stay as they were when the Secret was made.
func Refreshed(c Content) map[string][]byte {
	data := map[string][]byte{ClusterConfigKey: []byte(c.ClusterConfigHash), CloudConfigKey: []byte(c.CloudHash)}
	if len(c.NodeLabels) > 0 {
		data[NodeLabelsKey] = mustJSON(c.NodeLabels)
	}
	if len(c.Taints) > 0 {
		data[NodeTaintsKey] = mustJSON(c.Taints)
	}
	return data
}

// mustJSON encodes maps and lists of strings, which can't fail.
func mustJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// UserData is what a machine boots with.
type UserData struct {
	Namespace, Pool, Hash, PoolKey string
	// Endpoint of the ignition server, host or host:port, and the certificate that it is known by, in PEM.
	Endpoint string
	CA       []byte
	Token    string
	// HTTPProxy, HTTPSProxy and NoProxy are how the machine gets there; empty: directly.
	HTTPProxy, HTTPSProxy string
	NoProxy               []string
}

// Secret makes the Secret with the user data.
func (u UserData) Secret() (*corev1.Secret, error) {
	value, err := u.ignition()
	if err != nil {
		return nil, err
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: UserDataName(u.Pool, u.Hash), Annotations: map[string]string{hyperv1.NodePoolAnnotation: u.PoolKey}},
		Type:       corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			UserDataKey: value,
			// The value is itself base64, as the reader expects it.
			disableTemplatingKey: []byte(base64.StdEncoding.EncodeToString([]byte("true"))),
		},
	}, nil
}

func (u UserData) ignition() ([]byte, error) {
	config := ignition.Config{Ignition: ignition.Ignition{
		Version: ignition.MaxVersion.String(),
		Config: ignition.IgnitionConfig{Merge: []ignition.Resource{{
			Source: ptr.To("https://" + u.Endpoint + "/ignition"),
			HTTPHeaders: ignition.HTTPHeaders{
				{Name: "Authorization", Value: ptr.To("Bearer " + base64.StdEncoding.EncodeToString([]byte(u.Token)))},
				{Name: "NodePool", Value: ptr.To(u.PoolKey)},
				{Name: "TargetConfigVersionHash", Value: ptr.To(u.Hash)},
			},
		}}},
		Security: ignition.Security{TLS: ignition.TLS{CertificateAuthorities: []ignition.Resource{{
			Source: ptr.To("data:text/plain;base64," + base64.StdEncoding.EncodeToString(u.CA)),
		}}}},
	}}
	if u.HTTPProxy != "" {
		config.Ignition.Proxy.HTTPProxy = ptr.To(u.HTTPProxy)
	}
	if u.HTTPSProxy != "" {
		config.Ignition.Proxy.HTTPSProxy = ptr.To(u.HTTPSProxy)
	}
	for _, host := range u.NoProxy {
		config.Ignition.Proxy.NoProxy = append(config.Ignition.Proxy.NoProxy, ignition.NoProxyItem(host))
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encoding user data: %w", err)
	}
	return raw, nil
}
