package sharedingress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// patience is for what happens soon, on any machine.
const patience = 2 * time.Minute

// world are API servers of hosted clusters, each with a certificate of its own.
type world struct {
	*testing.T
	roots   *x509.CertPool
	key     *ecdsa.PrivateKey
	servers map[string]string // address by namespace/service
}

func newWorld(t *testing.T) *world {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &world{T: t, roots: x509.NewCertPool(), key: key, servers: map[string]string{}}
}

// serve starts an API server that answers with its name.
func (w *world) serve(backend string, hosts ...string) {
	w.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(w.servers) + 1)), Subject: pkix.Name{CommonName: backend}, DNSNames: hosts, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &w.key.PublicKey, w.key)
	if err != nil {
		w.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		w.Fatal(err)
	}
	w.roots.AddCert(cert)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			rw.WriteHeader(http.StatusOK)
			rw.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(rw, backend)
	}))
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: w.key}}}
	s.StartTLS()
	w.Cleanup(s.Close)
	w.servers[backend] = s.Listener.Addr().String()
}

func (w *world) server(namespace, service string, _ int32) (string, bool) {
	address, ok := w.servers[namespace+"/"+service]
	return address, ok
}

func (w *world) table(clusters []hyperv1.HostedCluster, before *Table) *Table {
	t, problems := MakeTable(clusters, w.server, before)
	if len(problems) > 0 {
		w.Fatal(problems)
	}
	return t
}

// start runs a proxy, and gives its addresses.
func (w *world) start(limits Limits) (p *Proxy, names, clusters string) {
	w.Helper()
	p = NewProxy(limits)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var at []string
	for _, withHeader := range []bool{false, true} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			w.Fatal(err)
		}
		at = append(at, l.Addr().String())
		running.Go(func() {
			if err := p.Serve(ctx, l, withHeader); err != nil {
				w.Error(err)
			}
		})
	}
	w.Cleanup(func() { stop(); running.Wait() })
	return p, at[0], at[1]
}

// get asks for a path by a server name; dial makes the connection.
func (w *world) get(name, path string, dial func() (net.Conn, error)) (string, error) {
	c := &http.Client{Timeout: patience, Transport: &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return dial() },
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: w.roots, ServerName: name},
		DisableKeepAlives: true,
	}}
	resp, err := c.Get("https://" + name + path)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return string(raw), err
}

func to(address string) func() (net.Conn, error) {
	return func() (net.Conn, error) { return net.Dial("tcp", address) }
}

// as begins with a PROXY header, as nodes do.
func as(address, cluster string) func() (net.Conn, error) {
	return func() (net.Conn, error) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_, err = conn.Write(Header(netip.MustParseAddrPort("10.0.0.7:4711"), netip.MustParseAddrPort("172.20.0.1:6443"), cluster))
		}
		return conn, err
	}
}

func cluster(i int, edit ...func(*hyperv1.HostedCluster)) hyperv1.HostedCluster {
	name := fmt.Sprintf("c%d", i)
	hc := hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(i) * time.Minute))}}
	hc.Spec.ClusterID = fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
	hc.Spec.KubeAPIServerDNSName = "api." + name + ".example.com"
	hc.Spec.Services = []hyperv1.ServicePublishingStrategyMapping{{Service: hyperv1.Konnectivity, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{
		Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: hyperv1.PublishedHostname("tunnel." + name + ".example.com")}}}}
	for _, e := range edit {
		e(&hc)
	}
	return hc
}

func limits() Limits {
	l := DefaultLimits()
	l.Begin, l.Dial, l.LameDuck, l.Drain = patience, patience, 0, 0
	return l
}

