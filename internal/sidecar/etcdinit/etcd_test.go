package etcdinit

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"hcp.internal/platform/internal/testenv"
)

// etcds is a cluster of real etcd processes on loopback, each configured by what reset-member writes, with certificates like
// those of a control plane.
type etcds struct {
	t       *testing.T
	dir     string
	size    int
	peers   []int // ports
	clients []int
	running map[int]*testenv.Process
	pool    *x509.CertPool
}

func newEtcds(t *testing.T, size int) *etcds {
	t.Helper()
	ports, err := testenv.FreePorts(2 * size)
	if err != nil {
		t.Fatal(err)
	}
	c := &etcds{t: t, dir: t.TempDir(), size: size, peers: ports[:size], clients: ports[size:], running: map[int]*testenv.Process{}}
	c.certificates()
	t.Cleanup(func() {
		for i := range c.running {
			c.kill(i)
		}
	})
	return c
}

// certificates are the CA, one certificate for members, and one for clients, which names no host.
func (c *etcds) certificates() {
	now := time.Now()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(c.t, err)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "etcd-signer"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	must(c.t, err)
	c.pem("ca.crt", "CERTIFICATE", der)
	parsed, err := x509.ParseCertificate(der)
	must(c.t, err)
	c.pool = x509.NewCertPool()
	c.pool.AddCert(parsed)
	issue := func(name string, mutate func(*x509.Certificate)) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(c.t, err)
		cert := &x509.Certificate{
			SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
			KeyUsage: x509.KeyUsageDigitalSignature,
		}
		mutate(cert)
		der, err := x509.CreateCertificate(rand.Reader, cert, parsed, key.Public(), caKey)
		must(c.t, err)
		c.pem(name+".crt", "CERTIFICATE", der)
		raw, err := x509.MarshalECPrivateKey(key)
		must(c.t, err)
		c.pem(name+".key", "EC PRIVATE KEY", raw)
	}
	issue("member", func(cert *x509.Certificate) {
		cert.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
		cert.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	})
	issue("client", func(cert *x509.Certificate) { cert.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })
}

