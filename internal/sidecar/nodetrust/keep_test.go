package nodetrust

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	contract "hcp.internal/platform/internal/contract/nodetrust"
)

// node is the folders of a node, and an API server that it talks to.
type node struct {
	keeper
	server    *httptest.Server
	authority []byte
	restarts  int
	fail      error
	out       bytes.Buffer
}

func newNode(t *testing.T) *node {
	t.Helper()
	dir := t.TempDir()
	n := &node{server: httptest.NewTLSServer(nil)}
	t.Cleanup(n.server.Close)
	n.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: n.server.Certificate().Raw})
	n.keeper = keeper{
		trust: filepath.Join(dir, "trust"), kubernetesDir: filepath.Join(dir, "kubernetes"), kubeletDir: filepath.Join(dir, "kubelet"), verify: verify, log: &n.out,
		restart: func(context.Context, string) error {
			if n.fail == nil {
				n.restarts++
			}
			return n.fail
		},
	}
	for _, d := range []string{n.trust, n.kubernetesDir, n.kubeletDir} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	kube, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"default": {Server: n.server.URL, CertificateAuthorityData: []byte("old")}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"default": {ClientCertificate: "/var/lib/kubelet/pki/kubelet-client-current.pem"}},
		Contexts:       map[string]*clientcmdapi.Context{"default": {Cluster: "default", AuthInfo: "default"}},
		CurrentContext: "default",
	})
	if err != nil {
		t.Fatal(err)
	}
	n.put(t, filepath.Join(n.kubeletDir, kubeconfig), string(kube))
	n.put(t, filepath.Join(n.kubernetesDir, kubeconfig), string(kube))
	n.put(t, filepath.Join(n.kubernetesDir, kubeletCA), "old")
	n.give(t, n.authority, n.authority)
	return n
}

func (n *node) put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// give is what the ConfigMap of the hosted cluster holds.
func (n *node) give(t *testing.T, root, kubelet []byte) {
	t.Helper()
	n.put(t, filepath.Join(n.trust, contract.RootKey), string(root))
	n.put(t, filepath.Join(n.trust, contract.KubeletKey), string(kubelet))
	n.hash = contract.Hash(root, kubelet)
}

func (n *node) trusted(t *testing.T, path string) []byte {
	t.Helper()
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if config.AuthInfos["default"].ClientCertificate == "" || config.CurrentContext != "default" {
		t.Fatal("the rest of the kubeconfig was changed")
	}
	return config.Clusters["default"].CertificateAuthorityData
}

