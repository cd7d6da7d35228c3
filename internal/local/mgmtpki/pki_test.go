package mgmtpki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func leaf() Leaf {
	return Leaf{Name: "server", Subject: pkix.Name{CommonName: "server", Organization: []string{"o"}}, DNS: []string{"localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1).To4()}, Server: true}
}

func open(t *testing.T, dir string, now time.Time) *Bundle {
	t.Helper()
	b, err := Open(dir, now)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return b
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(data)
}

func TestEnsure(t *testing.T) {
	for name, tc := range map[string]struct {
		between func(t *testing.T, b *Bundle)
		leaf    func(*Leaf)
		later   time.Duration
		same    bool
	}{
		"When nothing changed it should keep the certificate":                  {same: true},
		"When it is about to expire it should issue a new one":                 {later: leafValidity - renewBefore + time.Hour},
		"When another address is wanted it should issue a new one":             {leaf: func(l *Leaf) { l.IPs = []net.IP{net.IPv4(10, 244, 0, 1).To4()} }},
		"When another group is wanted it should issue a new one":               {leaf: func(l *Leaf) { l.Subject.Organization = []string{"p"} }},
		"When a crash left no key it should issue a new one":                   {between: func(_ *testing.T, b *Bundle) { _ = os.Remove(b.Key("server")) }},
		"When the certificate is garbage it should issue a new one":            {between: func(_ *testing.T, b *Bundle) { _ = os.WriteFile(b.Cert("server"), []byte("x"), 0o600) }},
		"When the authority is gone it should make another and issue new ones": {between: func(_ *testing.T, b *Bundle) { _ = os.Remove(b.Cert("ca")) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			dir := t.TempDir()
			b := open(t, dir, noon)
			g.Expect(b.Ensure(leaf())).To(Succeed())
			first := content(t, b.Cert("server"))
			if tc.between != nil {
				tc.between(t, b)
			}
			l := leaf()
			if tc.leaf != nil {
				tc.leaf(&l)
			}
			b = open(t, dir, noon.Add(tc.later))
			g.Expect(b.Ensure(l)).To(Succeed())
			second := content(t, b.Cert("server"))
			g.Expect(second == first).To(Equal(tc.same))

			block, _ := pem.Decode([]byte(second))
			cert, err := x509.ParseCertificate(block.Bytes)
			g.Expect(err).NotTo(HaveOccurred())
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM([]byte(content(t, b.Cert("ca"))))
			_, err = cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: noon.Add(tc.later), DNSName: "localhost"})
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}

func TestClockAhead(t *testing.T) {
	const year = 365 * 24 * time.Hour
	// files are what a run leaves behind, with content.
	files := func(t *testing.T, dir string) map[string]string {
		t.Helper()
		entries, err := os.ReadDir(dir)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		out := map[string]string{}
		for _, e := range entries {
			out[e.Name()] = content(t, filepath.Join(dir, e.Name()))
		}
		return out
	}
	run := func(t *testing.T, dir string, now time.Time) map[string]string {
		t.Helper()
		NewWithT(t).Expect(open(t, dir, now).Ensure(leaf())).To(Succeed())
		return files(t, dir)
	}
	for name, ahead := range map[string]struct{ authority, leaf time.Duration }{
		"When everything was made while the clock was a year ahead it should all be made anew":                {authority: year, leaf: year},
		"When everything was made while the clock was an hour ahead it should all be made anew":               {authority: time.Hour, leaf: time.Hour},
		"When only the certificate was made while the clock was ahead it should be issued anew by the old CA": {leaf: year},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			dir := t.TempDir()
			open(t, dir, noon.Add(ahead.authority))
			before := run(t, dir, noon.Add(ahead.leaf))

			second := run(t, dir, noon)
			g.Expect(second["ca.crt"] == before["ca.crt"]).To(Equal(ahead.authority == 0))
			block, _ := pem.Decode([]byte(second["server.crt"]))
			cert, err := x509.ParseCertificate(block.Bytes)
			g.Expect(err).NotTo(HaveOccurred())
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM([]byte(second["ca.crt"]))
			_, err = cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: noon, DNSName: "localhost"})
			g.Expect(err).NotTo(HaveOccurred())

			g.Expect(run(t, dir, noon)).To(Equal(second), "the third run should write nothing")
			g.Expect(run(t, dir, noon.Add(-clockSkew))).To(Equal(second), "and no run should while the clock is put right by a little")
		})
	}
}

func TestFiles(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "pki")
	b := open(t, dir, noon)
	g.Expect(b.Ensure(Leaf{Name: "admin", Subject: pkix.Name{CommonName: "admin"}, Client: true})).To(Succeed())
	g.Expect(b.EnsureServiceAccountKey()).To(Succeed())
	g.Expect(b.EnsureKubeconfig(b.Kubeconfig("admin"), "admin", "https://10.244.0.1:6443")).To(Succeed())

	cfg, err := clientcmd.BuildConfigFromFlags("", b.Kubeconfig("admin"))
	g.Expect(err).NotTo(HaveOccurred(), "When a kubeconfig is written it should be readable")
	g.Expect(cfg.Host).To(Equal("https://10.244.0.1:6443"))

	entries, err := os.ReadDir(dir)
	g.Expect(err).NotTo(HaveOccurred())
	for _, e := range entries {
		info, err := e.Info()
		g.Expect(err).NotTo(HaveOccurred())
		if !strings.HasSuffix(e.Name(), ".crt") {
			g.Expect(info.Mode()).To(Equal(fs.FileMode(0o600)), "When %s is written nobody else should be able to read it", e.Name())
		}
	}

	before := content(t, b.Key("sa"))
	g.Expect(b.EnsureServiceAccountKey()).To(Succeed())
	g.Expect(content(t, b.Key("sa"))).To(Equal(before), "When the service account key is there it should be kept")
}
