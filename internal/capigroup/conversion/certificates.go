package conversion

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// Keys of the Secret.
const (
	keyCABundle = "ca.crt" // the signer's certificate first, then earlier ones that may still be in use
	keyCAKey    = "ca.key"
	keyCert     = "tls.crt"
	keyKey      = "tls.key"
)

const (
	// caValidity is long, because whoever calls the webhook learns of a new signer by a write to every definition.
	caValidity = 10 * 365 * 24 * time.Hour
	// certValidity is short: a new certificate costs one write of a Secret.
	certValidity = 365 * 24 * time.Hour
	// backdating allows for clocks that differ.
	backdating = 5 * time.Minute
)

// Certificates is what the webhook serves with, and what its callers trust. It is the content of a Secret.
type Certificates struct {
	CABundle, CAKey, Cert, Key []byte // PEM
}

// Plan returns the certificates that a webhook of the given DNS names should have at a time: those that there are, renewed where 80 % of
// their validity is over, and new ones for what can't be read. A new signer signs nothing until the certificate is renewed for its own
// sake, months later; until then both signers are in the bundle. Random numbers come from the kernel.
func Plan(now time.Time, names []string, have Certificates) (Certificates, error) {
	want := have
	signer, key, err := parse(have.CABundle, have.CAKey)
	if err != nil || late(signer, now) {
		if want.CABundle, want.CAKey, err = newSigner(now, unexpired(have.CABundle, now)); err != nil {
			return have, fmt.Errorf("making a signer: %w", err)
		}
		if signer, key, err = parse(want.CABundle, want.CAKey); err != nil {
			return have, fmt.Errorf("making a signer: %w", err)
		}
	}
	cert, _, err := parse(have.Cert, have.Key)
	if err == nil && !late(cert, now) && serves(cert, names) && trusted(cert, want.CABundle, now) {
		return want, nil
	}
	if want.Cert, want.Key, err = issue(now, names, signer, key); err != nil {
		return have, fmt.Errorf("issuing a certificate: %w", err)
	}
	return want, nil
}

// late tells that less than a fifth of a certificate's validity is left.
func late(c *x509.Certificate, now time.Time) bool {
	return now.After(c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) / 5 * 4))
}

func serves(c *x509.Certificate, names []string) bool {
	for _, name := range names {
		if c.VerifyHostname(name) != nil {
			return false
		}
	}
	return true
}

func trusted(c *x509.Certificate, bundle []byte, now time.Time) bool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err := c.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now})
	return err == nil
}

// parse reads the first certificate of a bundle and the key that belongs to it.
func parse(bundle, keyPEM []byte) (*x509.Certificate, crypto.Signer, error) {
	if len(bundle) == 0 || len(keyPEM) == 0 {
		return nil, nil, errors.New("there is none")
	}
	pair, err := tls.X509KeyPair(bundle, keyPEM)
	if err != nil {
		return nil, nil, err
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, nil, fmt.Errorf("a %T can't sign", pair.PrivateKey)
	}
	return pair.Leaf, key, nil
}

// unexpired keeps the certificates of a bundle that somebody may still use.
func unexpired(bundle []byte, now time.Time) []byte {
	var out []byte
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return out
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && c.IsCA && now.Before(c.NotAfter) {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
		}
	}
}

func newSigner(now time.Time, before []byte) (bundle, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: fmt.Sprintf("capi-conversion-webhook-signer@%d", now.Unix())},
		NotBefore: now.Add(-backdating), NotAfter: now.Add(caValidity),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	if bundle, keyPEM, err = sign(template, template, key, key); err != nil {
		return nil, nil, err
	}
	return append(bundle, before...), keyPEM, nil
}

func issue(now time.Time, names []string, signer *x509.Certificate, signerKey crypto.Signer) (cert, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	return sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: now.Add(-backdating), NotAfter: now.Add(certValidity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, signer, key, signerKey)
}

func sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey, by crypto.Signer) (cert, keyPEM []byte, err error) {
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		return nil, nil, err
	}
	rawKey, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: rawKey}), nil
}

func (c Certificates) equal(other Certificates) bool {
	return bytes.Equal(c.CABundle, other.CABundle) && bytes.Equal(c.CAKey, other.CAKey) && bytes.Equal(c.Cert, other.Cert) && bytes.Equal(c.Key, other.Key)
}
