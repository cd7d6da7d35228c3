package checks

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// ListenAddress checks host:port of something to listen at.
func ListenAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not host:port; write one, such as 0.0.0.0:8443", address)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("%q has no port from 1 to 65535", address)
	}
	if host != "" && net.ParseIP(host) == nil {
		return fmt.Errorf("%q names a host; listen at an IP address", address)
	}
	return nil
}

// MinVersion is the TLS version of VersionTLS12 or, as etcd spells it, TLS1.2.
func MinVersion(name string) (uint16, error) {
	switch name {
	case "VersionTLS10", "TLS1.0":
		return tls.VersionTLS10, nil
	case "VersionTLS11", "TLS1.1":
		return tls.VersionTLS11, nil
	case "VersionTLS12", "TLS1.2":
		return tls.VersionTLS12, nil
	case "VersionTLS13", "TLS1.3":
		return tls.VersionTLS13, nil
	}
	return 0, fmt.Errorf("%q is no version of TLS; use VersionTLS12 or VersionTLS13", name)
}

// CipherSuites are the numbers of suites by IANA name.
func CipherSuites(names []string) ([]uint16, error) {
	known := map[string]uint16{}
	for _, s := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		known[s.Name] = s.ID
	}
	known["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"] = tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
	known["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"] = tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
	var ids []uint16
	for _, name := range names {
		id, ok := known[name]
		if !ok {
			return nil, fmt.Errorf("%q is no cipher suite; use IANA names such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", name)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// Authorities reads certificates of authorities.
func Authorities(pemData []byte) (*x509.CertPool, error) {
	pool, n := x509.NewCertPool(), 0
	for block, rest := pem.Decode(pemData); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("a block of type %s is among the certificates of authorities; leave only certificates there", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d doesn't parse: %w", n+1, err)
		}
		pool.AddCert(cert)
		n++
	}
	if n == 0 {
		return nil, errors.New("it has no certificate; give those of authorities in PEM")
	}
	return pool, nil
}

// Pair checks that a certificate and its key belong together, that it is valid now and, unless roots is nil, that it chains to them for
// usage and speaks for host, if one is given.
func Pair(certPEM, keyPEM []byte, roots *x509.CertPool, usage x509.ExtKeyUsage, host string, now time.Time) (tls.Certificate, error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return pair, fmt.Errorf("certificate and key don't belong together: %s", strings.TrimPrefix(err.Error(), "tls: "))
	}
	leaf := pair.Leaf
	if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return pair, fmt.Errorf("the certificate of %s is valid from %s to %s, which isn't now; renew it", leaf.Subject, leaf.NotBefore.Format(time.RFC3339), leaf.NotAfter.Format(time.RFC3339))
	}
	if host != "" {
		if err := leaf.VerifyHostname(host); err != nil {
			return pair, fmt.Errorf("the certificate doesn't speak for %s: %w", host, err)
		}
	}
	if roots == nil {
		return pair, nil
	}
	between := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if cert, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(cert)
		}
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
		return pair, fmt.Errorf("the certificate of %s doesn't chain to the authority that it is given: %w", leaf.Subject, err)
	}
	return pair, nil
}
