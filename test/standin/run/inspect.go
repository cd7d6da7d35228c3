package run

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hcp.internal/platform/test/standin/checks"
	"hcp.internal/platform/test/standin/programs"
)

// maxFile bounds what is read of a file.
const maxFile = 4 << 20

// runner is one program at work.
type runner struct {
	programs.Program

	values checks.Values
	out    io.Writer
	root   string // where absolute paths begin; / but in tests

	config      checks.Config
	kubeconfigs []string
	authorities *x509.CertPool // of the hosted cluster, from its kubeconfig
	checked     []string
	apiServer   *apiServer
}

func (r *runner) path(name string) string { return filepath.Join(r.root, name) }

// read is a file that must be there and have content.
func (r *runner) read(name string) ([]byte, error) {
	f, err := os.Open(r.path(name))
	if err != nil {
		return nil, fmt.Errorf("file %s: %w; mount it", name, errors.Unwrap(err))
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, fmt.Errorf("file %s: %w; make it readable for the user of the container", name, errors.Unwrap(err))
	}
	if len(raw) == 0 {
		return nil, fmt.Errorf("file %s is empty; give it content", name)
	}
	r.checked = append(r.checked, name)
	return raw, nil
}

// inspect checks everything that was given.
func (r *runner) inspect() error {
	for _, f := range r.Files {
		if _, err := r.read(f); err != nil {
			return err
		}
	}
	if strings.Contains(r.Env, "KUBECONFIG") {
		r.kubeconfigs = append(r.kubeconfigs, os.Getenv("KUBECONFIG"))
	}
	flags := checks.ParseFlags(r.Flags)
	for _, name := range slices.Sorted(maps.Keys(r.values)) {
		for _, value := range r.values[name] {
			if err := r.inspectFlag(flags[name].Role, value); err != nil {
				return fmt.Errorf("flag --%s: %w", name, err)
			}
		}
	}
	if r.Config != "" {
		if err := r.inspectConfig(r.values.Get(r.Config)); err != nil {
			return err
		}
	}
	slices.Sort(r.kubeconfigs)
	r.kubeconfigs = slices.Compact(r.kubeconfigs)
	for _, k := range r.kubeconfigs {
		if err := r.inspectKubeconfig(k); err != nil {
			return fmt.Errorf("kubeconfig %s: %w", k, err)
		}
	}
	return r.inspectClientPairs(flags)
}

func (r *runner) inspectFlag(role checks.Role, value string) error {
	switch role {
	case checks.File, checks.Cert, checks.Key:
		_, err := r.read(value)
		return err
	case checks.CA:
		raw, err := r.read(value)
		if err != nil {
			return err
		}
		if _, err = checks.Authorities(raw); err != nil {
			return fmt.Errorf("file %s: %w", value, err)
		}
	case checks.Kubeconfig:
		r.kubeconfigs = append(r.kubeconfigs, value)
	case checks.Dir:
		info, err := os.Stat(r.path(value))
		if err != nil || !info.IsDir() {
			return fmt.Errorf("folder %s isn't there; mount it", value)
		}
	case checks.Output:
		return r.writable(value)
	default:
	}
	return nil
}

// writable begins a file, such as an audit log.
func (r *runner) writable(name string) error {
	f, err := os.OpenFile(r.path(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("file %s: %w; mount a folder that the user of the container may write to", name, errors.Unwrap(err))
	}
	r.checked = append(r.checked, name)
	return f.Close()
}

func (r *runner) inspectConfig(file string) error {
	raw, err := r.read(file)
	if err != nil {
		return err
	}
	if r.config, err = r.Read(raw); err != nil {
		return fmt.Errorf("file %s: %w", file, err)
	}
	for _, f := range r.config.Files {
		if _, err := r.read(f); err != nil {
			return fmt.Errorf("%s refers to it: %w", file, err)
		}
	}
	for _, f := range r.config.Authorities {
		raw, err := r.read(f)
		if err != nil {
			return fmt.Errorf("%s refers to it: %w", file, err)
		}
		if _, err := checks.Authorities(raw); err != nil {
			return fmt.Errorf("file %s: %w", f, err)
		}
	}
	for _, f := range r.config.Outputs {
		if err := r.writable(f); err != nil {
			return fmt.Errorf("%s refers to it: %w", file, err)
		}
	}
	r.kubeconfigs = append(r.kubeconfigs, r.config.Kubeconfigs...)
	return nil
}

func (r *runner) inspectKubeconfig(name string) error {
	raw, err := r.read(name)
	if err != nil {
		return err
	}
	k, err := checks.ReadKubeconfig(raw, filepath.Dir(name))
	if err != nil {
		return err
	}
	for _, f := range k.Files {
		if _, err := r.read(f); err != nil {
			return err
		}
	}
	if r.authorities == nil {
		r.authorities = k.Authorities
	}
	return nil
}

// clientPairs are flags of client certificates with those of their key and authority.
var clientPairs = [][3]string{{"client-cert-file", "client-key-file", "client-cacert-file"}, {"etcd-certfile", "etcd-keyfile", "etcd-cafile"}}

func (r *runner) inspectClientPairs(flags checks.Flags) error {
	pairs := [][3]string{{r.config.Etcd.CertFile, r.config.Etcd.KeyFile, r.config.Etcd.CA}}
	for _, p := range clientPairs {
		if _, ok := flags[p[0]]; ok {
			pairs = append(pairs, [3]string{r.values.Get(p[0]), r.values.Get(p[1]), r.values.Get(p[2])})
		}
	}
	for _, p := range pairs {
		if p[0] == "" {
			continue
		}
		raw, err := r.read(p[2])
		if err != nil {
			return err
		}
		roots, err := checks.Authorities(raw)
		if err != nil {
			return fmt.Errorf("file %s: %w", p[2], err)
		}
		if _, err := r.pair(p[0], p[1], roots, x509.ExtKeyUsageClientAuth, ""); err != nil {
			return err
		}
	}
	return nil
}

// pair reads a certificate and its key.
func (r *runner) pair(cert, key string, roots *x509.CertPool, usage x509.ExtKeyUsage, host string) (tls.Certificate, error) {
	certPEM, err := r.read(cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	keyPEM, err := r.read(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := checks.Pair(certPEM, keyPEM, roots, usage, host, time.Now())
	if err != nil {
		return pair, fmt.Errorf("%s: %w", cert, err)
	}
	return pair, nil
}
