package signature

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"sigs.k8s.io/yaml"
)

// Bounds of a policy.
const (
	maxPolicy = 1 << 20
	maxRules  = 200
	maxKeys   = 20 // of a rule
)

// Policy says which images need signatures. The zero value needs none.
type Policy struct{ rules []rule }

type rule struct {
	scope string // "registry.example.com/team", "registry.example.com", or "" for all
	keys  []*ecdsa.PublicKey
	none  bool // nothing is required
}

// file is how a policy is written.
type file struct {
	Rules []struct {
		// Scope is a registry, or a registry and the beginning of a repository's path, in whole parts; "*" is every image.
		Scope string `json:"scope"`
		// Keys are public keys in PEM, as cosign.pub; one signature by any of them is enough.
		Keys []string `json:"keys,omitempty"`
		// Unsigned lets images of the scope be without a signature, as an exception from a wider scope.
		Unsigned bool `json:"unsigned,omitempty"`
	} `json:"rules"`
}

// ParsePolicy reads a policy. It refuses what it doesn't understand wholly: a policy that is half heeded protects nobody.
func ParsePolicy(raw []byte) (*Policy, error) {
	if len(raw) > maxPolicy {
		return nil, fmt.Errorf("the policy has %d bytes, at most %d are read", len(raw), maxPolicy)
	}
	var f file
	if err := yaml.UnmarshalStrict(raw, &f); err != nil {
		return nil, fmt.Errorf("parsing the policy: %w", err)
	}
	if len(f.Rules) == 0 || len(f.Rules) > maxRules {
		return nil, fmt.Errorf("the policy has %d rules: must be 1 to %d", len(f.Rules), maxRules)
	}
	p := &Policy{}
	var errs []error
	seen := map[string]bool{}
	for i, r := range f.Rules {
		at := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("rules[%d] (scope %q): "+format, append([]any{i, r.Scope}, args...)...))
		}
		scope, ok := strings.TrimSuffix(r.Scope, "/"), r.Scope != "" && !strings.ContainsAny(r.Scope, " \t\n@") && !strings.Contains(r.Scope, "://")
		if scope = canonical(scope); scope == "*" {
			scope = ""
		}
		switch {
		case !ok || strings.Contains(scope, "*"):
			at("scope must be a registry with the beginning of a path, such as registry.example.com/team, or *")
		case seen[scope]:
			at("there is another rule of this scope; put all keys into one")
		case r.Unsigned == (len(r.Keys) > 0):
			at("give either keys or unsigned: true")
		case len(r.Keys) > maxKeys:
			at("at most %d keys", maxKeys)
		}
		seen[scope] = true
		made := rule{scope: scope, none: r.Unsigned}
		for n, text := range r.Keys {
			key, err := ParsePublicKey([]byte(text))
			if err != nil {
				at("keys[%d]: %w", n, err)
			}
			made.keys = append(made.keys, key)
		}
		p.rules = append(p.rules, made)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return p, nil
}

// ReadPolicy reads a file; no path gives no policy, which needs no signatures.
func ReadPolicy(path string) (*Policy, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxPolicy+1))
	if err != nil {
		return nil, err
	}
	p, err := ParsePolicy(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// For returns the keys of which one has to have signed an image of a repository ("registry.example.com/team/app"); none when no signature is needed. The
// rule with the longest scope counts.
func (p *Policy) For(repository string) (keys []*ecdsa.PublicKey, required bool) {
	if p == nil {
		return nil, false
	}
	repository = canonical(repository)
	best := -1
	for i, r := range p.rules {
		fits := r.scope == "" || repository == r.scope || strings.HasPrefix(repository, r.scope+"/")
		if fits && (best < 0 || len(r.scope) > len(p.rules[best].scope)) {
			best = i
		}
	}
	if best < 0 || p.rules[best].none {
		return nil, false
	}
	return p.rules[best].keys, true
}

// canonical gives all spellings of a registry's name one form: otherwise somebody who writes it in capitals, or with the usual port, gets past its rule.
func canonical(repository string) string {
	registry, path, cut := strings.Cut(repository, "/")
	registry = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(registry), ":443"), ".")
	if slices.Contains([]string{"docker.io", "registry-1.docker.io"}, registry) {
		registry = name.DefaultRegistry
	}
	if !cut {
		return registry
	}
	return registry + "/" + path
}

// ParsePublicKey reads a public key as cosign writes it: PEM, ECDSA on P-256.
func ParsePublicKey(raw []byte) (*ecdsa.PublicKey, error) {
	block, rest := pem.Decode(raw)
	if block == nil || block.Type != "PUBLIC KEY" || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, errors.New("must be one PEM block PUBLIC KEY, as the file cosign.pub")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parsing the public key: %w", err)
	}
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("must be a key of ECDSA on P-256, as cosign makes them")
	}
	return key, nil
}

// ParsePrivateKey reads a private key that isn't encrypted: PEM, PKCS 8 or SEC 1, ECDSA on P-256.
func ParsePrivateKey(raw []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, errors.New("the key is no PEM")
	}
	if strings.Contains(block.Type, "ENCRYPTED") {
		return nil, errors.New("the key is encrypted: sign with cosign, or use a key that isn't, such as of `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`")
	}
	var parsed crypto.PrivateKey
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		parsed, err = x509.ParseECPrivateKey(block.Bytes)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if err != nil || !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("must be a private key of ECDSA on P-256") // nothing of the key in an error
	}
	return key, nil
}

// PublicPEM is the public half of a key, as it is put into a policy.
func PublicPEM(key *ecdsa.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding the public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}
