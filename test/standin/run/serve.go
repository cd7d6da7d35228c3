package run

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"hcp.internal/platform/internal/sidecar/kubeapi"
	"hcp.internal/platform/test/standin/checks"
	"hcp.internal/platform/test/standin/programs"
)

const (
	// apiPatience is how long the hosted API may take to accept a kubeconfig.
	apiPatience = 5 * time.Minute
	retry       = 2 * time.Second
	// resync is how often a program looks whether what it made is still so.
	resync = 30 * time.Second
)

// serve answers at the program's ports until ctx ends. It is ready once the hosted API has accepted its kubeconfigs.
func (r *runner) serve(ctx context.Context) error {
	ready := &atomic.Bool{}
	handler := r.handler(ready)
	failed := make(chan error, len(r.Listen)+1)
	for _, l := range r.Listen {
		listener, err := r.listen(ctx, l)
		if err != nil {
			return err
		}
		server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
		go func() { failed <- fmt.Errorf("serving at %s: %w", listener.Addr(), server.Serve(listener)) }()
		defer server.Close()
	}
	go func() {
		if err := r.work(ctx, ready); err != nil {
			failed <- err
		}
	}()
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// work is what the program does beside answering.
func (r *runner) work(ctx context.Context, ready *atomic.Bool) error {
	for _, k := range r.kubeconfigs {
		if err := r.callAPI(ctx, k); err != nil {
			return fmt.Errorf("kubeconfig %s: %w", k, err)
		}
	}
	if err := r.callEtcd(ctx); err != nil {
		return err
	}
	ready.Store(true)
	r.report()
	switch {
	case r.Name == "cluster-version-operator":
		return r.versionOperator(ctx)
	case r.Operator != "":
		return r.reportOperator(ctx)
	}
	return nil
}

// callAPI asks the hosted API who the kubeconfig speaks for, until it answers.
func (r *runner) callAPI(ctx context.Context, kubeconfig string) error {
	ctx, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	return r.until(ctx, func() error {
		client, err := kubeapi.FromKubeconfig(kubeconfig)
		if err != nil {
			return err
		}
		defer client.Close()
		review := map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
		var answer struct {
			Status struct {
				UserInfo struct {
					Username string `json:"username"`
				} `json:"userInfo"`
			} `json:"status"`
		}
		if err := client.Post(ctx, "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, &answer); err != nil {
			return err
		}
		r.checked = append(r.checked, kubeconfig+" is "+answer.Status.UserInfo.Username)
		return nil
	})
}

// until repeats what fails, and says each new reason once.
func (r *runner) until(ctx context.Context, do func() error) error {
	last := ""
	for {
		err := do()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s (%w)", last, ctx.Err())
		}
		if err.Error() != last {
			last = err.Error()
			fmt.Fprintf(r.out, "waiting: %s\n", last)
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}

// listen opens a port, with the certificate that the flags or the configuration name.
func (r *runner) listen(ctx context.Context, l programs.Listener) (net.Listener, error) {
	address, cert, key := l.Address, r.flagOr(l.Cert), r.flagOr(l.Key)
	if from := r.values.Get(l.From); l.From != "" && from != "" {
		address = strings.TrimPrefix(from, "https://")
		if !strings.Contains(from, ":") {
			address = ":" + from
		}
	}
	s := checks.Serving{MinTLSVersion: r.values.Get("tls-min-version"), CipherSuites: split(r.values.Get("tls-cipher-suites"))}
	if v := r.values.Get("listen-tls-min-version"); v != "" {
		s.MinTLSVersion = v
	}
	if v := r.values.Get("listen-cipher-suites"); v != "" {
		s.CipherSuites = split(v)
	}
	if l.Config {
		s = r.config.Serving
		if s.BindAddress != "" {
			address = s.BindAddress
		}
		if s.CertFile != "" {
			cert, key = s.CertFile, s.KeyFile
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w; another container of the pod has the port", address, err)
	}
	r.checked = append(r.checked, "port "+address)
	if cert == "" {
		return listener, nil
	}
	host := strings.ReplaceAll(l.Host, "NAMESPACE", namespace(r.path("/etc/resolv.conf")))
	pair, err := r.pair(cert, key, r.authorities, x509.ExtKeyUsageServerAuth, host)
	if err != nil {
		listener.Close()
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if s.MinTLSVersion != "" {
		if config.MinVersion, err = checks.MinVersion(s.MinTLSVersion); err != nil {
			return nil, err
		}
	}
	if config.CipherSuites, err = checks.CipherSuites(s.CipherSuites); err != nil {
		return nil, err
	}
	return tls.NewListener(listener, config), nil
}

func (r *runner) flagOr(value string) string {
	if name, ok := strings.CutPrefix(value, "-"); ok {
		return r.values.Get(name)
	}
	return value
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// namespace is that of the pod, of which the first search domain speaks: few of these pods have the token of a ServiceAccount.
func namespace(resolv string) string {
	raw, err := os.ReadFile(resolv)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(raw)) {
		if domains, ok := strings.CutPrefix(line, "search "); ok {
			name, _, _ := strings.Cut(strings.TrimSpace(domains), ".")
			return name
		}
	}
	return ""
}

// handler answers probes, scrapes and, where the program is an API server, the API.
func (r *runner) handler(ready *atomic.Bool) http.Handler {
	mux := http.NewServeMux()
	ok := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }
	for _, path := range []string{"/healthz", "/livez", "/health-check", "/health/liveness"} {
		mux.HandleFunc(path, ok)
	}
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, req *http.Request) {
		if !ready.Load() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		ok(w, req)
	})
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "standin_info{program=%q,image=%q,version=%q} 1\n", r.Name, os.Getenv(ImageVariable), os.Getenv(VersionVariable))
	})
	switch r.Name {
	case "cluster-etcd-operator":
		return r.etcdHealth()
	case "oauth-server":
		mux.HandleFunc("/.well-known/oauth-authorization-server", r.oauthMetadata)
	}
	if len(r.Groups) > 0 {
		mux.Handle("/apis", r.api())
		mux.Handle("/apis/", r.api())
	}
	return mux
}
