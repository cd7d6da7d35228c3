//go:build e2e && install

package e2e

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/local/components"
	"hcp.internal/platform/internal/local/network"
)

// site is where the page is followed: a management cluster, and a registry that wants a password.
type site struct {
	*testing.T
	registry string // host and port
}

// Who may use the registry.
const siteUser, sitePassword = "robot", "correct horse battery staple"

// newSite starts the registry, which is the local one behind a door of its own, and lets the nodes of the management cluster reach it: it has no
// certificate, and their network policies know the registry of the demo cluster's release only.
func newSite(t *testing.T) *site {
	t.Helper()
	g := NewWithT(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(network.NodeIP, "0"))
	g.Expect(err).NotTo(HaveOccurred())
	s := &site{T: t, registry: l.Addr().String()}
	registry := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: components.RegistryHost})
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != siteUser || password != sitePassword {
			w.Header().Set("WWW-Authenticate", `Basic realm="site"`)
			w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		r.Header.Del("Authorization")
		registry.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(l) }() // until it is closed
	t.Cleanup(func() { _ = server.Close() })

	_, port, err := net.SplitHostPort(s.registry)
	g.Expect(err).NotTo(HaveOccurred())
	management().applyYAML(t, fmt.Sprintf(sitePolicy, network.NodeIP, port))
	t.Cleanup(func() {
		_, _ = management().try(t, "delete", "networkpolicy", "-n", demoNamespace, "site")
		_, _ = management().try(t, "delete", "namespace", "named", "--wait=false")
	})
	workers := strings.Fields(management().run(t, "get", "pods", "-n", demoNamespace, "-l", "infrastructure.cluster.x-k8s.io/local-machine", "-o", "name"))
	g.Expect(workers).NotTo(BeEmpty())
	for _, worker := range workers {
		management().run(t, "exec", "-n", demoNamespace, worker, "--", "bash", "-c", s.trusted())
	}
	return s
}

// sitePolicy lets workers of the demo cluster call the registry, and the machine of namespace named call workers, who publish the hosted cluster's API.
const sitePolicy = `
apiVersion: v1
kind: Namespace
metadata: {name: named}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: site, namespace: clusters-demo}
spec:
  podSelector: {matchExpressions: [{key: infrastructure.cluster.x-k8s.io/local-machine, operator: Exists}]}
  policyTypes: [Ingress, Egress]
  ingress:
  - from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: named}}}]
  egress:
  - to: [{ipBlock: {cidr: %s/32}}]
    ports: [{protocol: TCP, port: %s}]
`

// trusted are commands that let the container runtime of a machine use the registry without TLS.
func (s *site) trusted() string {
	return fmt.Sprintf("mkdir -p /etc/containerd/certs.d/%[1]s && printf 'server = \"http://%[1]s\"\\n\\n[host.\"http://%[1]s\"]\\n  capabilities = [\"pull\", \"resolve\"]\\n' > /etc/containerd/certs.d/%[1]s/hosts.toml", s.registry)
}

// credentials are those for the registry, as docker login writes them.
func (s *site) credentials() []byte {
	return fmt.Appendf(nil, `{"auths":{"%s":{"auth":"%s"}}}`, s.registry, base64.StdEncoding.EncodeToString([]byte(siteUser+":"+sitePassword)))
}

// objects are what an installation may leave in the management cluster that belongs to no namespace.
func (s *site) objects() string {
	s.Helper()
	return hosted().run(s.T, "get", "crds,namespaces,clusterroles,clusterrolebindings,priorityclasses,validatingadmissionpolicies,validatingadmissionpolicybindings,persistentvolumes", "-o", "name")
}

// nothingLeft expects no more than there was before.
func (s *site) nothingLeft(before string) {
	s.Helper()
	eventually(s.T, 5*time.Minute, "what is left", func() error {
		var left []string
		for name := range strings.SplitSeq(s.objects(), "\n") {
			// The namespace of the HostedCluster was the user's.
			if !strings.Contains(before+"\n", name+"\n") && name != "namespace/clusters" {
				left = append(left, name)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("%s", strings.Join(left, ", "))
		}
		return nil
	})
	hosted().run(s.T, "delete", "namespace", "clusters", "--ignore-not-found", "--wait=false") // for who comes next
}
