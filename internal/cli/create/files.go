package create

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"

	"hcp.internal/platform/internal/cli/connect"
)

// readSigningKey reads the private key that signs service account tokens; nil for no path. The content never appears in an
// error.
func readSigningKey(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	const flag = "--sa-token-issuer-private-key-path"
	raw, err := connect.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if err := checkPrivateKey(raw); err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, path, err)
	}
	return raw, nil
}

func checkPrivateKey(raw []byte) error {
	block, _ := pem.Decode(raw)
	if block == nil {
		return errors.New("must hold a PEM private key")
	}
	_, pkcs1 := x509.ParsePKCS1PrivateKey(block.Bytes)
	_, pkcs8 := x509.ParsePKCS8PrivateKey(block.Bytes)
	_, ec := x509.ParseECPrivateKey(block.Bytes)
	if pkcs1 != nil && pkcs8 != nil && ec != nil {
		return errors.New("must hold a PEM private key without a password: RSA or ECDSA")
	}
	return nil
}

// sortedPairs makes a list of a map, in the order of its keys.
func sortedPairs[T any](m map[string]string, with func(key, value string) T) []T {
	var list []T
	for _, key := range slices.SortedFunc(maps.Keys(m), cmp.Compare) {
		list = append(list, with(key, m[key]))
	}
	return list
}
