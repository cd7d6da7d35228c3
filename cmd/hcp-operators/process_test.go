package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/testenv"
)

// asProgram is the variable that makes the test binary be hcp-operators, with the arguments that it holds, one a line. So the tests run programs as
// processes, as they are linked, and need no build of them.
const asProgram = "HCP_OPERATORS_TEST_ARGUMENTS"

// withLease is the variable with the times of its lease.
const withLease = "HCP_OPERATORS_TEST_LEASE"

// Leases of a program: how long it lasts, when who has it gives it up, and how often it is renewed. None is so short that a process of a busy machine
// loses it by chance.
const (
	short = "20s 18s 1s"
	eager = "137s 107s 1s" // as in production, but asked for each second
)

func TestMain(m *testing.M) {
	if lines := os.Getenv(asProgram); lines != "" {
		for i, text := range strings.Fields(os.Getenv(withLease)) {
			d, err := time.ParseDuration(text)
			if err != nil {
				panic(err)
			}
			*[]*time.Duration{&process.LeaseDuration, &process.RenewDeadline, &process.RetryPeriod}[i] = d
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err := run(ctx, append([]string{"hcp-operators"}, strings.Split(lines, "\n")...))
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, "Error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(testenv.Main(m))
}

// request is one that a process sent.
type request struct {
	at         time.Time
	verb, path string
	away       bool // the way was cut
}

// write says that it would change something. Leases and events are not what processes contend for, and reviews change nothing.
func (r request) write() bool {
	switch r.verb {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return !strings.Contains(r.path, "/leases") && !strings.Contains(r.path, "/events") && !strings.Contains(r.path, "authorization.k8s.io")
	}
	return false
}

// link is the way of one process to the API server. It can be cut, and knows what went over it.
type link struct {
	server *http.Server
	url    string

	mu       sync.Mutex
	cut      bool
	whole    context.Context // ends when the way is cut
	breakOff context.CancelFunc
	requests []request
}

func newLink(t testing.TB, env *testenv.Env) *link {
	t.Helper()
	target, err := url.Parse(env.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(env.Config.CertData, env.Config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(env.CA)
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}},
		FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // a connection that breaks, as it would without a proxy
	}
	l := &link{}
	l.whole, l.breakOff = context.WithCancel(context.Background())
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.url = "http://" + listener.Addr().String()
	l.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		cut, whole := l.cut, l.whole
		l.requests = append(l.requests, request{at: time.Now(), verb: r.Method, path: r.URL.Path, away: cut})
		l.mu.Unlock()
		if cut {
			panic(http.ErrAbortHandler)
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(whole, cancel)()
		proxy.ServeHTTP(w, r.WithContext(ctx))
		if whole.Err() != nil {
			panic(http.ErrAbortHandler)
		}
	})}
	go func() { _ = l.server.Serve(listener) }()
	t.Cleanup(func() { _ = l.server.Close() })
	return l
}

// away cuts the way to the API server, or mends it. Answers that are on their way, watches among them, break off.
func (l *link) away(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	if cut {
		l.breakOff()
		l.whole, l.breakOff = context.WithCancel(context.Background())
	}
}

// sent are requests since then.
func (l *link) sent(since time.Time, want func(request) bool) (out []request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.requests {
		if r.at.After(since) && want(r) {
			out = append(out, r)
		}
	}
	return out
}

// program is a running process of ours.
type program struct {
	*exec.Cmd
	*link
	name  string
	ended chan error
}

// start runs a program until the test ends, which is that of the pod name. KUBECONFIG in its arguments is a file that leads over the link.
func start(t *testing.T, l *link, lease, name string, args ...string) *program {
	t.Helper()
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: l.url}}, Contexts: map[string]*clientcmdapi.Context{"x": {Cluster: "c"}}, CurrentContext: "x",
	}, kubeconfig); err != nil {
		t.Fatal(err)
	}
	output, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	p := &program{Cmd: exec.Command(os.Args[0]), link: l, name: name, ended: make(chan error, 1)}
	p.Env = append(os.Environ(), asProgram+"="+strings.ReplaceAll(strings.Join(args, "\n"), "KUBECONFIG", kubeconfig), "POD_NAME="+name, withLease+"="+lease)
	p.Stdout, p.Stderr = output, output
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.Wait() }()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		if text, err := os.ReadFile(output.Name()); err == nil && t.Failed() {
			t.Logf("%s said:\n%.10000s", name, text)
		}
	})
	return p
}
