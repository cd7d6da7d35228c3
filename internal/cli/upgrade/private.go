package upgrade

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/capigroup/proxy"
	"hcp.internal/platform/internal/cli/connect"
)

// clients see objects of Cluster API in their standard groups, for hosted clusters whose objects are stored there and for those where they are not.
type clients struct {
	standard client.Client
	// private is nil with privateErr.
	private    client.Client
	privateErr error
}

func newClients(config *rest.Config) (*clients, error) {
	scheme := connect.Scheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	standard, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	c := &clients{standard: standard}
	c.private, c.privateErr = privateClient(config, scheme)
	return c, nil
}

func privateClient(config *rest.Config, scheme *runtime.Scheme) (client.Client, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the certificates of the kubeconfig: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the server of the kubeconfig: %w", err)
	}
	up, err := proxy.NewUpstream(proxy.UpstreamConfig{URL: base.String(), TLS: tls, Wrap: func(next http.RoundTripper) http.RoundTripper {
		wrapped, err := rest.HTTPWrappersForConfig(config, next)
		if err != nil {
			return refused{err}
		}
		return wrapped
	}})
	if err != nil {
		return nil, err
	}
	through := &rest.Config{Host: "http://127.0.0.1", Transport: within{proxy.New(proxy.Config{Upstream: up})}, QPS: -1, UserAgent: config.UserAgent, Timeout: config.Timeout}
	return client.New(through, client.Options{Scheme: scheme})
}

type refused struct{ err error }

func (r refused) RoundTrip(*http.Request) (*http.Response, error) { return nil, r.err }

// within answers requests by a handler of this process, so that no other process can ask it.
type within struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (h within) RoundTrip(req *http.Request) (*http.Response, error) {
	out, in := io.Pipe()
	w := &answer{header: http.Header{}, body: in, begun: make(chan struct{})}
	call := req.Clone(req.Context())
	call.RequestURI, call.RemoteAddr, call.Host = req.URL.RequestURI(), "127.0.0.1:0", "127.0.0.1"
	path := *req.URL
	path.Scheme, path.Host = "", "" // as servers see it
	call.URL = &path
	if call.Body == nil {
		call.Body = http.NoBody
	}
	go func() {
		err := io.EOF
		defer func() {
			if recover() != nil { // httputil.ReverseProxy ends broken answers so
				err = io.ErrUnexpectedEOF
			}
			w.WriteHeader(http.StatusOK)
			in.CloseWithError(err)
		}()
		h.ServeHTTP(w, call)
	}()
	select {
	case <-w.begun:
	case <-req.Context().Done():
		return nil, errors.Join(req.Context().Err(), out.Close())
	}
	return &http.Response{StatusCode: w.code, Status: http.StatusText(w.code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: out, ContentLength: -1, Request: req}, nil
}

// answer is an http.ResponseWriter whose body is read by somebody else.
type answer struct {
	header, sent http.Header
	code         int
	body         *io.PipeWriter
	begun        chan struct{}
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(code int) {
	if a.code == 0 && code >= http.StatusOK {
		a.code, a.sent = code, a.header.Clone()
		close(a.begun)
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// Flush implements http.Flusher: nothing is kept back.
func (a *answer) Flush() {}