func TestTwelveClusters(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	var list []hyperv1.HostedCluster
	for i := range 12 {
		hc := cluster(i)
		list = append(list, hc)
		// kubernetes.default.svc is what nodes' clients ask for, in all clusters alike.
		w.serve("clusters-"+hc.Name+"/kube-apiserver", hc.Spec.KubeAPIServerDNSName, "kubernetes.default.svc")
		w.serve("clusters-"+hc.Name+"/konnectivity-server", "tunnel."+hc.Name+".example.com")
	}
	p, names, clusters := w.start(limits())
	p.Use(w.table(list, nil))
	var all sync.WaitGroup
	for i, hc := range list {
		all.Go(func() {
			for path, want := range map[string]string{hc.Spec.KubeAPIServerDNSName: "/kube-apiserver", "tunnel." + hc.Name + ".example.com": "/konnectivity-server"} {
				got, err := w.get(path, "/", to(names))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(got).To(Equal("clusters-"+hc.Name+want), "by name")
			}
			got, err := w.get("kubernetes.default.svc", "/", as(clusters, list[i].Spec.ClusterID))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal("clusters-"+hc.Name+"/kube-apiserver"), "by cluster")
		})
	}
	all.Wait()
	t.Run("When nothing has the name it should be closed without an answer", func(t *testing.T) {
		_, err := w.get("api.other.example.com", "/", to(names))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("EOF")))
	})
	t.Run("When no cluster has the ID it should be closed without an answer", func(t *testing.T) {
		_, err := w.get("kubernetes.default.svc", "/", as(clusters, "another"))
		NewWithT(t).Expect(err).To(HaveOccurred())
	})
	t.Run("When nodes come without a header they should be closed without an answer", func(t *testing.T) {
		_, err := w.get(list[0].Spec.KubeAPIServerDNSName, "/", to(clusters))
		NewWithT(t).Expect(err).To(HaveOccurred())
	})
	t.Run("When the client writes the name in capitals it should be led all the same", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(p.Table().Named("API.c3.Example.COM")).NotTo(BeNil())
	})
}

// Clusters come and go while connections are open and made: nobody's connection breaks.
func TestChangesUnderTraffic(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	stays := cluster(0)
	w.serve("clusters-c0/kube-apiserver", stays.Spec.KubeAPIServerDNSName)
	for i := range 20 {
		w.servers[fmt.Sprintf("clusters-c%d/kube-apiserver", i+1)] = "127.0.0.1:1"
	}
	p, names, _ := w.start(limits())
	p.Use(w.table([]hyperv1.HostedCluster{stays}, nil))
	raw, err := net.Dial("tcp", names)
	g.Expect(err).NotTo(HaveOccurred())
	long := tls.Client(raw, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: w.roots, ServerName: stays.Spec.KubeAPIServerDNSName})
	defer long.Close()
	ask := func() string {
		_, err := io.WriteString(long, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		g.Expect(err).NotTo(HaveOccurred())
		resp, err := http.ReadResponse(bufio.NewReader(long), nil)
		g.Expect(err).NotTo(HaveOccurred())
		body, err := io.ReadAll(resp.Body)
		g.Expect(err).NotTo(HaveOccurred())
		return string(body)
	}
	g.Expect(ask()).To(Equal("clusters-c0/kube-apiserver"))
	done := make(chan struct{})
	var asked atomic.Int64
	var traffic sync.WaitGroup
	for range 4 {
		traffic.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				got, err := w.get(stays.Spec.KubeAPIServerDNSName, "/", to(names))
				if err != nil || got != "clusters-c0/kube-apiserver" {
					t.Errorf("a connection broke: %q, %v", got, err)
					return
				}
				asked.Add(1)
			}
		})
	}
	for i := range 200 {
		list := []hyperv1.HostedCluster{stays}
		for k := range i % 20 {
			list = append(list, cluster(k+1))
		}
		p.Use(w.table(list, p.Table()))
		if i%50 == 0 {
			before := asked.Load()
			g.Eventually(asked.Load, patience).Should(BeNumerically(">", before))
		}
	}
	close(done)
	traffic.Wait()
	g.Expect(ask()).To(Equal("clusters-c0/kube-apiserver"), "the connection from before all changes")
	t.Logf("%d connections during 200 changes", asked.Load())
}

