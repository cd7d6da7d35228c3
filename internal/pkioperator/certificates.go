package pkioperator

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"hcp.internal/platform/internal/pki"
)

// authority is a certificate with its key.
type authority struct {
	cert            *x509.Certificate
	key             crypto.Signer
	certPEM, keyPEM []byte
}

// source is where time and chance come from.
type source struct {
	now  time.Time
	keys pki.KeySource
	rand io.Reader
}

// backdate of certificates for users, whose clocks may be behind. Authorities are not backdated: revocation goes by when they
// were made.
const backdate = 5 * time.Minute

var errNoAuthority = errors.New("there is no usable certificate authority")

// parseAuthority reads tls.crt and tls.key. It names no content in its errors.
func parseAuthority(secret *corev1.Secret) (authority, error) {
	if secret == nil {
		return authority{}, errNoAuthority
	}
	a := authority{certPEM: secret.Data[corev1.TLSCertKey], keyPEM: secret.Data[corev1.TLSPrivateKeyKey]}
	certs, err := certutil.ParseCertsPEM(a.certPEM)
	if err != nil {
		return authority{}, errNoAuthority
	}
	key, err := keyutil.ParsePrivateKeyPEM(a.keyPEM)
	if err != nil {
		return authority{}, errNoAuthority
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return authority{}, errNoAuthority
	}
	public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(certs[0].PublicKey) {
		return authority{}, errNoAuthority
	}
	a.cert, a.key = certs[0], signer
	return a, nil
}

// newAuthority makes a self-signed authority.
func (s source) newAuthority(name string, validity time.Duration) (authority, error) {
	key, err := s.keys(pki.ECDSA)
	if err != nil {
		return authority{}, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: s.now.Truncate(time.Second), NotAfter: s.now.Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	return s.issue(template, template, key.Public(), key, key)
}

// newClient makes a client certificate for a user with a new key.
func (s source) newClient(ca authority, user string, groups []string, validity time.Duration) (authority, error) {
	key, err := s.keys(pki.ECDSA)
	if err != nil {
		return authority{}, err
	}
	return s.issue(clientTemplate(pkix.Name{CommonName: user, Organization: groups}, s.now, s.now.Add(validity), ca), ca.cert, key.Public(), ca.key, key)
}

// clientTemplate ends with the authority at the latest.
func clientTemplate(subject pkix.Name, now, end time.Time, ca authority) *x509.Certificate {
	if end.After(ca.cert.NotAfter) {
		end = ca.cert.NotAfter
	}
	return &x509.Certificate{
		Subject: subject, NotBefore: now.Add(-backdate), NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}
}

// issue signs the template. own is the key that goes with it, nil when only somebody else has that.
func (s source) issue(template, parent *x509.Certificate, public crypto.PublicKey, signer, own crypto.Signer) (authority, error) {
	limit := new(big.Int).Lsh(big.NewInt(1), 63)
	serial, err := rand.Int(s.rand, limit)
	if err != nil {
		return authority{}, fmt.Errorf("drawing a serial number: %w", err)
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1))
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return authority{}, fmt.Errorf("signing certificate %q: %w", template.Subject.CommonName, err)
	}
	a := authority{key: own, certPEM: encode(der)}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return authority{}, fmt.Errorf("reading back certificate %q: %w", template.Subject.CommonName, err)
	}
	if own != nil {
		if a.keyPEM, err = keyutil.MarshalPrivateKeyToPEM(own); err != nil {
			return authority{}, fmt.Errorf("encoding the key of %q: %w", template.Subject.CommonName, err)
		}
	}
	return a, nil
}

func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: der})
}

// parseBundle reads all certificates of a bundle; what is none is left out.
func parseBundle(cm *corev1.ConfigMap, key string) []*x509.Certificate {
	if cm == nil {
		return nil
	}
	var certs []*x509.Certificate
	for block, rest := pem.Decode([]byte(cm.Data[key])); block != nil; block, rest = pem.Decode(rest) {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == certutil.CertificateBlockType {
			certs = append(certs, cert)
		}
	}
	return certs
}

func encodeBundle(certs []*x509.Certificate) string {
	var out bytes.Buffer
	for _, cert := range certs {
		out.Write(encode(cert.Raw))
	}
	return out.String()
}

func has(certs []*x509.Certificate, cert *x509.Certificate) bool {
	for _, c := range certs {
		if c.Equal(cert) {
			return true
		}
	}
	return false
}

// userAlphabet and userLength make names of users that nobody guesses or meets again.
const (
	userAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	userLength   = 32
)

func (s source) userName(prefix string) (string, error) {
	name := make([]byte, userLength)
	for i := range name {
		k, err := rand.Int(s.rand, big.NewInt(int64(len(userAlphabet))))
		if err != nil {
			return "", fmt.Errorf("drawing the name of a user: %w", err)
		}
		name[i] = userAlphabet[k.Int64()]
	}
	return prefix + string(name), nil
}
