package haproxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/testenv"
)

const (
	root    = "../.."
	goldens = root + "/internal/cli/render/testdata/openshift/golden"
	// wait is for a program to be up; it takes a moment unless the machine is busy.
	wait = time.Minute
)

// program is HAProxy.
func program(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("haproxy")
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/haproxy"); err != nil {
			t.Fatal("there is no haproxy: run hack/install-deps.sh as root")
		}
	}
	return path
}

// check has HAProxy read a configuration. Names are not resolved: they are of other networks.
func check(t *testing.T, config string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program(t), "-dr", "-c", "-f", file).CombinedOutput()
	return string(out), err
}

// configurations are the files of HAProxy in the ConfigMaps of golden files, by where they are.
func configurations(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, dir := range []string{goldens, root + "/internal/configoperator/openshift/testdata"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for part := range strings.SplitSeq("\n"+string(raw), "\n---\n") {
				cm := &corev1.ConfigMap{}
				if yaml.Unmarshal([]byte(part), cm) == nil && cm.Kind == "ConfigMap" && cm.Data["haproxy.cfg"] != "" {
					found[path+" "+cm.Name] = cm.Data["haproxy.cfg"]
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	found["nodes"] = onNodes(t)
	return found
}

// onNodes is the file by which pods on a node reach the API.
func onNodes(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(root + "/internal/nodepool/apiproxy/testdata/direct.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Spec struct {
			Config struct {
				Storage struct {
					Files []struct {
						Path     string                  `json:"path"`
						Contents struct{ Source string } `json:"contents"`
					} `json:"files"`
				} `json:"storage"`
			} `json:"config"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	for _, f := range config.Spec.Config.Storage.Files {
		if _, content, ok := strings.Cut(f.Contents.Source, ";base64,"); ok && filepath.Base(f.Path) == "haproxy.cfg" {
			text, err := base64.StdEncoding.DecodeString(content)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
	t.Fatal("nodes have no haproxy.cfg")
	return ""
}

// golden is an object of a golden file.
func golden[T any](t *testing.T, path string, into *T) *T {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(goldens, path))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
	return into
}

// change replaces a part of a configuration that must be there: an address of a cluster by one of this machine.
func change(t *testing.T, config string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(config, pairs[i]) {
			t.Fatalf("the configuration has no %q:\n%s", pairs[i], config)
		}
	}
	return strings.NewReplacer(pairs...).Replace(config)
}

// run starts a program and prints what it said when the test fails.
func run(t *testing.T, name string, args ...string) {
	t.Helper()
	p, err := testenv.StartProcess(name, t.TempDir(), "haproxy", nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Log(p.Tail())
		}
	})
}

func ports(t *testing.T, n int) []int {
	t.Helper()
	free, err := testenv.FreePorts(n)
	if err != nil {
		t.Fatal(err)
	}
	return free
}

// server answers over TLS with its own name.
func server(t *testing.T, name string) (address string) {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, name+" for "+r.TLS.ServerName)
	}))
	t.Cleanup(s.Close)
	roots.AddCert(s.Certificate())
	return s.Listener.Addr().String()
}

// roots are the certificates of the servers. httptest's own is for example.com.
var roots = x509.NewCertPool()

// ask sends a request to an address with a name in the handshake. The certificate is one of the servers' whatever the name: nothing between ends TLS.
func ask(ctx context.Context, address, name string) (string, error) {
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			secure := tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12, // VerifyConnection does, but for the name
				VerifyConnection: func(s tls.ConnectionState) error {
					_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots})
					return err
				}})
			return secure, secure.HandshakeContext(ctx)
		},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+name+"/", http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := (&http.Client{Transport: transport, Timeout: wait}).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestConfigurations(t *testing.T) {
	g := NewWithT(t)
	all := configurations(t)
	g.Expect(len(all)).To(BeNumerically(">=", 3), "the router's, the forwarder's of metrics, and that of nodes")
	for where, config := range all {
		t.Run("When HAProxy reads "+strings.TrimPrefix(where, root+"/")+" it should find no mistake", func(t *testing.T) {
			out, err := check(t, config)
			NewWithT(t).Expect(err).NotTo(HaveOccurred(), out)
		})
	}
	t.Run("When there is a mistake it should be found", func(t *testing.T) {
		_, err := check(t, "frontend x\n  bnid :1\n")
		NewWithT(t).Expect(err).To(HaveOccurred())
	})
}

func TestRouter(t *testing.T) {
	t.Run("When two names are asked for through the router each should lead to its own server, and another to the API", func(t *testing.T) {
		g := NewWithT(t)
		config := golden(t, "plain/router/configmap_router.yaml", &corev1.ConfigMap{}).Data["haproxy.cfg"]
		free := ports(t, 2)
		front, health := fmt.Sprintf("127.0.0.1:%d", free[0]), fmt.Sprintf("127.0.0.1:%d", free[1])
		config = change(t, config, "maxconn 20000", "maxconn 200", // as many files as this machine may have open
			":::8443 v4v6", front, ":::9444 v4v6", health, "172.30.0.11:443", server(t, "ignition"), "172.30.0.12:6443", server(t, "api"))
		file := filepath.Join(t.TempDir(), "haproxy.cfg")
		g.Expect(os.WriteFile(file, []byte(config), 0o600)).To(Succeed())
		run(t, program(t), "-f", file)
		g.Eventually(func() (int, error) {
			resp, err := http.Get("http://" + health + "/haproxy_ready")
			if err != nil {
				return 0, err
			}
			return resp.StatusCode, resp.Body.Close()
		}, wait, 20*time.Millisecond).Should(Equal(http.StatusOK), "the probe of the component")
		for name, want := range map[string]string{
			"ignition.demo.example.com":  "ignition for ignition.demo.example.com",
			"IGNITION.demo.example.com":  "ignition for IGNITION.demo.example.com",
			"api.demo.hypershift.local":  "api for api.demo.hypershift.local",
			"somebody.else.example.com":  "api for somebody.else.example.com",
			"xignition.demo.example.com": "api for xignition.demo.example.com",
		} {
			g.Expect(ask(t.Context(), front, name)).To(Equal(want))
		}
		t.Run("When somebody speaks no TLS he should reach nobody", func(t *testing.T) {
			g := NewWithT(t)
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", front)
			g.Expect(err).NotTo(HaveOccurred())
			defer conn.Close()
			_, err = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(conn.SetReadDeadline(time.Now().Add(wait))).To(Succeed())
			got, _ := io.ReadAll(conn)
			g.Expect(string(got)).NotTo(ContainSubstring("ignition"))
		})
	})
}

func TestIgnitionServerProxy(t *testing.T) {
	t.Run("When a machine asks the proxy of the ignition server it should reach the server, with TLS on both sides", func(t *testing.T) {
		g := NewWithT(t)
		container := golden(t, "plain/ignition-server-proxy/deployment_ignition-server-proxy.yaml", &appsv1.Deployment{}).Spec.Template.Spec.Containers[0]
		dir := t.TempDir()
		backend := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "ignition "+r.URL.Path+" "+r.Header.Get("Authorization"))
		}))
		t.Cleanup(backend.Close)
		pair := backend.TLS.Certificates[0]
		roots.AddCert(backend.Certificate())
		certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: backend.Certificate().Raw})
		key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
		g.Expect(err).NotTo(HaveOccurred())
		for name, content := range map[string][]byte{"tls.crt": certificate, "ca.crt": certificate, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})} {
			g.Expect(os.WriteFile(filepath.Join(dir, name), content, 0o600)).To(Succeed())
		}
		front := fmt.Sprintf("127.0.0.1:%d", ports(t, 1)[0])
		g.Expect(container.Command).To(Equal([]string{"/bin/bash"}))
		script := change(t, container.Args[1], "/etc/ssl/serving-cert", dir, "/etc/ssl/root-ca", dir, "/tmp/", dir+"/", ":::8443 v4v6", front,
			"ignition-server:443", backend.Listener.Addr().String(), "haproxy -f", "exec "+program(t)+" -f")
		run(t, "/bin/bash", container.Args[0], script)
		client := &http.Client{Timeout: wait, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12}}}
		get := func() (string, error) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+front+"/ignition", http.NoBody)
			if err != nil {
				return "", err
			}
			req.Header.Set("Authorization", "Bearer token")
			resp, err := client.Do(req)
			if err != nil {
				return "", err
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			return string(body), err
		}
		g.Eventually(get, wait, 20*time.Millisecond).Should(Equal("ignition /ignition Bearer token"))
	})
}