// poor is a listener of a machine that has no files left at first.
type poor struct {
	net.Listener
	refusals int
}

func (p *poor) Accept() (net.Conn, error) {
	if p.refusals--; p.refusals >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return p.Listener.Accept()
}

func TestBounds(t *testing.T) {
	w := newWorld(t)
	for i := range 2 {
		w.serve(fmt.Sprintf("clusters-c%d/kube-apiserver", i), cluster(i).Spec.KubeAPIServerDNSName)
	}
	list := []hyperv1.HostedCluster{cluster(0), cluster(1)}
	t.Run("When a tenant holds all of its connections another should get through", func(t *testing.T) {
		g := NewWithT(t)
		l := limits()
		l.PerBackend = 3
		p, names, _ := w.start(l)
		p.Use(w.table(list, nil))
		for range 3 {
			raw, err := net.Dial("tcp", names)
			g.Expect(err).NotTo(HaveOccurred())
			defer raw.Close()
			g.Expect(tls.Client(raw, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: w.roots, ServerName: "api.c0.example.com"}).Handshake()).To(Succeed())
		}
		_, err := w.get("api.c0.example.com", "/", to(names))
		g.Expect(err).To(HaveOccurred())
		p.Use(w.table(list, p.Table())) // a new table counts on
		_, err = w.get("api.c0.example.com", "/", to(names))
		g.Expect(err).To(HaveOccurred())
		got, err := w.get("api.c1.example.com", "/", to(names))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal("clusters-c1/kube-apiserver"))
	})
	t.Run("When a client says nothing it should be closed", func(t *testing.T) {
		g := NewWithT(t)
		l := limits()
		l.Begin = 50 * time.Millisecond
		p, names, clusters := w.start(l)
		p.Use(w.table(list, nil))
		for _, address := range []string{names, clusters} {
			conn, err := net.Dial("tcp", address)
			g.Expect(err).NotTo(HaveOccurred())
			defer conn.Close()
			g.Expect(conn.SetDeadline(time.Now().Add(patience))).To(Succeed())
			_, err = conn.Read(make([]byte, 1))
			g.Expect(err).To(MatchError(io.EOF))
		}
	})
	t.Run("When a client sends what is not TLS without end it should be closed", func(t *testing.T) {
		g := NewWithT(t)
		p, names, clusters := w.start(limits())
		p.Use(w.table(list, nil))
		for _, address := range []string{names, clusters} {
			conn, err := net.Dial("tcp", address)
			g.Expect(err).NotTo(HaveOccurred())
			defer conn.Close()
			g.Expect(conn.SetDeadline(time.Now().Add(patience))).To(Succeed())
			_, err = io.Copy(conn, io.LimitReader(rand.Reader, 1<<30))
			g.Expect(err).To(HaveOccurred())
		}
	})
	t.Run("When a client comes from elsewhere than allowed it should be closed, whatever its header says", func(t *testing.T) {
		g := NewWithT(t)
		p, names, clusters := w.start(limits())
		from := func(block string) []hyperv1.HostedCluster {
			return []hyperv1.HostedCluster{cluster(0, func(hc *hyperv1.HostedCluster) {
				hc.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{AllowedCIDRBlocks: []hyperv1.CIDRBlock{hyperv1.CIDRBlock(block)}}
			})}
		}
		p.Use(w.table(from("10.0.0.0/24"), nil)) // which holds the source that the header names
		_, err := w.get("api.c0.example.com", "/", to(names))
		g.Expect(err).To(HaveOccurred())
		_, err = w.get("api.c0.example.com", "/", as(clusters, cluster(0).Spec.ClusterID))
		g.Expect(err).To(HaveOccurred())
		p.Use(w.table(from("127.0.0.0/8"), p.Table()))
		_, err = w.get("api.c0.example.com", "/", to(names))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = w.get("api.c0.example.com", "/", as(clusters, cluster(0).Spec.ClusterID))
		g.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("When the machine has no file left for a connection it should go on with the next", func(t *testing.T) {
		g := NewWithT(t)
		p := NewProxy(limits())
		p.Use(w.table(list, nil))
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		g.Expect(err).NotTo(HaveOccurred())
		go func() { _ = p.Serve(t.Context(), &poor{Listener: listener, refusals: 3}, false) }()
		got, err := w.get("api.c0.example.com", "/", to(listener.Addr().String()))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal("clusters-c0/kube-apiserver"))
	})
	t.Run("When it is told to stop what is open should be closed after the time to drain", func(t *testing.T) {
		g := NewWithT(t)
		l := limits()
		l.Drain = time.Millisecond
		p := NewProxy(l)
		p.Use(w.table(list, nil))
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		g.Expect(err).NotTo(HaveOccurred())
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Serve(ctx, listener, false) }()
		raw, err := net.Dial("tcp", listener.Addr().String())
		g.Expect(err).NotTo(HaveOccurred())
		defer raw.Close()
		g.Expect(tls.Client(raw, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: w.roots, ServerName: "api.c0.example.com"}).Handshake()).To(Succeed())
		stop()
		g.Eventually(done, patience).Should(Receive(BeNil()))
		g.Expect(p.open.Load()).To(BeZero())
	})
}

