package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// rsaBits is the size of every RSA key of ours.
const rsaBits = 2048

// KeyKind is an algorithm with its size.
type KeyKind string

// The kinds of keys that a KeySource generates.
const (
	ECDSA KeyKind = "ECDSA-P256"
	RSA   KeyKind = "RSA-2048"
)

// KeySource generates private keys. It may be called by several goroutines at once.
type KeySource func(KeyKind) (crypto.Signer, error)

// NewKey is the KeySource of production: fresh keys from the system's random source.
func NewKey(kind KeyKind) (crypto.Signer, error) {
	switch kind {
	case ECDSA:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case RSA:
		return rsa.GenerateKey(rand.Reader, rsaBits)
	}
	return nil, fmt.Errorf("generating a key: unknown kind %q, use %s or %s", kind, ECDSA, RSA)
}

// encodeKey gives the traditional PEM of a key: PKCS#1 for RSA, SEC 1 for ECDSA, which is what OpenSSL's and Go's oldest readers take too.
func encodeKey(key crypto.Signer) ([]byte, error) {
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(k)}), nil
	case *ecdsa.PrivateKey:
		der, err := x509.MarshalECPrivateKey(k)
		if err != nil {
			return nil, fmt.Errorf("encoding an ECDSA key: %w", err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
	}
	return nil, fmt.Errorf("encoding a key: unsupported type %T", key)
}

var errNoKey = errors.New("no private key in PEM data")

// parseKey reads the first private key of PEM data in any of the three usual encodings.
func parseKey(data []byte) (crypto.Signer, error) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		var key any
		var err error
		switch block.Type {
		case "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		default:
			continue
		}
		if err != nil {
			// The cause would quote nothing secret today, but it is a parser's text about a private key: keep it out of conditions.
			return nil, fmt.Errorf("block %q is malformed", block.Type)
		}
		if signer, ok := key.(crypto.Signer); ok {
			return signer, nil
		}
		return nil, fmt.Errorf("block %q holds an unsupported key", block.Type)
	}
	return nil, errNoKey
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

var errNoCertificate = errors.New("no certificate in PEM data")

// parseCertificate reads the first certificate of PEM data.
func parseCertificate(data []byte) (*x509.Certificate, error) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	return nil, errNoCertificate
}

// OnlyCertificates keeps the certificates of PEM data and drops everything else: people put private keys into such files.
func OnlyCertificates(data []byte) []byte {
	var out bytes.Buffer
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			out.Write(encodeCertificate(block.Bytes))
		}
	}
	return out.Bytes()
}

// keyID identifies a public key in certificates: the leftmost 160 bits of SHA-256 over the key (RFC 7093, method 1).
func keyID(pub crypto.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return nil, fmt.Errorf("encoding a public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return sum[:20], nil
}

// samePublicKey reports whether the certificate is for the key.
func samePublicKey(cert *x509.Certificate, key crypto.Signer) bool {
	pub, ok := cert.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	return ok && pub.Equal(key.Public())
}

// publicKeyPEM encodes the public half as PKIX. The block's name is a wire fact of service-account.pub, although "PUBLIC KEY" would be the usual
// one for this encoding; kube-apiserver reads the content and ignores the name.
func publicKeyPEM(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("encoding a public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: der}), nil
}
