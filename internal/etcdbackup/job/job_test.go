package job

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// startEtcd runs a real etcd.
func startEtcd(t *testing.T) *clientv3.Client {
	t.Helper()
	g := NewWithT(t)
	ports, err := testenv.FreePorts(1)
	g.Expect(err).NotTo(HaveOccurred())
	url := fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	p, err := testenv.StartProcess(testenv.KubeBinary(t), t.TempDir(), "etcd", nil, "--name=etcd-0", "--data-dir="+filepath.Join(t.TempDir(), "data"),
		"--listen-client-urls="+url, "--advertise-client-urls="+url, "--listen-peer-urls=http://127.0.0.1:0", "--log-level=warn")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(p.Kill)
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, Logger: zap.NewNop()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = c.Close() })
	g.Eventually(func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Put(ctx, "key", "value")
		return err
	}).WithTimeout(time.Minute).Should(Succeed(), p.Tail)
	return c
}

func TestSnapshot(t *testing.T) {
	c := startEtcd(t)
	path := filepath.Join(t.TempDir(), "snapshot.db")
	t.Run("When etcd serves it should write what etcd's own tool reads", func(t *testing.T) {
		g := NewWithT(t)
		size, err := save(t.Context(), c, path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(size).To(BeNumerically(">", 512))
		status, err := snapshot.NewV3(zap.NewNop()).Status(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(status.TotalKey).To(BeNumerically(">", 0))
		g.Expect(path + ".part").NotTo(BeAnExistingFile())
	})
	whole, err := os.ReadFile(path)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, tc := range map[string]struct {
		change func([]byte) []byte
		want   string
	}{
		"When a bit is wrong it should be refused":   {func(b []byte) []byte { b[1000] ^= 1; return b }, "is damaged"},
		"When the sum is wrong it should be refused": {func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, "is damaged"},
		"When the end is missing it should be refused": {
			func(b []byte) []byte { return b[:len(b)-100] }, "the snapshot is incomplete"},
		"When the sum is missing it should be refused": {
			func(b []byte) []byte { return b[:len(b)-32] }, "the snapshot is incomplete"},
		"When half of it is missing it should be refused": {
			func(b []byte) []byte { return append(b[:512*(len(b)/1024)], b[len(b)-32:]...) }, "is damaged"},
		"When it is empty it should be refused": {func([]byte) []byte { return nil }, "the snapshot is incomplete"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			file := filepath.Join(t.TempDir(), "snapshot.db")
			g.Expect(os.WriteFile(file, tc.change(bytes.Clone(whole)), 0o600)).To(Succeed())
			g.Expect(Check(file)).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestFetch(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	c, ns, dir := env.Client(t, clientgoscheme.Scheme), env.Namespace(t), t.TempDir()
	get := func() error { return fetch(t.Context(), c, ns, ClientSecret, CAConfigMap, dir) }
	g.Expect(get()).To(MatchError(ContainSubstring("reading Secret " + ns + "/etcd-client-tls")))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: ClientSecret}, Data: map[string][]byte{CertFile: []byte("cert")}}
	ca := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: CAConfigMap}, Data: map[string]string{CAFile: "ca"}}
	for _, obj := range []client.Object{secret, ca} {
		g.Expect(c.Create(t.Context(), obj)).To(Succeed())
	}
	g.Expect(get()).To(MatchError("Secret " + ns + "/etcd-client-tls has no key etcd-client.key"))
	secret.Data[KeyFile] = []byte("key")
	g.Expect(c.Update(t.Context(), secret)).To(Succeed())
	g.Expect(get()).To(Succeed())
	info, err := os.Stat(filepath.Join(dir, KeyFile))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)), "When a key is written only its owner should be able to read it")
}
