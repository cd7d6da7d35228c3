package kubeapi

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// maxKubeconfig bounds a kubeconfig; one with embedded certificates has about 10 KiB.
const maxKubeconfig = 1 << 20

// serviceAccountDir is where every pod finds the credentials of its ServiceAccount.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// kubeconfig is the part of the published file format that the kubeconfigs of a control plane use. Programs that fetch
// credentials (exec, auth-provider) are refused, because they can't exist in an image without programs.
type kubeconfig struct {
	CurrentContext string `json:"current-context"`
	Contexts       []struct {
		Name    string `json:"name"`
		Context struct {
			Cluster string `json:"cluster"`
			User    string `json:"user"`
		} `json:"context"`
	} `json:"contexts"`
	Clusters []struct {
		Name    string  `json:"name"`
		Cluster cluster `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string `json:"name"`
		User user   `json:"user"`
	} `json:"users"`
}

type cluster struct {
	Server        string `json:"server"`
	CAFile        string `json:"certificate-authority"`
	CAData        []byte `json:"certificate-authority-data"`
	Insecure      bool   `json:"insecure-skip-tls-verify"`
	TLSServerName string `json:"tls-server-name"`
}

type user struct {
	CertFile  string         `json:"client-certificate"`
	CertData  []byte         `json:"client-certificate-data"`
	KeyFile   string         `json:"client-key"`
	KeyData   []byte         `json:"client-key-data"`
	Token     string         `json:"token"`
	TokenFile string         `json:"tokenFile"`
	Exec      map[string]any `json:"exec"`
	Provider  map[string]any `json:"auth-provider"`
}

// connection is what a client needs to know.
type connection struct {
	base  *url.URL
	tls   *tls.Config
	token string
}

// parseKubeconfig resolves the current context. Files are named relative to dir; an empty dir forbids files, because the
// content came from an object of the API and must not make us read what it chooses.
func parseKubeconfig(raw []byte, dir string) (*connection, error) {
	file := kubeconfig{}
	if err := yaml.Unmarshal(raw, &file); err != nil {
		return nil, fmt.Errorf("parsing: %w", err)
	}
	var c *cluster
	var u user
	for _, ctx := range file.Contexts {
		if ctx.Name != file.CurrentContext {
			continue
		}
		for i := range file.Clusters {
			if file.Clusters[i].Name == ctx.Context.Cluster {
				c = &file.Clusters[i].Cluster
			}
		}
		for i := range file.Users {
			if file.Users[i].Name == ctx.Context.User {
				u = file.Users[i].User
			}
		}
	}
	if c == nil {
		return nil, fmt.Errorf("its current-context %q doesn't lead to a cluster", file.CurrentContext)
	}
	if u.Exec != nil || u.Provider != nil {
		return nil, errors.New("its user's credentials come from a program, which is not supported here; use a certificate or a token")
	}
	return connect(*c, u, dir)
}

func connect(c cluster, u user, dir string) (*connection, error) {
	base, err := url.Parse(c.Server)
	if err != nil || base.Host == "" || (base.Scheme != "https" && base.Scheme != "http") {
		return nil, fmt.Errorf("its server %q is not an http or https URL", c.Server)
	}
	conn := &connection{base: base, tls: &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: c.TLSServerName,
		InsecureSkipVerify: c.Insecure, //nolint:forbidigo // because the kubeconfig says so
	}}
	var files [4][]byte
	for i, f := range []struct {
		data []byte
		name string
	}{{c.CAData, c.CAFile}, {u.CertData, u.CertFile}, {u.KeyData, u.KeyFile}, {[]byte(u.Token), u.TokenFile}} {
		if files[i], err = dataOrFile(f.data, f.name, dir); err != nil {
			return nil, err
		}
	}
	if ca := files[0]; len(ca) > 0 {
		conn.tls.RootCAs = x509.NewCertPool()
		if !conn.tls.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("its certificate-authority holds no certificate")
		}
	}
	if len(files[1]) > 0 || len(files[2]) > 0 {
		pair, err := tls.X509KeyPair(files[1], files[2])
		if err != nil {
			return nil, fmt.Errorf("reading its client certificate: %w", err)
		}
		conn.tls.Certificates = []tls.Certificate{pair}
	}
	conn.token = strings.TrimSpace(string(files[3]))
	return conn, nil
}

func dataOrFile(data []byte, name, dir string) ([]byte, error) {
	if len(data) > 0 || name == "" {
		return data, nil
	}
	if dir == "" {
		return nil, fmt.Errorf("it names the file %q; credentials must be embedded as data", name)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	return readFile(name)
}

// inCluster is the API server of the cluster that the pod runs in, as its ServiceAccount.
func inCluster() (*connection, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("not in a pod (KUBERNETES_SERVICE_HOST is not set): give a kubeconfig")
	}
	return connect(
		cluster{Server: "https://" + net.JoinHostPort(host, port), CAFile: "ca.crt"}, user{TokenFile: "token"}, serviceAccountDir)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxKubeconfig+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxKubeconfig {
		return nil, fmt.Errorf("%s is longer than %d bytes", path, maxKubeconfig)
	}
	return raw, nil
}