func (c *etcds) pem(name, kind string, der []byte) {
	must(c.t, os.WriteFile(c.path(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

func (c *etcds) path(parts ...string) string {
	return filepath.Join(append([]string{c.dir}, parts...)...)
}

func name(i int) string { return fmt.Sprintf("etcd-%d", i) }

func (c *etcds) url(port int) string { return fmt.Sprintf("https://127.0.0.1:%d", port) }

func (c *etcds) template(i int) string {
	var pairs []string
	for j := range c.size {
		pairs = append(pairs, name(j)+"="+c.url(c.peers[j]))
	}
	security := func(block string) string {
		return fmt.Sprintf("%s:\n  cert-file: %s\n  key-file: %s\n  trusted-ca-file: %s\n  client-cert-auth: true\n",
			block, c.path("member.crt"), c.path("member.key"), c.path("ca.crt"))
	}
	return strings.Join([]string{
		"name: $(TEST_MEMBER)",
		"data-dir: " + c.path(name(i), "data"),
		"initial-cluster: " + strings.Join(pairs, ","),
		"initial-cluster-token: demo",
		"initial-cluster-state: new",
		"listen-peer-urls: " + c.url(c.peers[i]),
		"initial-advertise-peer-urls: " + c.url(c.peers[i]),
		"listen-client-urls: " + c.url(c.clients[i]),
		"advertise-client-urls: " + c.url(c.clients[i]),
		"unsafe-no-fsync: true",
		"log-level: warn",
		security("client-transport-security") + security("peer-transport-security"),
	}, "\n")
}

// reset runs reset-member for a member and returns its log and how long it took.
func (c *etcds) reset(i int, mutate ...func(*ResetMember)) (string, time.Duration, error) {
	must(c.t, os.MkdirAll(c.path(name(i)), 0o700))
	must(c.t, os.WriteFile(c.path(name(i), "template.yaml"), []byte(c.template(i)), 0o600))
	c.t.Setenv("TEST_MEMBER", name(i))
	log := &bytes.Buffer{}
	r := ResetMember{
		Template: c.path(name(i), "template.yaml"), Out: c.path(name(i), "etcd.yaml"), StateFile: c.path(name(i), "state"),
		Endpoint: c.url(c.clients[(i+1)%c.size]), Log: log, retryEvery: 50 * time.Millisecond, giveUp: 20 * time.Second,
		TLS: TLSFiles{CA: c.path("ca.crt"), Cert: c.path("client.crt"), Key: c.path("client.key")},
	}
	for _, m := range mutate {
		m(&r)
	}
	began := time.Now()
	err := r.Run(c.t.Context())
	return log.String(), time.Since(began), err
}

// resetWithin runs reset-member until it takes less than a limit, as it does at the first try on a machine that has the time. What must
// not happen is that it waits for something that doesn't come; it would do that each time.
func (c *etcds) resetWithin(limit time.Duration, i int) {
	c.t.Helper()
	NewWithT(c.t).Eventually(func(g Gomega) time.Duration {
		_, took, err := c.reset(i)
		g.Expect(err).NotTo(HaveOccurred())
		return took
	}).WithTimeout(time.Minute).Should(BeNumerically("<", limit))
}

func (c *etcds) start(i int) {
	c.t.Helper()
	p, err := testenv.StartProcess(testenv.KubeBinary(c.t), c.path(name(i)), "etcd", nil, "--config-file="+c.path(name(i), "etcd.yaml"))
	must(c.t, err)
	c.running[i] = p
}

func (c *etcds) kill(i int) {
	c.running[i].Kill()
	delete(c.running, i)
}

func (c *etcds) client() *clientv3.Client {
	c.t.Helper()
	pair, err := tls.LoadX509KeyPair(c.path("client.crt"), c.path("client.key"))
	must(c.t, err)
	var endpoints []string
	for i := range c.running {
		endpoints = append(endpoints, c.url(c.clients[i]))
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, TLS: &tls.Config{RootCAs: c.pool, Certificates: []tls.Certificate{pair}}, Logger: zap.NewNop(),
	})
	must(c.t, err)
	c.t.Cleanup(func() { _ = client.Close() })
	return client
}

// healthy waits until every running member answers a linearizable read, and the cluster has want serving members.
func (c *etcds) healthy(want int) {
	c.t.Helper()
	g := NewWithT(c.t)
	client := c.client()
	g.Eventually(func() error {
		ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Second)
		defer cancel()
		list, err := client.MemberList(ctx)
		if err != nil {
			return err
		}
		serving := 0
		for _, m := range list.Members {
			if len(m.ClientURLs) > 0 && !m.IsLearner {
				serving++
			}
		}
		if serving != want || len(list.Members) != want {
			return fmt.Errorf("%d of %d members serve, want %d", serving, len(list.Members), want)
		}
		return nil
	}).WithTimeout(60*time.Second).Should(Succeed(), func() string {
		var logs string
		for i, p := range c.running {
			logs += name(i) + ": " + p.Tail() + "\n"
		}
		return logs
	})
}

func (c *etcds) put(key, value string) {
	c.t.Helper()
	NewWithT(c.t).Eventually(func() error { // a write is refused while a leader is elected
		_, err := c.client().Put(c.t.Context(), key, value)
		return err
	}).WithTimeout(time.Minute).Should(Succeed())
}

func (c *etcds) get(key string) string {
	c.t.Helper()
	got, err := c.client().Get(c.t.Context(), key)
	must(c.t, err)
	if len(got.Kvs) == 0 {
		return ""
	}
	return string(got.Kvs[0].Value)
}

func (c *etcds) state(i int) string {
	raw, err := os.ReadFile(c.path(name(i), "state"))
	must(c.t, err)
	return string(raw)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestResetMember(t *testing.T) {
	t.Run("When the first member of a single-member cluster starts it should not be delayed", func(t *testing.T) {
		g := NewWithT(t)
		c := newEtcds(t, 1)
		c.resetWithin(time.Second, 0)
		g.Expect(c.state(0)).To(Equal("new"))
		c.start(0)
		c.healthy(1)
	})
	t.Run("When addresses swallow packets the first start should take less than a second", func(t *testing.T) {
		g := NewWithT(t)
		deaf := deafAddress(t)
		g.Eventually(func(g Gomega) time.Duration {
			began := time.Now()
			open, err := listening(t.Context(), self, []Peer{self, {Name: "etcd-0", URL: "https://" + deaf}})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(open).To(BeEmpty())
			return time.Since(began)
		}).WithTimeout(time.Minute).Should(BeNumerically("<", time.Second))
	})
	t.Run("When three members start together they should found one cluster, each in less than a second", func(t *testing.T) {
		g := NewWithT(t)
		c := newEtcds(t, 3)
		for i := range 3 {
			c.resetWithin(time.Second, i)
			g.Expect(c.state(i)).To(Equal("new"))
		}
		for i := range 3 {
			c.start(i)
		}
		c.healthy(3)
	})
	t.Run("When a founder comes after the others it should still start as a founder", func(t *testing.T) {
		g := NewWithT(t)
		c := newEtcds(t, 3)
		for i := range 2 {
			_, _, err := c.reset(i)
			g.Expect(err).NotTo(HaveOccurred())
			c.start(i)
			if i == 0 {
				// One of three listens and has no quorum: the next must neither wait for it nor join it.
				g.Eventually(func() ([]Member, error) {
					peer := Peer{URL: c.url(c.peers[0])}
					return view(t.Context(), []Peer{peer}, TLSFiles{CA: c.path("ca.crt"), Cert: c.path("client.crt"), Key: c.path("client.key")})
				}).WithTimeout(30 * time.Second).Should(HaveLen(3))
			}
		}
		g.Eventually(func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := c.client().Put(ctx, "key", "before")
			return err
		}).WithTimeout(60 * time.Second).Should(Succeed())
		c.resetWithin(3*time.Second, 2)
		g.Expect(c.state(2)).To(Equal("new"))
		c.start(2)
		c.healthy(3)
		g.Expect(c.get("key")).To(Equal("before"))
	})
	t.Run("When a member lost its disk it should rejoin with the data of the others, also after being killed half-way", func(t *testing.T) {
		g := NewWithT(t)
		c := newEtcds(t, 3)
		for i := range 3 {
			_, _, err := c.reset(i)
			g.Expect(err).NotTo(HaveOccurred())
		}
		for i := range 3 {
			c.start(i)
		}
		c.healthy(3)
		c.put("key", "acknowledged")

		founded := func(r *ResetMember) { r.Marker = c.path("founded") }
		g.Expect(os.WriteFile(c.path("founded"), nil, 0o600)).To(Succeed())
		c.kill(2)
		g.Expect(os.RemoveAll(c.path("etcd-2", "data"))).To(Succeed())
		log, _, err := c.reset(2, founded)
		g.Expect(err).NotTo(HaveOccurred(), log)
		g.Expect(c.state(2)).To(Equal("existing"))
		// The init container is killed after the change and before etcd starts: the next run must find the same member again.
		log, _, err = c.reset(2, founded)
		g.Expect(err).NotTo(HaveOccurred(), log)
		g.Expect(log).To(ContainSubstring("added but never started"))
		c.start(2)
		c.healthy(3)
		c.kill(1) // the rejoined member's vote now counts
		g.Eventually(func() string { return c.get("key") }).WithTimeout(30 * time.Second).Should(Equal("acknowledged"))

		// With its data, a restart changes nothing.
		c.kill(2)
		log, _, err = c.reset(2, founded)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(log).To(ContainSubstring("there is data"))
	})
	t.Run("When the cluster was founded and nobody answers it should wait and then fail", func(t *testing.T) {
		g := NewWithT(t)
		c := newEtcds(t, 3)
		marker := c.path("founded")
		g.Expect(os.WriteFile(marker, nil, 0o600)).To(Succeed())
		_, _, err := c.reset(0, func(r *ResetMember) { r.Marker, r.giveUp = marker, 300*time.Millisecond })
		g.Expect(err).To(MatchError(context.DeadlineExceeded))
		g.Expect(c.path("etcd-0", "etcd.yaml")).NotTo(BeAnExistingFile())
	})
	t.Run("When the marker says that the cluster was not founded it should found it", func(t *testing.T) {
		g := NewWithT(t)
		c := newEtcds(t, 3)
		marker := c.path("founded")
		g.Expect(os.WriteFile(marker, []byte("false"), 0o600)).To(Succeed())
		log, _, err := c.reset(0, func(r *ResetMember) { r.Marker, r.giveUp = marker, 300*time.Millisecond })
		g.Expect(err).NotTo(HaveOccurred(), log)
		g.Expect(c.state(0)).To(Equal("new"))
	})
}

// deafAddress is a loopback address that neither accepts nor refuses: its listener's queue is full.
func deafAddress(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	must(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(t, syscall.Listen(fd, 0))
	bound, err := syscall.Getsockname(fd)
	must(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
	for range 8 {
		conn, err := net.DialTimeout("tcp", address, 100*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Fatal("the listener's queue doesn't fill up")
	return ""
}
