// Command plain is Go's own reverse proxy, as what the proxy of Cluster API's objects is compared with.
//
//	plain LISTEN UPSTREAM CA-FILE
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "plain:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: plain LISTEN UPSTREAM CA-FILE")
	}
	target, err := url.Parse(args[1])
	if err != nil {
		return fmt.Errorf("parsing the upstream: %w", err)
	}
	ca, err := os.ReadFile(args[2])
	if err != nil {
		return fmt.Errorf("reading the CA: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	proxy := &httputil.ReverseProxy{
		Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:  &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, DisableCompression: true, MaxIdleConnsPerHost: 64},
		BufferPool: &buffers{},
	}
	server := &http.Server{Addr: args[0], Handler: proxy, ReadHeaderTimeout: 30 * time.Second}
	return server.ListenAndServe()
}

// buffers are of the size that ReverseProxy takes by itself.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(p []byte) { b.pool.Put(&p) }
