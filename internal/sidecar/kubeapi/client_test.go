package kubeapi

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// kubeconfigOf is a kubeconfig for a test server, with more lines for its user.
func kubeconfigOf(server *httptest.Server, user string) []byte {
	ca := ""
	if server.Certificate() != nil {
		ca = base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	}
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: x
contexts:
- {name: other, context: {cluster: none, user: none}}
- {name: x, context: {cluster: c, user: u}}
clusters:
- name: c
  cluster: {server: %q, certificate-authority-data: %s}
users:
- name: u
  user: {%s}
`, server.URL, ca, user)
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	return server
}

func TestClient(t *testing.T) {
	discovery := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1":
			fmt.Fprint(w, `{"resources":[{"name":"pods/log","kind":"Pod","namespaced":true},{"name":"pods","kind":"Pod","namespaced":true},{"name":"nodes","kind":"Node"}]}`)
		case "/apis/apps/v1":
			fmt.Fprint(w, `{"resources":[{"name":"deployments","kind":"Deployment","namespaced":true}]}`)
		default:
			http.NotFound(w, r)
		}
	}
	t.Run("When an object's path is asked for it should find it by discovery", func(t *testing.T) {
		g := NewWithT(t)
		c, err := FromKubeconfigBytes(kubeconfigOf(serve(t, discovery), "token: t"))
		g.Expect(err).NotTo(HaveOccurred())
		for _, tc := range []struct{ version, kind, ns, want string }{
			{"v1", "Pod", "kube-system", "/api/v1/namespaces/kube-system/pods/x"},
			{"v1", "Pod", "", "/api/v1/namespaces/default/pods/x"},
			{"v1", "Node", "", "/api/v1/nodes/x"},
			{"apps/v1", "Deployment", "a", "/apis/apps/v1/namespaces/a/deployments/x"},
		} {
			path, err := c.ObjectPath(t.Context(), tc.version, tc.kind, tc.ns, "x")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(path).To(Equal(tc.want))
		}
		_, err = c.ObjectPath(t.Context(), "example.com/v1", "Thing", "", "x")
		g.Expect(IsNotFound(err)).To(BeTrue())
		_, err = c.ObjectPath(t.Context(), "v1", "Thing", "", "x")
		g.Expect(IsNotFound(err)).To(BeTrue())
		kinds, err := c.Kinds(t.Context(), "example.com/v1")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kinds).To(BeEmpty())
	})
	t.Run("When the server refuses it should give the server's reason", func(t *testing.T) {
		g := NewWithT(t)
		c, err := FromKubeconfigBytes(kubeconfigOf(serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"kind":"Status","reason":"AlreadyExists","message":"it is there, `+strings.Repeat("x", 2000)+`"}`)
		}), "token: t"))
		g.Expect(err).NotTo(HaveOccurred())
		err = c.Post(t.Context(), "/api/v1/namespaces", map[string]string{}, nil)
		g.Expect(IsAlreadyExists(err)).To(BeTrue())
		var status *StatusError
		g.Expect(errors.As(err, &status)).To(BeTrue())
		g.Expect(status.Reason).To(Equal("AlreadyExists"))
		g.Expect(len(err.Error())).To(BeNumerically("<", 600))
	})
	t.Run("When an answer is endless it should stop reading", func(t *testing.T) {
		g := NewWithT(t)
		c, err := FromKubeconfigBytes(kubeconfigOf(serve(t, func(w http.ResponseWriter, _ *http.Request) {
			for range 100 {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}), "token: t"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Get(t.Context(), "/api/v1", nil)).To(MatchError(ContainSubstring("longer than")))
	})
	t.Run("When a client is left behind it should end its connections by itself", func(t *testing.T) {
		g := NewWithT(t)
		c, err := FromKubeconfigBytes(kubeconfigOf(serve(t, discovery), "token: t"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.http.Transport.(*http.Transport).IdleConnTimeout).To(And(BeNumerically(">", 0), BeNumerically("<=", 5*time.Minute)))
	})
	t.Run("When the server redirects it should not follow with our token", func(t *testing.T) {
		g := NewWithT(t)
		asked := false
		other := serve(t, func(http.ResponseWriter, *http.Request) { asked = true })
		c, err := FromKubeconfigBytes(kubeconfigOf(serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}), "token: t"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Get(t.Context(), "/api/v1", nil)).To(MatchError(ContainSubstring("307")))
		g.Expect(asked).To(BeFalse())
	})
	t.Run("When the server's certificate is from another CA it should refuse to talk", func(t *testing.T) {
		g := NewWithT(t)
		server := serve(t, discovery)
		raw := strings.Replace(string(kubeconfigOf(server, "token: t")), "certificate-authority-data: ", "certificate-authority-data: '' #", 1)
		raw = strings.Replace(raw, " #", "} #", 1)
		c, err := FromKubeconfigBytes([]byte(raw))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Get(t.Context(), "/api/v1", nil)).To(MatchError(ContainSubstring("certificate")))
	})
	t.Run("When the token is in a file it should read it, relative to the kubeconfig", func(t *testing.T) {
		g := NewWithT(t)
		var got string
		server := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") })
		dir := t.TempDir()
		g.Expect(os.WriteFile(filepath.Join(dir, "token"), []byte("secret\n"), 0o600)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(dir, "kubeconfig"), kubeconfigOf(server, "tokenFile: token"), 0o600)).To(Succeed())
		c, err := FromKubeconfig(filepath.Join(dir, "kubeconfig"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Get(t.Context(), "/x", nil)).To(Succeed())
		g.Expect(got).To(Equal("Bearer secret"))
	})
}

func TestKubeconfig(t *testing.T) {
	server := serve(t, http.NotFound)
	for name, tc := range map[string]struct {
		raw  []byte
		want string
	}{
		"When a kubeconfig of the API names a file it should refuse":         {kubeconfigOf(server, "tokenFile: /etc/shadow"), `it names the file "/etc/shadow"`},
		"When a kubeconfig names a key file it should refuse":                {kubeconfigOf(server, "client-key: /etc/shadow"), `it names the file "/etc/shadow"`},
		"When a kubeconfig runs a program it should refuse":                  {kubeconfigOf(server, "exec: {command: sh}"), "come from a program"},
		"When a certificate has no key it should say so":                     {kubeconfigOf(server, "client-certificate-data: Zm9v"), "reading its client certificate"},
		"When the current context leads nowhere it should say so":            {[]byte("current-context: gone"), `current-context "gone" doesn't lead to a cluster`},
		"When it is no YAML it should say so":                                {[]byte("\t{"), "parsing"},
		"When the server is no URL it should quote it":                       {[]byte(strings.Replace(string(kubeconfigOf(server, "token: t")), "https://", "ftp://", 1)), "is not an http or https URL"},
		"When the CA is no certificate it should say so instead of using it": {[]byte("current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: 'https://a', certificate-authority-data: Zm9v}}]"), "holds no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := FromKubeconfigBytes(tc.raw)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
	t.Run("When not in a pod and without a kubeconfig it should say what to give", func(t *testing.T) {
		t.Setenv("KUBERNETES_SERVICE_HOST", "")
		_, err := FromKubeconfig("")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("give a kubeconfig")))
	})
}

func FuzzKubeconfig(f *testing.F) {
	f.Add([]byte("current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: 'https://a'}}]"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if c, err := FromKubeconfigBytes(raw); (c == nil) == (err == nil) {
			t.Fatalf("client %v with error %v", c, err)
		}
	})
}
