package run

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/test/standin/checks"
	"hcp.internal/platform/test/standin/programs"
)

// authority makes certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func (a authority) issue(t *testing.T, host string, usage x509.ExtKeyUsage) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
}

func kubeconfig(ca []byte, server string) string {
	return `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "` + server + `", certificate-authority-data: ` + base64.StdEncoding.EncodeToString(ca) + `}}]
users: [{name: u, user: {token: t}}]
`
}

func TestInspect(t *testing.T) {
	root, other := newAuthority(t), newAuthority(t)
	cert, key := root.issue(t, "svc", x509.ExtKeyUsageClientAuth)
	_, otherKey := root.issue(t, "svc", x509.ExtKeyUsageClientAuth)
	good := map[string]string{"/ca": string(root.pem), "/cert": string(cert), "/key": string(key), "/kube": kubeconfig(root.pem, "https://kube-apiserver:6443")}
	for what, tt := range map[string]struct {
		file, content string
		want          string
	}{
		"everything is right":                   {"", "", ""},
		"a file is missing":                     {"/key", "", "flag --etcd-keyfile: file /key: no such file or directory; mount it"},
		"a key is of another certificate":       {"/key", string(otherKey), "/cert: certificate and key don't belong together"},
		"an authority is another":               {"/ca", string(other.pem), "doesn't chain to the authority"},
		"an authority is none":                  {"/ca", "text", "file /ca: it has no certificate"},
		"a kubeconfig has no user":              {"/kube", strings.Replace(kubeconfig(root.pem, "https://a"), "name: u,", "name: v,", 1), "kubeconfig /kube: the kubeconfig's current context has no user"},
		"a kubeconfig's server isn't encrypted": {"/kube", kubeconfig(root.pem, "http://a"), "is no https address"},
		"a kubeconfig has no authority":         {"/kube", kubeconfig(nil, "https://a"), "certificate-authority-data"},
	} {
		t.Run("When "+what+" it should say so", func(t *testing.T) {
			g := NewWithT(t)
			dir := t.TempDir()
			for name, content := range good {
				if name == tt.file {
					content = tt.content
				}
				if content != "" {
					g.Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)).To(Succeed())
				}
			}
			p := programs.Program{Name: "p", Flags: "etcd-cafile=ca! etcd-certfile=cert! etcd-keyfile=key! kubeconfig=kubeconfig!"}
			values, err := p.Check([]string{"--etcd-cafile=/ca", "--etcd-certfile=/cert", "--etcd-keyfile=/key", "--kubeconfig=/kube"})
			g.Expect(err).NotTo(HaveOccurred())
			err = (&runner{Program: p, values: values, root: dir, out: io.Discard}).inspect()
			if tt.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tt.want)))
		})
	}
}

func TestPair(t *testing.T) {
	g := NewWithT(t)
	root := newAuthority(t)
	roots, err := checks.Authorities(root.pem)
	g.Expect(err).NotTo(HaveOccurred())
	cert, key := root.issue(t, "svc", x509.ExtKeyUsageServerAuth)
	_, err = checks.Pair(cert, key, roots, x509.ExtKeyUsageServerAuth, "svc", time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	_, err = checks.Pair(cert, key, roots, x509.ExtKeyUsageServerAuth, "other", time.Now())
	g.Expect(err).To(MatchError(ContainSubstring("doesn't speak for other")))
	_, err = checks.Pair(cert, key, roots, x509.ExtKeyUsageClientAuth, "", time.Now())
	g.Expect(err).To(MatchError(ContainSubstring("doesn't chain")), "When a certificate is for servers it should not do for clients")
	_, err = checks.Pair(cert, key, roots, x509.ExtKeyUsageServerAuth, "svc", time.Now().Add(48*time.Hour))
	g.Expect(err).To(MatchError(ContainSubstring("isn't now; renew it")))
}

func TestAPI(t *testing.T) {
	g := NewWithT(t)
	r := &runner{Program: programs.Program{Groups: []string{"oauth.openshift.io"}}}
	server := httptest.NewServer(r.api())
	defer server.Close()
	var accept string
	ask := func(method, path, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		g.Expect(err).NotTo(HaveOccurred())
		req.Header.Set("Content-Type", "application/apply-patch+yaml")
		req.Header.Set("Accept", accept)
		resp, err := http.DefaultClient.Do(req)
		g.Expect(err).NotTo(HaveOccurred())
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		g.Expect(err).NotTo(HaveOccurred())
		return resp.StatusCode, string(raw)
	}
	const clients = "/apis/oauth.openshift.io/v1/oauthclients"
	accept = "application/json"
	code, body := ask("GET", "/apis/oauth.openshift.io/v1", "")
	g.Expect(code).To(Equal(200))
	g.Expect(body).To(ContainSubstring("OAuthClient"), "When an aggregator asks what there is it should be told")
	code, _ = ask("POST", clients, `{"metadata":{"name":"a"},"grantMethod":"auto"}`)
	g.Expect(code).To(Equal(201))
	code, _ = ask("POST", clients, `{"metadata":{"name":"a"}}`)
	g.Expect(code).To(Equal(409))
	_, first := ask("GET", clients+"/a", "")
	_, again := ask("PATCH", clients+"/a", `grantMethod: auto`)
	g.Expect(again).To(Equal(first), "When a patch changes nothing the version should stay")
	_, changed := ask("PATCH", clients+"/a", `{"grantMethod":"prompt"}`)
	g.Expect(changed).To(ContainSubstring("prompt"))
	_, list := ask("GET", clients, "")
	g.Expect(list).To(And(ContainSubstring("OAuthClientList"), ContainSubstring("prompt")))
	_, events := ask("GET", clients+"?watch=1&resourceVersion=1&timeoutSeconds=1", "")
	g.Expect(strings.Count(events, `"type"`)).To(Equal(2), "When a watch begins it should be told of what happened since")
	accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	_, events = ask("GET", clients+"?watch=1&resourceVersion=1&timeoutSeconds=1", "")
	g.Expect(events).To(And(ContainSubstring("PartialObjectMetadata"), Not(ContainSubstring("grantMethod"))), "When only metadata is asked for it should be given")
	accept = "application/json"
	code, _ = ask("DELETE", clients+"/a", "")
	g.Expect(code).To(Equal(200))
	code, _ = ask("GET", clients+"/a", "")
	g.Expect(code).To(Equal(404))
	code, _ = ask("GET", "/apis/route.openshift.io/v1/routes", "")
	g.Expect(code).To(Equal(404), "When a group is another server's it should not be served")
}

func TestNamespace(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "resolv.conf")
	g.Expect(os.WriteFile(file, []byte("nameserver 10.0.0.10\nsearch clusters-demo.svc.cluster.local svc.cluster.local\noptions ndots:5\n"), 0o600)).To(Succeed())
	g.Expect(namespace(file)).To(Equal("clusters-demo"))
}
