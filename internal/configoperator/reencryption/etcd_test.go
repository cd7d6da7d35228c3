package reencryption

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unicode"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/testenv"
)

// hostedServers are an etcd, and a kube-apiserver that can be started again with other keys.
type hostedServers struct {
	dir, etcd string
	sockets   string // of the plugin
	port      int
	api       *testenv.Process
}

func startEtcd(t *testing.T) *hostedServers {
	t.Helper()
	ports, err := testenv.FreePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	h := &hostedServers{dir: t.TempDir(), etcd: fmt.Sprintf("http://127.0.0.1:%d", ports[0]), port: ports[2]}
	peer := fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	p, err := testenv.StartProcess(testenv.KubeBinary(t), h.dir, "etcd", nil, "--data-dir=etcd", "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+h.etcd, "--advertise-client-urls="+h.etcd, "--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	h.write(t, "sa.key", pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	h.write(t, "tokens.csv", []byte("test-token,admin,admin,system:masters\n"))
	t.Cleanup(func() {
		if h.api != nil {
			h.api.Kill()
		}
	})
	return h
}

func (h *hostedServers) write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// serve starts kube-apiserver with the keys of these letters, instead of the one that runs.
func (h *hostedServers) serve(t *testing.T, letters string) client.Client {
	t.Helper()
	var keys []encryption.Key
	for _, letter := range letters {
		keys = append(keys, keyOf(letter))
	}
	raw, err := encryption.Config(keys)
	if err != nil {
		t.Fatal(err)
	}
	h.write(t, "encryption.yaml", bytes.ReplaceAll(raw, []byte(encryption.PluginSocketDir), []byte(h.sockets)))
	if h.api != nil {
		h.api.Kill()
	}
	h.api = h.start(t, h.port)
	cfg := config(h.port)
	var c client.Client
	NewWithT(t).Eventually(func() error {
		if c, err = client.New(cfg, client.Options{Scheme: clientgoscheme.Scheme}); err != nil {
			return err
		}
		return c.Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{})
	}).WithTimeout(3*time.Minute).WithPolling(200*time.Millisecond).Should(Succeed(), "kube-apiserver should serve: %s", h.api.Tail())
	return c
}

// start starts a kube-apiserver with the configuration that was written.
func (h *hostedServers) start(t *testing.T, port int) *testenv.Process {
	t.Helper()
	p, err := testenv.StartProcess(testenv.KubeBinary(t), h.dir, "kube-apiserver", nil,
		"--etcd-servers="+h.etcd, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), fmt.Sprintf("--cert-dir=certs-%d", port),
		"--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=sa.key", "--service-account-signing-key-file=sa.key",
		"--token-auth-file=tokens.csv", "--encryption-provider-config=encryption.yaml", "--encryption-provider-config-automatic-reload=false")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func config(port int) *rest.Config {
	return &rest.Config{Host: fmt.Sprintf("https://127.0.0.1:%d", port), BearerToken: "test-token", QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

// keyOf is the key of a letter; that of a capital is held by the plugin.
func keyOf(letter rune) encryption.Key {
	key := encryption.NewKey(bytes.Repeat([]byte{byte(unicode.ToLower(letter))}, encryption.KeySize))
	if unicode.IsUpper(letter) {
		return key.In(encryption.InPlugin)
	}
	return key
}

// TestStored looks at what etcd holds, which nothing but real servers can show.
func TestStored(t *testing.T) {
	t.Run("When Secrets were written again the old key should not be needed any more", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		h := startEtcd(t)
		hosted := h.serve(t, "a")
		const count = 20
		for i := range count {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("s-%d", i)}, Data: map[string][]byte{"k": {byte(i)}}}
			g.Expect(hosted.Create(t.Context(), secret)).To(Succeed())
		}
		hosted = h.serve(t, "ba")
		r := &rewriter{management: w.client, hosted: hosted, clock: clocktesting.NewFakePassiveClock(noon), pageSize: pageSize}
		out, passes := outcome{}, 0
		for ; !out.done && passes < 10; passes++ {
			var err error
			out, err = r.run(t.Context(), w.hcp, "r")
			g.Expect(err).NotTo(HaveOccurred())
		}
		g.Expect(passes).To(Equal(3), "20 Secrets in pages of 8")

		etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{h.etcd}, DialTimeout: 10 * time.Second})
		g.Expect(err).NotTo(HaveOccurred())
		defer etcd.Close()
		stored, err := etcd.Get(t.Context(), "/registry/secrets/", clientv3.WithPrefix())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(stored.Kvs).To(HaveLen(count))
		for _, kv := range stored.Kvs {
			g.Expect(string(kv.Value)).To(HavePrefix("k8s:enc:aescbc:v1:"+keyOf('b').Name+":"), string(kv.Key))
		}
		// Another pass stores nothing anew.
		_, err = r.run(t.Context(), w.hcp, "r")
		g.Expect(err).NotTo(HaveOccurred())
		again, err := etcd.Get(t.Context(), "/registry/secrets/", clientv3.WithPrefix())
		g.Expect(err).NotTo(HaveOccurred())
		for i, kv := range again.Kvs {
			g.Expect(kv.ModRevision).To(Equal(stored.Kvs[i].ModRevision))
		}

		hosted = h.serve(t, "b")
		list := &corev1.SecretList{}
		g.Expect(hosted.List(t.Context(), list)).To(Succeed())
		g.Expect(list.Items).To(HaveLen(count))
	})
}