func TestTable(t *testing.T) {
	everywhere := func(namespace, service string, _ int32) (string, bool) {
		return "192.0.2.1:443", !strings.HasPrefix(service, "ignition-server-proxy")
	}
	t.Run("When a cluster asks for the name or the ID of an older one it should not get it", func(t *testing.T) {
		g := NewWithT(t)
		thief := cluster(7, func(hc *hyperv1.HostedCluster) {
			hc.Spec.KubeAPIServerDNSName, hc.Spec.ClusterID = "API.C1.example.com", cluster(1).Spec.ClusterID
		})
		table, problems := MakeTable([]hyperv1.HostedCluster{thief, cluster(1)}, everywhere, nil)
		g.Expect(problems).To(HaveLen(2))
		g.Expect(table.Named("api.c1.example.com").Name).To(Equal("clusters-c1/kube-apiserver"))
		g.Expect(table.Cluster(cluster(1).Spec.ClusterID).Name).To(Equal("clusters-c1/kube-apiserver"))
		g.Expect(table.Named("tunnel.c7.example.com").Name).To(Equal("clusters-c7/konnectivity-server"))
	})
	t.Run("When an older cluster asks for a name that was accepted of another it should not get it", func(t *testing.T) {
		g := NewWithT(t)
		owner := cluster(7)
		owner.Status.Conditions = []metav1.Condition{{Type: hyperv1.ValidHostedClusterConfiguration, Status: metav1.ConditionTrue}}
		thief := cluster(1, func(hc *hyperv1.HostedCluster) { hc.Spec.KubeAPIServerDNSName = owner.Spec.KubeAPIServerDNSName })
		first, problems := MakeTable([]hyperv1.HostedCluster{thief, owner}, everywhere, nil)
		g.Expect(problems).To(HaveExactElements(ContainSubstring("clusters/c1: name api.c7.example.com is that of clusters/c7 already")))
		g.Expect(first.Named("api.c7.example.com").Name).To(Equal("clusters-c7/kube-apiserver"))

		// The owner's spec changes, and was not looked at yet.
		owner.Generation++
		table, _ := MakeTable([]hyperv1.HostedCluster{thief, owner}, everywhere, first)
		g.Expect(table.Named("api.c7.example.com").Name).To(Equal("clusters-c7/kube-apiserver"))
	})
	t.Run("When a Service is not there yet it should lead nowhere", func(t *testing.T) {
		g := NewWithT(t)
		table, problems := MakeTable([]hyperv1.HostedCluster{cluster(1)}, func(string, string, int32) (string, bool) { return "", false }, nil)
		g.Expect(problems).To(BeEmpty())
		g.Expect(table.Named("api.c1.example.com")).To(BeNil())
	})
	t.Run("When a cluster is being deleted its name should be free", func(t *testing.T) {
		g := NewWithT(t)
		gone := cluster(1, func(hc *hyperv1.HostedCluster) { now := metav1.NewTime(noon); hc.DeletionTimestamp = &now })
		next := cluster(2, func(hc *hyperv1.HostedCluster) { hc.Spec.KubeAPIServerDNSName = "api.c1.example.com" })
		table, problems := MakeTable([]hyperv1.HostedCluster{gone, next}, everywhere, nil)
		g.Expect(problems).To(BeEmpty())
		g.Expect(table.Named("api.c1.example.com").Name).To(Equal("clusters-c2/kube-apiserver"))
	})
	t.Run("When it is given in another order it should be the same", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			var list []hyperv1.HostedCluster
			for i := range 6 {
				list = append(list, cluster(i, func(hc *hyperv1.HostedCluster) {
					hc.Spec.KubeAPIServerDNSName = rapid.SampledFrom([]string{"a.example.com", "b.example.com", "c.example.com"}).Draw(t, "name")
				}))
			}
			one, _ := MakeTable(list, everywhere, nil)
			other, _ := MakeTable(rapid.Permutation(list).Draw(t, "order"), everywhere, nil)
			for _, name := range []string{"a.example.com", "b.example.com", "c.example.com"} {
				a, b := one.Named(name), other.Named(name)
				if (a == nil) != (b == nil) || a != nil && a.Name != b.Name {
					t.Fatalf("%s depends on the order", name)
				}
			}
		})
	})
}

