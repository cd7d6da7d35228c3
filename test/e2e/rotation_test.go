//go:build e2e && upgrade

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Certificates of this validity begin a tenth of it in the past and are renewed when four fifths of it are left: three minutes after they
// were made.
const (
	shortValidity = "30m"
	renewalShare  = "0.8"
	renewalTime   = 10 * time.Minute // for the three minutes, and a rolling restart of everything that does not read files again
)

// rotate makes all leaf certificates short-lived, which replaces them, waits until they are replaced once more because they are due, and
// makes them as before.
func (u *upgrade) rotate(t *testing.T) {
	calls := startCaller(t, u.kubeconfig)
	annotate := func(validity, renewal string) {
		management().run(t, "annotate", "hostedcluster", "-n", "clusters", "ha", "--overwrite",
			"hypershift.openshift.io/certificate-validity"+validity, "hypershift.openshift.io/certificate-renewal"+renewal)
	}
	annotate("="+shortValidity, "="+renewalShare)
	var short, renewed time.Time // the latest end of what was served
	u.awaitCertificates(t, "short-lived certificates", func(c *x509.Certificate) error {
		if time.Until(c.NotAfter) > time.Hour {
			return errors.New("it is from before")
		}
		short = later(short, c.NotAfter)
		return nil
	})
	u.awaitCertificates(t, "renewal of certificates that are due", func(c *x509.Certificate) error {
		if !c.NotAfter.After(short) {
			return errors.New("it is from before")
		}
		renewed = later(renewed, c.NotAfter)
		return nil
	})
	if time.Until(renewed) > time.Hour {
		t.Errorf("renewed certificates end at %s, want %s of validity", renewed, shortValidity)
	}
	annotate("-", "-")
	u.awaitCertificates(t, "certificates of ordinary validity", func(c *x509.Certificate) error {
		if time.Until(c.NotAfter) < 300*24*time.Hour {
			return errors.New("it is still a short-lived one")
		}
		return nil
	})
	awaitRollouts(t, "clusters-ha", renewalTime)
	calls.expectNoOutage(t, "rotation of certificates")
}

// handshakes in a row make it likely (all but one of 10,000) that each of three API servers, one of which is chosen at random, was asked.
const handshakes = 24

// awaitCertificates waits until every API server shows a certificate that fits.
func (u *upgrade) awaitCertificates(t *testing.T, what string, fits func(*x509.Certificate) error) {
	t.Helper()
	start := time.Now()
	eventually(t, renewalTime, what, func() error {
		for range handshakes {
			cert, err := servedCertificate(u.kubeconfig)
			if err != nil {
				return err
			}
			if err := fits(cert); err != nil {
				return fmt.Errorf("certificate %x, valid until %s: %w", cert.SerialNumber, cert.NotAfter.Format(time.DateTime), err)
			}
		}
		return nil
	})
	t.Logf("%s: served everywhere after %s", what, time.Since(start).Round(time.Second))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// servedCertificate shakes hands with the published API, as a client that trusts what the kubeconfig says.
func servedCertificate(kubeconfig string) (*x509.Certificate, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: callTimeout}, "tcp", target.Host, tlsConfig)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0], nil
}
