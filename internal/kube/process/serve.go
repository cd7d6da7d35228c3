package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Serve are the addresses that a process listens on, besides those of what it is there for.
type Serve struct {
	Metrics string // address of /metrics; 0: none
	// Secure says who may read the metrics, and by what connection.
	Secure MetricsSecurity
	Health string // address of /healthz and /readyz; empty or 0: none
	Pprof  string // address of profiles, on this host alone; empty or 0: none
	// Ready answers /readyz; nil: a process that runs is ready. How a cluster is that it serves is in the status of objects.
	Ready healthz.Checker
}

// MetricsSecurity protects metrics. The zero value serves them to everybody by plain HTTP, as scrapers of the published manifests expect.
type MetricsSecurity struct {
	// On serves metrics by HTTPS, to those only who have a token with which the API server lets them GET the non-resource URL /metrics.
	On bool
	// Certificate is a folder with tls.crt and tls.key, which are read again when they change. Empty: the process makes a certificate that nobody can
	// verify, anew each time that it starts.
	Certificate string
}

// AddFlags adds the flags, under the names that other operators have them by.
func (s *MetricsSecurity) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&s.On, "metrics-secure", s.On, "serve metrics by HTTPS, and only to those who may GET the non-resource URL /metrics; needs the rights of ClusterRole system:auth-delegator")
	fs.StringVar(&s.Certificate, "metrics-cert-path", s.Certificate, "folder with tls.crt and tls.key for --metrics-secure; empty: a self-signed certificate that is made at each start")
}

// metrics are the options of the server of metrics.
func (s Serve) metrics() (metricsserver.Options, error) {
	o := metricsserver.Options{BindAddress: s.Metrics}
	if !s.Secure.On {
		if s.Secure.Certificate != "" {
			return o, errors.New("--metrics-cert-path: metrics are served without a certificate; give --metrics-secure, too, or leave it out")
		}
		return o, nil
	}
	o.SecureServing, o.FilterProvider = true, filters.WithAuthenticationAndAuthorization
	o.CertDir = s.Secure.Certificate
	if o.CertDir == "" {
		return o, nil
	}
	// Without these files the library would quietly serve a certificate of its own, which no scraper that verifies takes.
	for _, name := range []string{"tls.crt", "tls.key"} {
		if _, err := os.Stat(filepath.Join(o.CertDir, name)); err != nil {
			return o, fmt.Errorf("--metrics-cert-path: reading the certificate of the metrics: %w", err)
		}
	}
	return o, nil
}

// loopback is an address for profiles. They hold what is in memory, and taking one costs processor time, so nobody but this host gets them; kubectl
// port-forward does. Without a host it is 127.0.0.1.
func loopback(address string) (string, error) {
	if address == "" || address == "0" {
		return "", nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("--pprof-addr %q: must be host:port or :port: %w", address, err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", fmt.Errorf("--pprof-addr %q: profiles are served to this host alone; write :%s, and reach a pod by kubectl port-forward", address, port)
	}
	return net.JoinHostPort(host, port), nil
}

// addChecks adds those of health. A process that answers at all is alive.
func addChecks(mgr manager.Manager, ready healthz.Checker) error {
	if ready == nil {
		ready = healthz.Ping
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ready", ready)); err != nil {
		return fmt.Errorf("adding the health checks: %w", err)
	}
	return nil
}