func TestHeader(t *testing.T) {
	t.Run("When a header is written it should be read as it was", func(t *testing.T) {
		for _, from := range []string{"10.0.0.7:4711", "[fd00::7]:4711"} {
			g := NewWithT(t)
			source := netip.MustParseAddrPort(from)
			r := bufio.NewReader(io.MultiReader(bytes.NewReader(Header(source, source, "a-cluster")), strings.NewReader("rest")))
			h, err := readHeader(r)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(h).To(Equal(proxyHeader{Source: source, Cluster: "a-cluster"}))
			rest, err := io.ReadAll(r)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(rest)).To(Equal("rest"))
		}
	})
	t.Run("When anything else comes it should never crash, and take no more than it may", func(t *testing.T) {
		whole := Header(netip.MustParseAddrPort("10.0.0.7:4711"), netip.MustParseAddrPort("10.0.0.8:6443"), "a-cluster")
		rapid.Check(t, func(t *rapid.T) {
			raw := slices.Clone(whole)
			for range rapid.IntRange(1, 4).Draw(t, "changes") {
				raw[rapid.IntRange(12, len(raw)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
			}
			raw = raw[:rapid.IntRange(0, len(raw)).Draw(t, "length")]
			_, _ = readHeader(bufio.NewReader(bytes.NewReader(raw)))
			_, _, _ = serverName(bytes.NewReader(raw))
		})
	})
}

// BenchmarkConnections is what the proxy adds to a connection and a request, with a thousand hosted clusters in its table.
func BenchmarkConnections(b *testing.B) {
	t := &testing.T{}
	w := newWorld(t)
	w.serve("clusters-c0/kube-apiserver", "api.c0.example.com")
	list := []hyperv1.HostedCluster{cluster(0)}
	for i := range 1000 {
		w.servers[fmt.Sprintf("clusters-c%d/kube-apiserver", i+1)] = "127.0.0.1:1"
		list = append(list, cluster(i+1))
	}
	p := NewProxy(limits())
	p.Use(w.table(list, nil))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	go func() { _ = p.Serve(ctx, l, false) }()
	for name, address := range map[string]string{"direct": w.servers["clusters-c0/kube-apiserver"], "proxied": l.Addr().String()} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := w.get("api.c0.example.com", "/", to(address)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
