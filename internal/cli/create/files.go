package create

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/ptr"

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

// part is the share of the i-th of count pools in a number of machines; the first ones get the odd machines.
func part(total int32, i, count int) *int32 {
	share := total / int32(count)
	if int32(i) < total%int32(count) {
		share++
	}
	return ptr.To(share)
}
