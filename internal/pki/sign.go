package pki

import (
	"bytes"
	"crypto"
	"crypto/md5" // the annotation's value is a wire fact; it identifies, it protects nothing
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"

	corev1 "k8s.io/api/core/v1"
)

// serialBits of a random serial number: positive in any integer type that a reader may use.
const serialBits = 63

// pair is a certificate with its private key, also in PEM.
type pair struct {
	cert    *x509.Certificate
	key     crypto.Signer
	certPEM []byte
	keyPEM  []byte
}

// hash identifies an authority in the annotation of its leaves.
func (p pair) hash() string {
	sum := md5.Sum(append(bytes.Clone(p.certPEM), p.keyPEM...))
	return hex.EncodeToString(sum[:])
}

var errKeyMismatch = errors.New("the private key does not belong to the certificate")

// parsePair reads a certificate and its key, and checks that they belong together.
func parsePair(certPEM, keyPEM []byte) (pair, error) {
	cert, err := parseCertificate(certPEM)
	if err != nil {
		return pair{}, fmt.Errorf("reading the certificate: %w", err)
	}
	key, err := parseKey(keyPEM)
	if err != nil {
		return pair{}, fmt.Errorf("reading the private key: %w", err)
	}
	if !samePublicKey(cert, key) {
		return pair{}, errKeyMismatch
	}
	return pair{cert: cert, key: key, certPEM: certPEM, keyPEM: keyPEM}, nil
}

// keyUsage of a certificate. Key encipherment only means something for RSA (RFC 8813 forbids it with ECDSA).
func keyUsage(key crypto.Signer) x509.KeyUsage {
	if _, ok := key.(*rsa.PrivateKey); ok {
		return x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	}
	return x509.KeyUsageDigitalSignature
}

// issueAuthority makes a self-signed certificate authority.
func issueAuthority(a authority, spec Spec, src Source) (pair, error) {
	key, err := src.Keys(spec.keyKind())
	if err != nil {
		return pair{}, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: a.name, OrganizationalUnit: []string{a.unit}},
		NotBefore:             src.Now.Add(-maxBackdate),
		NotAfter:              src.Now.Add(caValidity),
		KeyUsage:              keyUsage(key) | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	return sign(template, template, key, key, src)
}

// issueLeaf makes a certificate for l, signed by ca.
func issueLeaf(l leaf, ca pair, spec Spec, src Source) (pair, error) {
	key, err := src.Keys(spec.keyKind())
	if err != nil {
		return pair{}, err
	}
	begin := src.Now.Add(-spec.backdate())
	end := begin.Add(spec.validity())
	if end.After(ca.cert.NotAfter) {
		end = ca.cert.NotAfter // nobody would accept it longer
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: l.name, Organization: l.orgs},
		NotBefore:             begin,
		NotAfter:              end,
		KeyUsage:              keyUsage(key),
		ExtKeyUsage:           l.usages,
		BasicConstraintsValid: true,
		DNSNames:              l.dns,
	}
	for _, ip := range l.ips {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(ip))
	}
	return sign(template, ca.cert, key, ca.key, src)
}

// sign completes the template with serial number and key ids, and signs it.
func sign(template, parent *x509.Certificate, key, signer crypto.Signer, src Source) (pair, error) {
	id, err := keyID(key.Public())
	if err != nil {
		return pair{}, err
	}
	template.SubjectKeyId = id
	if template.SerialNumber, err = serial(src.Rand); err != nil {
		return pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return pair{}, fmt.Errorf("signing certificate %q: %w", template.Subject.CommonName, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return pair{}, fmt.Errorf("reading back certificate %q: %w", template.Subject.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return pair{}, err
	}
	return pair{cert: cert, key: key, certPEM: encodeCertificate(der), keyPEM: keyPEM}, nil
}

func serial(random io.Reader) (*big.Int, error) {
	limit := new(big.Int).Lsh(big.NewInt(1), serialBits)
	n, err := rand.Int(random, limit)
	if err != nil {
		return nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	return n.Add(n, big.NewInt(1)), nil
}

// ClientSigner issues client certificates of the hosted cluster, signed by the cluster-signer-ca, for components that act as a service account
// of the hosted cluster.
type ClientSigner struct {
	spec Spec
	ca   pair
	src  Source
}

// NewClientSigner reads the authority from its Secret.
func NewClientSigner(spec Spec, clusterSigner *corev1.Secret, src Source) (*ClientSigner, error) {
	ca, err := parsePair(clusterSigner.Data[CACertKey], clusterSigner.Data[CAKeyKey])
	if err != nil {
		return nil, fmt.Errorf("reading signer %s/%s: %w", clusterSigner.Namespace, clusterSigner.Name, err)
	}
	return &ClientSigner{spec: spec, ca: ca, src: src}, nil
}

// SignClient issues a certificate for a user and its groups.
func (s *ClientSigner) SignClient(user string, groups []string) (certPEM, keyPEM []byte, err error) {
	issued, err := issueLeaf(clientLeaf(user, groups), s.ca, s.spec, s.src)
	if err != nil {
		return nil, nil, err
	}
	return issued.certPEM, issued.keyPEM, nil
}

// NeedsSigning says why the certificate has to be issued anew for the user and groups; empty when it can stay.
func (s *ClientSigner) NeedsSigning(certPEM, keyPEM []byte, user string, groups []string) string {
	return reissueReason(examined{
		leaf: clientLeaf(user, groups), certPEM: certPEM, keyPEM: keyPEM, ca: s.ca, spec: s.spec, now: s.src.Now,
	})
}

func clientLeaf(user string, groups []string) leaf {
	return leaf{name: user, orgs: groups, usages: clientAuth}
}
