package konnectivity

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// TestMain gives what is waited for the time that it takes on a busy machine; gomega's default is one second.
func TestMain(m *testing.M) {
	SetDefaultEventuallyTimeout(30 * time.Second)
	os.Exit(m.Run())
}

// authority issues certificates for one test.
type authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	next int64
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir(), next: 1}
	a.key = a.newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "konnectivity-signer"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.write("ca.crt", "CERTIFICATE", der)
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

func (a *authority) write(name, kind string, der []byte) string {
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// issue writes a certificate for 127.0.0.1 with the common name.
func (a *authority) issue(name string, usage x509.ExtKeyUsage) Files {
	a.t.Helper()
	a.next++
	key := a.newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.next), Subject: pkix.Name{CommonName: name, Organization: []string{"kubernetes"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{usage}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	base := fmt.Sprintf("%s-%d", name, a.next)
	return Files{
		Cert: a.write(base+".crt", "CERTIFICATE", der), Key: a.write(base+".key", "EC PRIVATE KEY", keyDER), CA: filepath.Join(a.dir, "ca.crt"),
	}
}

// world is servers and agents of one test.
type world struct {
	t      testing.TB
	ca     *authority
	client Files
}

func newWorld(t testing.TB) *world {
	ca := newAuthority(t)
	return &world{t: t, ca: ca, client: ca.issue(clientName, x509.ExtKeyUsageClientAuth)}
}

type running struct {
	*Server
	front, back string // addresses
	stop        context.CancelFunc
	done        chan struct{}
}

func (w *world) server(change ...func(*ServerOptions)) *running {
	w.t.Helper()
	return w.serverOn(nil, change...)
}

// serverOn takes agents on a listener that several servers may share, as they do behind one address.
func (w *world) serverOn(agents net.Listener, change ...func(*ServerOptions)) *running {
	w.t.Helper()
	o := ServerOptions{
		ID: "server-0", Count: 1,
		Front: w.ca.issue("konnectivity-server-local", x509.ExtKeyUsageServerAuth), Agents: w.ca.issue("konnectivity-server", x509.ExtKeyUsageServerAuth),
		FrontNames: []string{clientName}, AgentNames: []string{agentName},
		KeepAlive: time.Second, MaxAgents: 50, MaxTunnels: 100, Log: slog.New(slog.DiscardHandler), Now: time.Now,
	}
	for _, c := range change {
		c(&o)
	}
	s, err := NewServer(o)
	if err != nil {
		w.t.Fatal(err)
	}
	front := listen(w.t)
	if agents == nil {
		agents = listen(w.t)
	}
	ctx, stop := context.WithCancel(w.t.Context())
	r := &running{Server: s, front: front.Addr().String(), back: agents.Addr().String(), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		_ = s.Serve(ctx, front, agents)
	}()
	w.t.Cleanup(func() { stop(); <-r.done })
	return r
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func anywhere(string, string) error { return nil } // targets of tests are on loopback

func (w *world) agent(address string, change ...func(*AgentOptions)) (*Agent, context.CancelFunc) {
	w.t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		w.t.Fatal(err)
	}
	o := AgentOptions{
		ID: "agent", Host: host, Files: w.ca.issue(agentName, x509.ExtKeyUsageClientAuth), Identifiers: "default-route=true",
		KeepAlive: time.Second, SyncInterval: 20 * time.Millisecond, SyncIntervalCap: 200 * time.Millisecond,
		Log: slog.New(slog.DiscardHandler), Now: time.Now, Allow: anywhere,
	}
	if _, err := fmt.Sscan(port, &o.Port); err != nil {
		w.t.Fatal(err)
	}
	for _, c := range change {
		c(&o)
	}
	a, err := NewAgent(o)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = a.Run(ctx) }()
	w.t.Cleanup(func() { stop(); <-done })
	return a, stop
}

// connected is the answer to CONNECT. Its body is read unless there is a tunnel.
type connected struct {
	StatusCode   int
	Status, Body string
}

// dial is what kube-apiserver does: CONNECT over mutual TLS.
func (w *world) dial(front, target string, as ...Files) (net.Conn, connected, error) {
	w.t.Helper()
	files := w.client
	if len(as) > 0 {
		files = as[0]
	}
	pair, pool, err := read(files)
	if err != nil {
		w.t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", front, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{*pair}, ServerName: "127.0.0.1"})
	if err != nil {
		return nil, connected{}, err
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", target); err != nil {
		return nil, connected{}, err
	}
	reader := bufio.NewReader(conn)
	resp, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, connected{}, err
	}
	answer := connected{StatusCode: resp.StatusCode, Status: resp.Status}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		answer.Body = string(body)
	}
	return readFirst{conn, reader}, answer, nil
}

// mustDial waits until a tunnel can be made.
func (w *world) mustDial(front, target string) net.Conn {
	w.t.Helper()
	var conn net.Conn
	NewWithT(w.t).Eventually(func() error {
		c, resp, err := w.dial(front, target)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", resp.Status, resp.Body)
		}
		conn = c
		return nil
	}).WithTimeout(30 * time.Second).Should(Succeed())
	return conn
}

// echo returns what it gets, and ends when its client has nothing more to say.
func echo(t testing.TB) string {
	t.Helper()
	return serveTCP(t, func(c net.Conn) { _, _ = io.Copy(c, c) })
}

func serveTCP(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	l := listen(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); serve(c) }()
		}
	}()
	return l.Addr().String()
}
