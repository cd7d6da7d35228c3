package konnectivity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"hcp.internal/platform/internal/bounded"
)

const (
	// maxPEM bounds a file with a key or certificates.
	maxPEM = 1 << 20
	// reloadAfter is how old the answer about a file may be. Mounted Secrets take about a minute to change anyway.
	reloadAfter = 10 * time.Second
)

// Files are a certificate with its key, and the authority of the other side.
type Files struct {
	Cert, Key, CA string
}

// keyPair and pool are read again when their files change, so that rotated certificates need no restart.
type credentials struct {
	files Files
	fixed bool // there are no files: pair and pool stay as they are
	now   func() time.Time

	mu      sync.Mutex
	checked time.Time
	stamps  [3]stamp
	pair    *tls.Certificate
	pool    *x509.CertPool
}

// stamp tells versions of a file apart.
type stamp struct {
	modified time.Time
	size     int64
}

// load reads the files for the first time, so that a mistake shows at the start.
func load(files Files, now func() time.Time) (*credentials, error) {
	c := &credentials{files: files, now: now}
	if _, _, err := c.current(); err != nil {
		return nil, err
	}
	return c, nil
}

// current are the credentials of now. While new files can't be read the old ones stay in force.
func (c *credentials) current() (*tls.Certificate, *x509.CertPool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fixed {
		return c.pair, c.pool, nil
	}
	now := c.now()
	if c.pair != nil && now.Sub(c.checked) < reloadAfter {
		return c.pair, c.pool, nil
	}
	c.checked = now
	var stamps [3]stamp
	for i, path := range []string{c.files.Cert, c.files.Key, c.files.CA} {
		info, err := os.Stat(path)
		if err != nil {
			return c.keep(fmt.Errorf("looking at %s: %w", path, err))
		}
		stamps[i] = stamp{info.ModTime(), info.Size()}
	}
	if c.pair != nil && stamps == c.stamps {
		return c.pair, c.pool, nil
	}
	pair, pool, err := read(c.files)
	if err != nil {
		return c.keep(err)
	}
	c.pair, c.pool, c.stamps = pair, pool, stamps
	return pair, pool, nil
}

func (c *credentials) keep(err error) (*tls.Certificate, *x509.CertPool, error) {
	if c.pair == nil {
		return nil, nil, err
	}
	return c.pair, c.pool, nil
}

func read(files Files) (*tls.Certificate, *x509.CertPool, error) {
	cert, err := readFile(files.Cert)
	if err != nil {
		return nil, nil, err
	}
	key, err := readFile(files.Key)
	if err != nil {
		return nil, nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the certificate %s with key %s: %w", files.Cert, files.Key, err)
	}
	ca, err := readFile(files.CA)
	if err != nil {
		return nil, nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, nil, fmt.Errorf("%s holds no certificate", files.CA)
	}
	return &pair, pool, nil
}

func readFile(path string) ([]byte, error) {
	data, err := bounded.ReadFile(path, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("reading a certificate file: %w", err)
	}
	return data, nil
}

// Protocol is what both sides of a connection may speak.
type Protocol struct {
	MinVersion   uint16   // 0: TLS 1.2
	CipherSuites []uint16 // of TLS 1.2; nil: Go's
}

// ParseProtocol reads the flags --tls-min-version (VersionTLS12, VersionTLS13) and --cipher-suites (IANA names). Names that Go
// doesn't know are left out, as Kubernetes' list has some that nobody should use; if none is left that is an error.
func ParseProtocol(minVersion string, suites []string) (Protocol, error) {
	p := Protocol{MinVersion: tls.VersionTLS12}
	switch minVersion {
	case "", "VersionTLS10", "VersionTLS11", "VersionTLS12":
	case "VersionTLS13":
		p.MinVersion = tls.VersionTLS13
	default:
		return Protocol{}, fmt.Errorf("--tls-min-version: unknown version %q; use VersionTLS12 or VersionTLS13", minVersion)
	}
	for _, s := range tls.CipherSuites() {
		if slices.Contains(suites, s.Name) {
			p.CipherSuites = append(p.CipherSuites, s.ID)
		}
	}
	if len(suites) > 0 && len(p.CipherSuites) == 0 {
		return Protocol{}, fmt.Errorf("--cipher-suites: none of %s is a cipher suite that can be used", strings.Join(suites, ","))
	}
	return p, nil
}

// serverTLS takes only clients whose certificate is of our authority, made for clients, and of one of the names.
func serverTLS(c *credentials, p Protocol, names []string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			pair, pool, err := c.current()
			if err != nil {
				return nil, err
			}
			return &tls.Config{
				MinVersion: max(p.MinVersion, tls.VersionTLS12), CipherSuites: p.CipherSuites,
				Certificates: []tls.Certificate{*pair},
				ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: pool,
				NextProtos: []string{"http/1.1"},
				// A session that is resumed was verified under older rules.
				SessionTicketsDisabled: true,
				VerifyConnection:       named(names),
			}, nil
		},
	}
}

var errWrongName = errors.New("the client's certificate is not for this port")

func named(names []string) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 || !slices.Contains(names, s.PeerCertificates[0].Subject.CommonName) {
			return errWrongName
		}
		return nil
	}
}

// clientTLS takes only a server whose certificate is of our authority and for host.
func clientTLS(c *credentials, p Protocol, host string) (*tls.Config, error) {
	pair, pool, err := c.current()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: max(p.MinVersion, tls.VersionTLS12), CipherSuites: p.CipherSuites,
		Certificates: []tls.Certificate{*pair}, RootCAs: pool, ServerName: host, NextProtos: []string{"http/1.1"},
	}, nil
}
