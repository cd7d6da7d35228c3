package documents

import (
	"bytes"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"strings"
)

// Names of the documents, behind the infrastructure's ID.
const (
	discoveryName = ".well-known/openid-configuration"
	keysName      = "openid/v1/jwks"
)

// maxKeys bounds how many keys of a Secret are published.
const maxKeys = 10

// Documents are what is published of a hosted cluster, by their keys in the bucket.
type Documents map[string][]byte

// Of are the documents of an issuer whose tokens are signed by the keys in pemKeys, PEM blocks with RSA keys in the form PKIX.
func Of(infraID, issuer string, pemKeys []byte) (Documents, error) {
	u, err := url.Parse(issuer)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("spec.issuerURL %q: must be a URL with https, a host and no query", issuer)
	case strings.HasSuffix(u.Hostname(), ".svc"): // the default, which nobody but the cluster itself can read
		return nil, fmt.Errorf("spec.issuerURL %q: AWS can't reach a Service: make the cluster anew with the issuer that `hypershift create iam aws` prints", issuer)
	}
	keys, err := keySet(pemKeys)
	if err != nil {
		return nil, err
	}
	discovery, err := encode(map[string]any{
		"issuer": issuer, "jwks_uri": strings.TrimRight(issuer, "/") + "/" + keysName, "response_types_supported": []string{"id_token"},
		"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"RS256"},
	})
	if err != nil {
		return nil, err
	}
	set, err := encode(map[string]any{"keys": keys})
	if err != nil {
		return nil, err
	}
	return Documents{infraID + "/" + discoveryName: discovery, infraID + "/" + keysName: set}, nil
}

// Names are the keys of the documents in the bucket.
func Names(infraID string) []string {
	return []string{infraID + "/" + discoveryName, infraID + "/" + keysName}
}

// Hash stands for the documents and where they are.
func (d Documents) Hash(bucket string) string {
	raw, err := json.Marshal(map[string]any{"bucket": bucket, "documents": d})
	if err != nil {
		panic(err) // texts can always be encoded
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

// key is a public key as RFC 7517 writes it.
type key struct {
	Use       string `json:"use"`
	Type      string `json:"kty"`
	ID        string `json:"kid"`
	Algorithm string `json:"alg"`
	Modulus   string `json:"n"`
	Exponent  string `json:"e"`
}

func keySet(raw []byte) (keys []key, err error) {
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		if len(keys) == maxKeys {
			return nil, fmt.Errorf("there are more than %d keys", maxKeys)
		}
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, errors.New("a PEM block holds no public key in the form PKIX")
		}
		public, ok := parsed.(*rsa.PublicKey)
		if !ok {
			return nil, errors.New("a key isn't RSA, as AWS wants it")
		}
		// kube-apiserver names its keys by the same rule, so that a token's kid leads here.
		sum := sha256.Sum256(block.Bytes)
		text := base64.RawURLEncoding.EncodeToString
		keys = append(keys, key{Use: "sig", Type: "RSA", ID: text(sum[:]), Algorithm: "RS256", Modulus: text(public.N.Bytes()), Exponent: text(big.NewInt(int64(public.E)).Bytes())})
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no PEM block with a public key")
	}
	return keys, nil
}

func encode(v any) ([]byte, error) {
	out := &bytes.Buffer{}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding a document: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