func TestKeep(t *testing.T) {
	t.Run("When authorities are new the kubelet should get them in all its files and start anew once", func(t *testing.T) {
		g := NewWithT(t)
		n := newNode(t)
		for range 3 {
			g.Expect(n.keep(t.Context())).To(Succeed())
		}
		g.Expect(n.restarts).To(Equal(1))
		for _, dir := range []string{n.kubeletDir, n.kubernetesDir} {
			path := filepath.Join(dir, kubeconfig)
			g.Expect(n.trusted(t, path)).To(Equal(n.authority))
			info, err := os.Stat(path)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
		}
		g.Expect(os.ReadFile(filepath.Join(n.kubernetesDir, kubeletCA))).To(Equal(n.authority))
		entries, err := os.ReadDir(n.kubeletDir)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(entries).To(HaveLen(1), "nothing is left beside")
	})
	t.Run("When the kubelet does not start it should not be ready, and be tried again, also by another process", func(t *testing.T) {
		g := NewWithT(t)
		n := newNode(t)
		n.fail = errors.New("no kubelet")
		g.Expect(n.keep(t.Context())).To(MatchError(ContainSubstring("starting the kubelet anew: no kubelet")))
		g.Expect(n.keep(t.Context())).NotTo(Succeed(), "the files are right, the process is not")
		n.fail = nil
		g.Expect(n.keep(t.Context())).To(Succeed())
		g.Expect(n.keep(t.Context())).To(Succeed())
		g.Expect(n.restarts).To(Equal(1))
	})
	t.Run("When the API server would not be accepted the kubelet should keep what it has", func(t *testing.T) {
		g := NewWithT(t)
		n := newNode(t)
		other := httptest.NewUnstartedServer(nil)
		cert := selfSigned(t)
		other.Close()
		n.give(t, cert, cert)
		err := n.keep(t.Context())
		g.Expect(err).To(MatchError(ContainSubstring("the kubelet keeps those that it has")))
		g.Expect(n.trusted(t, filepath.Join(n.kubeletDir, kubeconfig))).To(Equal([]byte("old")))
		g.Expect(os.ReadFile(filepath.Join(n.kubernetesDir, kubeletCA))).To(Equal([]byte("old")))
		g.Expect(n.restarts).To(BeZero())
	})
	t.Run("When the API server can't be reached it should go on, and say so", func(t *testing.T) {
		g := NewWithT(t)
		n := newNode(t)
		n.server.Close()
		g.Expect(n.keep(t.Context())).To(Succeed())
		g.Expect(n.out.String()).To(ContainSubstring("unchecked"))
		g.Expect(n.restarts).To(Equal(1))
	})
	t.Run("When the folder still holds the former ones it should wait", func(t *testing.T) {
		g := NewWithT(t)
		n := newNode(t)
		n.hash = "0123456789abcdef"
		g.Expect(n.keep(t.Context())).To(MatchError(ContainSubstring("0123456789abcdef is waited for")))
		g.Expect(n.restarts).To(BeZero())
	})
	t.Run("When there are no certificates the kubelet should keep what it has", func(t *testing.T) {
		g := NewWithT(t)
		n := newNode(t)
		n.give(t, []byte("x"), n.authority)
		g.Expect(n.keep(t.Context())).To(MatchError(ContainSubstring("without certificates")))
	})
	t.Run("When the node has other files it should say that they are to be replaced by hand", func(t *testing.T) {
		g := NewWithT(t)
		n := newNode(t)
		g.Expect(os.Remove(filepath.Join(n.kubernetesDir, kubeletCA))).To(Succeed())
		g.Expect(n.keep(t.Context())).To(MatchError(ContainSubstring("by hand")))
		g.Expect(n.restarts).To(BeZero())
	})
	t.Run("When the node has the file of an OpenShift payload it should be replaced, too", func(t *testing.T) {
		g := NewWithT(t)
		n := newNode(t)
		n.put(t, filepath.Join(n.kubernetesDir, bootCA), "old")
		g.Expect(n.keep(t.Context())).To(Succeed())
		g.Expect(os.ReadFile(filepath.Join(n.kubernetesDir, bootCA))).To(Equal(n.authority))
	})
}

func selfSigned(t *testing.T) []byte {
	t.Helper()
	// A certificate of another server: that of a pool that signs nothing here.
	other := httptest.NewUnstartedServer(nil)
	other.StartTLS()
	defer other.Close()
	cert := *other.Certificate()
	raw := bytes.Clone(cert.Raw)
	raw[len(raw)-1] ^= 1 // another signature: no longer the certificate of the server
	if _, err := x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

func TestKubeletOf(t *testing.T) {
	g := NewWithT(t)
	proc := t.TempDir()
	process := func(pid int, stat string) {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		g.Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(dir, "stat"), []byte(stat), 0o644)).To(Succeed())
	}
	g.Expect(kubeletOf(proc)).To(BeZero())
	process(7, "7 (kubelet) S 6 7 7")
	g.Expect(kubeletOf(proc)).To(BeZero(), "a pod has a program of that name")
	process(8, "8 (x) 1 (kubelet) S 6 7")
	process(9, "9 (kubelet) Z 1 7 7")
	g.Expect(kubeletOf(proc)).To(BeZero(), "names may hold anything, and what has ended runs no more")
	process(10, "10 (kubelet) S 1 10 10")
	g.Expect(kubeletOf(proc)).To(Equal(10))
}

func TestRestartKubelet(t *testing.T) {
	g := NewWithT(t)
	proc := t.TempDir()
	kubelet := exec.CommandContext(t.Context(), "sleep", "300")
	g.Expect(kubelet.Start()).To(Succeed())
	show := func(pid int) {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		g.Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(dir, "stat"), []byte(strconv.Itoa(pid)+" (kubelet) S 1 1 1"), 0o644)).To(Succeed())
	}
	show(kubelet.Process.Pid)
	ended := make(chan error, 1)
	go func() { // the first process of the node
		err := kubelet.Wait()
		_ = os.RemoveAll(filepath.Join(proc, strconv.Itoa(kubelet.Process.Pid)))
		show(1 << 22)
		ended <- err
	}()
	g.Expect(restartKubelet(t.Context(), proc)).To(Succeed())
	g.Expect(<-ended).To(MatchError(ContainSubstring("terminated")))
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	g.Expect(os.RemoveAll(proc)).To(Succeed())
	g.Expect(os.Mkdir(proc, 0o755)).To(Succeed())
	g.Expect(restartKubelet(ctx, proc)).To(MatchError(ContainSubstring("no new kubelet runs")))
}
