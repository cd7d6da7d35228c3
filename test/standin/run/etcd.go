package run

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"hcp.internal/platform/test/standin/checks"
)

// etcdAccess is how the program reaches etcd; no URL: not at all.
func (r *runner) etcdAccess() checks.Etcd {
	if r.config.Etcd.CertFile != "" {
		return r.config.Etcd
	}
	if v := r.values.Get("etcd-servers"); v != "" {
		return checks.Etcd{URLs: strings.Split(v, ","), CA: r.values.Get("etcd-cafile"), CertFile: r.values.Get("etcd-certfile"), KeyFile: r.values.Get("etcd-keyfile")}
	}
	if v := r.values.Get("target"); v != "" {
		return checks.Etcd{URLs: []string{v}, CA: r.values.Get("client-cacert-file"), CertFile: r.values.Get("client-cert-file"), KeyFile: r.values.Get("client-key-file")}
	}
	if v := r.values.Get("endpoints"); v != "" {
		return checks.Etcd{URLs: []string{v}, CA: r.values.Get("cacert"), CertFile: r.values.Get("cert"), KeyFile: r.values.Get("key")}
	}
	return checks.Etcd{}
}

// callEtcd asks the etcd of an API server for its health, until it answers. That of its own pod may come later than what looks at it.
func (r *runner) callEtcd(ctx context.Context) error {
	access := r.etcdAccess()
	if len(access.URLs) == 0 || r.Image == "cluster-etcd-operator" || r.Image == "etcd" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	err := r.until(ctx, func() error { return r.etcdAnswers(ctx, access) })
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	r.checked = append(r.checked, "etcd at "+access.URLs[0])
	return nil
}

func (r *runner) etcdAnswers(ctx context.Context, access checks.Etcd) error {
	raw, err := r.read(access.CA)
	if err != nil {
		return err
	}
	roots, err := checks.Authorities(raw)
	if err != nil {
		return err
	}
	pair, err := r.pair(access.CertFile, access.KeyFile, roots, x509.ExtKeyUsageClientAuth, "")
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
	}}
	for _, url := range access.URLs {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", http.NoBody)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		var health struct {
			Health string `json:"health"`
		}
		err = json.NewDecoder(io.LimitReader(resp.Body, 4096)).Decode(&health)
		resp.Body.Close()
		if err != nil || health.Health != "true" {
			return fmt.Errorf("%s says %d, health %q", url, resp.StatusCode, health.Health)
		}
	}
	return nil
}

// etcdHealth answers probes of etcd's pod with what etcd says.
func (r *runner) etcdHealth() http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, req *http.Request) {
		if err := (&runner{Program: r.Program, root: r.root}).etcdAnswers(req.Context(), r.etcdAccess()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, "ok")
	}
	mux.HandleFunc("/readyz", answer)
	mux.HandleFunc("/healthz", answer)
	return mux
}
