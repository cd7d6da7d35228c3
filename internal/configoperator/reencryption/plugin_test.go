package reencryption

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/configoperator/kmshealth"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/testenv"
)

// keyFolder is where the plugin of a test has its keys from.
type keyFolder string

func (f keyFolder) put(t *testing.T, letters string) {
	t.Helper()
	for _, letter := range letters {
		key := keyOf(letter)
		if err := os.WriteFile(filepath.Join(string(f), encryption.KeyFile(key.Name)), key.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (f keyFolder) startPlugin(t *testing.T, sockets string) *testenv.Process {
	t.Helper()
	p, err := testenv.StartProcess(os.Args[0], t.TempDir(), "kms-plugin", []string{asPlugin + "=1"}, "--keys="+string(f), "--sockets="+sockets, "--interval=50ms")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func awaitFile(g *WithT, path string) {
	g.Eventually(func() error { _, err := os.Stat(path); return err }).WithTimeout(time.Minute).WithPolling(20 * time.Millisecond).Should(Succeed())
}

// TestPlugin has real servers ask a real plugin, and looks at what etcd holds.
func TestPlugin(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	h := startEtcd(t)
	sockets, err := os.MkdirTemp("", "kms") // the path of a socket must be short
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	h.sockets = sockets
	folder := keyFolder(t.TempDir())
	folder.put(t, "A")
	plugin := folder.startPlugin(t, sockets)
	awaitFile(g, encryption.Socket(sockets, keyOf('A').Name))
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{h.etcd}, DialTimeout: 10 * time.Second})
	g.Expect(err).NotTo(HaveOccurred())
	defer etcd.Close()
	const count = 20
	secret := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string][]byte{"k": []byte("hidden " + name)}}
	}
	expectStored := func(letter rune) {
		t.Helper()
		stored, err := etcd.Get(t.Context(), "/registry/secrets/", clientv3.WithPrefix())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(stored.Kvs)).To(BeNumerically(">=", count))
		for _, kv := range stored.Kvs {
			g.Expect(string(kv.Value)).To(HavePrefix("k8s:enc:kms:v2:"+keyOf(letter).Name+":"), string(kv.Key))
			g.Expect(strings.Contains(string(kv.Value), "hidden")).To(BeFalse(), string(kv.Key))
		}
	}
	expectReadable := func(c client.Client) {
		t.Helper()
		list := &corev1.SecretList{}
		g.Expect(c.List(t.Context(), list, client.InNamespace("default"))).To(Succeed()) // of etcd: it asks for no version
		g.Expect(len(list.Items)).To(BeNumerically(">=", count))
		for _, s := range list.Items {
			g.Expect(string(s.Data["k"])).To(Equal("hidden " + s.Name))
		}
	}

	// Encrypted.
	hosted := h.serve(t, "A")
	for i := range count {
		g.Expect(hosted.Create(t.Context(), secret(fmt.Sprintf("s-%d", i)))).To(Succeed())
	}
	expectStored('A')

	// Rotated, and written again.
	folder.put(t, "B")
	awaitFile(g, encryption.Socket(sockets, keyOf('B').Name))
	hosted = h.serve(t, "BA")
	r := &rewriter{management: w.client, hosted: hosted, clock: clocktesting.NewFakePassiveClock(noon), pageSize: pageSize}
	for passes := 0; ; passes++ {
		out, err := r.run(t.Context(), w.hcp, "r")
		g.Expect(err).NotTo(HaveOccurred())
		if out.done {
			break
		}
		g.Expect(passes).To(BeNumerically("<", 10))
	}
	expectStored('B')
	hosted = h.serve(t, "B")
	expectReadable(hosted)

	// Away: what runs reads on, and its health check says what is wrong.
	ask, err := kmshealth.Ask(config(h.port))
	g.Expect(err).NotTo(HaveOccurred())
	health := func() kmshealth.Answer { return ask(t.Context(), config(h.port).Host, 0) }
	g.Eventually(health).WithTimeout(2 * time.Minute).WithPolling(time.Second).Should(Equal(kmshealth.Well))
	plugin.Kill()
	g.Eventually(health).WithTimeout(3 * time.Minute).WithPolling(time.Second).Should(Equal(kmshealth.Away))
	expectReadable(hosted)

	// A server that starts meanwhile gets no keys: it does not get ready, and refuses to write.
	ports, err := testenv.FreePorts(1)
	g.Expect(err).NotTo(HaveOccurred())
	second := h.start(t, ports[0])
	t.Cleanup(second.Kill)
	var other client.Client
	g.Eventually(func() error {
		if other, err = client.New(config(ports[0]), client.Options{Scheme: clientgoscheme.Scheme}); err != nil {
			return err
		}
		return other.Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{})
	}).WithTimeout(3*time.Minute).WithPolling(200*time.Millisecond).Should(Succeed(), "other objects are served: %s", second.Tail())
	err = other.Create(t.Context(), secret("refused"))
	g.Expect(apierrors.IsInternalError(err)).To(BeTrue(), "it has no seed to encrypt with: %v", err)

	// Back: everything goes on by itself.
	folder.startPlugin(t, sockets)
	g.Eventually(health).WithTimeout(3 * time.Minute).WithPolling(time.Second).Should(Equal(kmshealth.Well))
	g.Eventually(func() error { return client.IgnoreAlreadyExists(other.Create(t.Context(), secret("s-20"))) }).WithTimeout(3 * time.Minute).WithPolling(time.Second).Should(Succeed())
	expectReadable(hosted)
	expectStored('B')
}
