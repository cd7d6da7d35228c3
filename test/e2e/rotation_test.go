//go:build e2e && upgrade

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"strings"
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
	first := servedCertificate(t, u.kubeconfig)
	calls := startCaller(t, u.kubeconfig)
	annotate := func(validity, renewal string) {
		management().run(t, "annotate", "hostedcluster", "-n", "clusters", "ha", "--overwrite",
			"hypershift.openshift.io/certificate-validity"+validity, "hypershift.openshift.io/certificate-renewal"+renewal)
	}
	annotate("="+shortValidity, "="+renewalShare)
	short := u.awaitCertificate(t, "short-lived certificates", first)
	if left := time.Until(short.NotAfter); left > time.Hour {
		t.Errorf("the served certificate lasts for %s more, want less than %s", left, shortValidity)
	}
	renewed := u.awaitCertificate(t, "renewal of certificates that are due", short)
	if !renewed.NotAfter.After(short.NotAfter) {
		t.Errorf("the renewed certificate ends at %s, not later than the one before at %s", renewed.NotAfter, short.NotAfter)
	}
	annotate("-", "-")
	long := u.awaitCertificate(t, "certificates of ordinary validity", renewed)
	if left := time.Until(long.NotAfter); left < 300*24*time.Hour {
		t.Errorf("the served certificate lasts for %s, want a year", left)
	}
	u.awaitRollouts(t)
	calls.expectNoOutage(t, "rotation of certificates")
}

// awaitCertificate waits until another certificate than before is served.
func (u *upgrade) awaitCertificate(t *testing.T, what string, before *x509.Certificate) *x509.Certificate {
	t.Helper()
	start := time.Now()
	var now *x509.Certificate
	eventually(t, renewalTime, what, func() error {
		var err error
		if now, err = tryServedCertificate(u.kubeconfig); err != nil {
			return err
		}
		if now.Equal(before) {
			return fmt.Errorf("certificate %x of before is still served", before.SerialNumber)
		}
		return nil
	})
	t.Logf("%s: served after %s, valid until %s", what, time.Since(start).Round(time.Second), now.NotAfter.Format(time.DateTime))
	return now
}

// awaitRollouts waits until every component runs what is wanted.
func (u *upgrade) awaitRollouts(t *testing.T) {
	t.Helper()
	eventually(t, renewalTime, "rollouts", func() error {
		out, err := management().try(t, "get", "controlplanecomponents", "-n", "clusters-ha", "-o",
			`jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="RolloutComplete")].status} {end}`)
		if err != nil {
			return err
		}
		for pair := range strings.FieldsSeq(out) {
			if _, status, _ := strings.Cut(pair, "="); status != "True" {
				return fmt.Errorf("not all are complete: %s", out)
			}
		}
		return nil
	})
}

func servedCertificate(t *testing.T, kubeconfig string) *x509.Certificate {
	t.Helper()
	cert, err := tryServedCertificate(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// tryServedCertificate shakes hands with the published API, as a client that trusts what the kubeconfig says.
func tryServedCertificate(kubeconfig string) (*x509.Certificate, error) {
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
