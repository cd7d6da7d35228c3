// Package mgmtpki makes the certificates, keys and kubeconfigs of the local management cluster.
//
// Ensure is idempotent: what is there and valid for long enough stays, so a second run changes no file.
package mgmtpki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"

	"hcp.internal/platform/internal/atomicfile"
)

const (
	// caValidity and leafValidity are long because nothing rotates the certificates of a development cluster but a new "up".
	caValidity   = 10 * 365 * 24 * time.Hour
	leafValidity = 2 * 365 * 24 * time.Hour
	// renewBefore is how much validity a certificate must have left for "up" to keep it.
	renewBefore = 90 * 24 * time.Hour
	// clockSkew lets a certificate be used on machines whose clock is a little behind.
	clockSkew = 5 * time.Minute
)

// Leaf is a certificate to issue.
type Leaf struct {
	Name    string // file name without ending
	Subject pkix.Name
	DNS     []string
	IPs     []net.IP
	Server  bool
	Client  bool
}

// Bundle is the PKI in one folder.
type Bundle struct {
	dir string
	now time.Time
	ca  *x509.Certificate
	key crypto.Signer
}

// Open loads the certificate authority in dir, or makes one.
func Open(dir string, now time.Time) (*Bundle, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the folder for certificates: %w", err)
	}
	b := &Bundle{dir: dir, now: now}
	ca, key, err := b.load("ca")
	if err == nil && b.inTime(ca) {
		b.ca, b.key = ca, key
		return b, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return b, b.newAuthority()
}

// Cert, Key and Kubeconfig are the paths of what Ensure and EnsureKubeconfig write.
func (b *Bundle) Cert(name string) string       { return filepath.Join(b.dir, name+".crt") }
func (b *Bundle) Key(name string) string        { return filepath.Join(b.dir, name+".key") }
func (b *Bundle) Kubeconfig(name string) string { return filepath.Join(b.dir, name+".kubeconfig") }

func (b *Bundle) newAuthority() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generating the key of the certificate authority: %w", err)
	}
	tmpl := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "hypershift-local-ca"},
		NotBefore:             b.now.Add(-clockSkew),
		NotAfter:              b.now.Add(caValidity),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}
	b.ca, b.key = tmpl, key
	cert, err := b.sign(tmpl, key)
	if err != nil {
		return err
	}
	b.ca = cert
	return b.store("ca", cert, key)
}

// Ensure issues the certificate unless the one on disk is from this authority, names the same and is valid long enough.
func (b *Bundle) Ensure(leaf Leaf) error {
	cert, _, err := b.load(leaf.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && b.keeps(cert, leaf) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generating the key of %s: %w", leaf.Name, err)
	}
	tmpl := &x509.Certificate{
		Subject:     leaf.Subject,
		DNSNames:    leaf.DNS,
		IPAddresses: leaf.IPs,
		NotBefore:   b.now.Add(-clockSkew),
		NotAfter:    b.now.Add(leafValidity),
		KeyUsage:    x509.KeyUsageDigitalSignature,
	}
	if leaf.Server {
		tmpl.ExtKeyUsage = append(tmpl.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if leaf.Client {
		tmpl.ExtKeyUsage = append(tmpl.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	if cert, err = b.sign(tmpl, key); err != nil {
		return fmt.Errorf("issuing %s: %w", leaf.Name, err)
	}
	return b.store(leaf.Name, cert, key)
}

// inTime tells whether a certificate is valid now and for long enough. One of a time to come was made while the clock was ahead: nobody
// would accept it until then, which may be years.
func (b *Bundle) inTime(cert *x509.Certificate) bool {
	return !cert.NotBefore.After(b.now) && cert.NotAfter.Sub(b.now) > renewBefore
}

func (b *Bundle) keeps(cert *x509.Certificate, leaf Leaf) bool {
	sameIPs := slices.EqualFunc(cert.IPAddresses, leaf.IPs, net.IP.Equal)
	return cert.CheckSignatureFrom(b.ca) == nil && b.inTime(cert) &&
		cert.Subject.String() == leaf.Subject.String() && slices.Equal(cert.DNSNames, leaf.DNS) && sameIPs
}

func (b *Bundle) sign(tmpl *x509.Certificate, key crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	tmpl.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, tmpl, b.ca, key.Public(), b.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// EnsureServiceAccountKey makes the RSA pair sa.key and sa.pub; RSA because token consumers expect RS256.
func (b *Bundle) EnsureServiceAccountKey() error {
	if _, err := os.Stat(b.Key("sa")); err == nil {
		return nil
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("generating the service account key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encoding the service account key: %w", err)
	}
	if err := atomicfile.Write(filepath.Join(b.dir, "sa.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600); err != nil {
		return err
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return atomicfile.Write(b.Key("sa"), private, 0o600)
}

// EnsureKubeconfig writes a kubeconfig with the client certificate of that name to path.
func (b *Bundle) EnsureKubeconfig(path, name, server string) error {
	read := func(p string) []byte {
		data, err := os.ReadFile(p)
		if err != nil {
			return nil
		}
		return data
	}
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters["local"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: read(b.Cert("ca"))}
	cfg.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: read(b.Cert(name)), ClientKeyData: read(b.Key(name))}
	cfg.Contexts["local"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: name}
	cfg.CurrentContext = "local"
	data, err := clientcmd.Write(*cfg)
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig of %s: %w", name, err)
	}
	if string(read(path)) == string(data) {
		return nil
	}
	return atomicfile.Write(path, data, 0o600)
}

func (b *Bundle) load(name string) (*x509.Certificate, crypto.Signer, error) {
	certPEM, err := os.ReadFile(b.Cert(name))
	if err != nil {
		return nil, nil, fmt.Errorf("reading certificate %s: %w", name, err)
	}
	block, _ := pem.Decode(certPEM)
	if block == nil {
		return nil, nil, fmt.Errorf("reading certificate %s: no PEM data; remove the file and run again: %w", b.Cert(name), fs.ErrNotExist)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("parsing certificate %s: %w", name, err)
	}
	parsed, err := keyutil.PrivateKeyFromFile(b.Key(name))
	if err != nil {
		return nil, nil, fmt.Errorf("reading key %s: %w", name, errors.Join(err, fs.ErrNotExist))
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, nil, fmt.Errorf("key %s cannot sign: %w", name, fs.ErrNotExist)
	}
	return cert, key, nil
}

// store writes the key first: a certificate without its key would pass for complete after a crash.
func (b *Bundle) store(name string, cert *x509.Certificate, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding key %s: %w", name, err)
	}
	if err := atomicfile.Write(b.Key(name), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		return err
	}
	return atomicfile.Write(b.Cert(name), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}), 0o644)
}
