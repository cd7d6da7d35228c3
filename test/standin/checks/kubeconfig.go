package checks

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// Kube is what a kubeconfig says of its current context.
type Kube struct {
	Server      string
	Authorities *x509.CertPool
	// Files are the files that it refers to, absolute.
	Files []string
}

// ReadKubeconfig checks a kubeconfig that is in folder dir: a current context whose cluster is an https server with authorities, and a
// user with a credential.
func ReadKubeconfig(raw []byte, dir string) (Kube, error) {
	var file struct {
		CurrentContext string `json:"current-context"`
		Contexts       []struct {
			Name    string
			Context struct{ Cluster, User string }
		}
		Clusters []struct {
			Name    string
			Cluster struct {
				Server string
				CAData []byte `json:"certificate-authority-data"`
				CA     string `json:"certificate-authority"`
			}
		}
		Users []struct {
			Name string
			User struct {
				CertData  []byte `json:"client-certificate-data"`
				KeyData   []byte `json:"client-key-data"`
				Cert      string `json:"client-certificate"`
				Key       string `json:"client-key"`
				Token     string `json:"token"`
				TokenFile string `json:"tokenFile"`
			}
		}
	}
	if err := yaml.Unmarshal(raw, &file); err != nil {
		return Kube{}, fmt.Errorf("the kubeconfig doesn't parse: %w", err)
	}
	var k Kube
	var user string
	for _, c := range file.Contexts {
		if c.Name != file.CurrentContext {
			continue
		}
		user = c.Context.User
		for _, cluster := range file.Clusters {
			if cluster.Name != c.Context.Cluster {
				continue
			}
			k.Server = cluster.Cluster.Server
			if cluster.Cluster.CA != "" {
				k.Files = append(k.Files, absolute(dir, cluster.Cluster.CA))
			} else {
				pool, err := Authorities(cluster.Cluster.CAData)
				if err != nil {
					return k, fmt.Errorf("certificate-authority-data of the kubeconfig: %w", err)
				}
				k.Authorities = pool
			}
		}
	}
	if k.Server == "" {
		return k, fmt.Errorf("the kubeconfig's current context %q has no cluster with a server", file.CurrentContext)
	}
	if u, err := url.Parse(k.Server); err != nil || u.Scheme != "https" {
		return k, fmt.Errorf("the kubeconfig's server %q is no https address", k.Server)
	}
	for _, u := range file.Users {
		if u.Name != user {
			continue
		}
		credential := u.User.Token != "" || u.User.TokenFile != "" || (len(u.User.CertData) > 0 && len(u.User.KeyData) > 0) || (u.User.Cert != "" && u.User.Key != "")
		if !credential {
			return k, fmt.Errorf("user %q of the kubeconfig has neither a token nor a certificate with its key", user)
		}
		for _, f := range []string{u.User.TokenFile, u.User.Cert, u.User.Key} {
			if f != "" {
				k.Files = append(k.Files, absolute(dir, f))
			}
		}
		return k, nil
	}
	return k, errors.New("the kubeconfig's current context has no user")
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
