package kmsplugin

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	kmsapi "k8s.io/kms/apis/v2"
	"k8s.io/kms/pkg/service"
	"pgregory.net/rapid"

	"hcp.internal/platform/internal/encryption"
)

func keyOf(letter string) encryption.Key {
	return encryption.NewKey([]byte(strings.Repeat(letter, encryption.KeySize))).In(encryption.InPlugin)
}

func put(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, encryption.KeyFile(name)), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// sockets is a folder whose path is short enough for sockets.
func sockets(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kms")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestRun(t *testing.T) {
	t.Run("When keys come and go it should serve every one that it has seen", func(t *testing.T) {
		g := NewWithT(t)
		p := &Plugin{Keys: t.TempDir(), Sockets: sockets(t), Interval: 10 * time.Millisecond, Log: logr.Discard()}
		a, b := keyOf("a"), keyOf("b")
		put(t, p.Keys, a.Name, a.Data)
		// What a process that was killed leaves behind.
		g.Expect(os.WriteFile(encryption.Socket(p.Sockets, a.Name), nil, 0o600)).To(Succeed())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		ask := func(key encryption.Key) kmsapi.KeyManagementServiceClient {
			conn, err := grpc.NewClient("unix://"+encryption.Socket(p.Sockets, key.Name), grpc.WithTransportCredentials(insecure.NewCredentials()))
			g.Expect(err).NotTo(HaveOccurred())
			t.Cleanup(func() { _ = conn.Close() })
			return kmsapi.NewKeyManagementServiceClient(conn)
		}
		expectWell := func(key encryption.Key) {
			t.Helper()
			c := ask(key)
			g.Eventually(func(g Gomega) {
				s, err := c.Status(t.Context(), &kmsapi.StatusRequest{})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect([]string{s.Version, s.Healthz, s.KeyId}).To(Equal([]string{"v2", "ok", key.Name}))
			}).WithTimeout(time.Minute).Should(Succeed())
			sealed, err := c.Encrypt(t.Context(), &kmsapi.EncryptRequest{Plaintext: []byte("seed"), Uid: "1"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(sealed.KeyId).To(Equal(key.Name))
			got, err := c.Decrypt(t.Context(), &kmsapi.DecryptRequest{Ciphertext: sealed.Ciphertext, KeyId: sealed.KeyId, Uid: "1"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(got.Plaintext)).To(Equal("seed"))
		}
		expectWell(a)
		put(t, p.Keys, b.Name, b.Data)
		put(t, p.Keys, "local-kms-0000000000000000", a.Data) // under a name that is not its own
		expectWell(b)
		g.Expect(os.Remove(filepath.Join(p.Keys, encryption.KeyFile(a.Name)))).To(Succeed())
		expectWell(a)
		g.Expect(encryption.Socket(p.Sockets, "local-kms-0000000000000000")).NotTo(BeAnExistingFile())
		cancel()
		g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()))
	})
	for name, tc := range map[string]struct {
		file string
		data []byte
		says string
	}{
		"When there is no key it should say what it needs":              {says: "it needs a file NAME.key of 32 bytes"},
		"When a key is too short it should say which, and not quote":    {file: keyOf("a").Name, data: []byte("secret"), says: "it must have 32 bytes"},
		"When a key is too long it should say which":                    {file: keyOf("a").Name, data: bytes.Repeat([]byte("a"), 33), says: "it must have 32 bytes"},
		"When a file has another key than its name it should refuse it": {file: keyOf("a").Name, data: keyOf("b").Data, says: "another key than its name says"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Plugin{Keys: t.TempDir(), Sockets: sockets(t), Interval: time.Minute, Log: logr.Discard()}
			if tc.file != "" {
				put(t, p.Keys, tc.file, tc.data)
			}
			err := p.Run(t.Context())
			g := NewWithT(t)
			g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
			g.Expect(err.Error()).NotTo(ContainSubstring("secret"))
		})
	}
}

func TestKey(t *testing.T) {
	newOne := func(t rapid.TB, letter string) *key {
		k, err := newKey(keyOf(letter).Name, keyOf(letter).Data)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	t.Run("When anything about what was encrypted changes it should refuse it", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			k := newOne(t, "a")
			plain := rapid.SliceOfN(rapid.Byte(), 1, maxSeed-k.aead.Overhead()).Draw(t, "plain")
			sealed, err := k.Encrypt(t.Context(), "", plain)
			if err != nil {
				t.Fatal(err)
			}
			got, err := k.Decrypt(t.Context(), "", &service.DecryptRequest{Ciphertext: sealed.Ciphertext, KeyID: sealed.KeyID})
			if err != nil || !bytes.Equal(got, plain) {
				t.Fatalf("it decrypts as %x: %v", got, err)
			}
			again, err := k.Encrypt(t.Context(), "", plain)
			if err != nil || bytes.Equal(again.Ciphertext, sealed.Ciphertext) {
				t.Fatalf("the same twice: %v", err)
			}
			bad := bytes.Clone(sealed.Ciphertext)
			if rapid.Bool().Draw(t, "cut") {
				bad = bad[:rapid.IntRange(0, len(bad)-1).Draw(t, "length")]
			} else {
				bad[rapid.IntRange(0, len(bad)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "by"))
			}
			if _, err := k.Decrypt(t.Context(), "", &service.DecryptRequest{Ciphertext: bad, KeyID: sealed.KeyID}); err == nil {
				t.Fatal("a change was not noticed")
			}
		})
	})
	t.Run("When it is another key's, too long, or empty it should refuse it", func(t *testing.T) {
		g := NewWithT(t)
		a, b := newOne(t, "a"), newOne(t, "b")
		sealed, err := a.Encrypt(t.Context(), "", []byte("seed"))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = b.Decrypt(t.Context(), "", &service.DecryptRequest{Ciphertext: sealed.Ciphertext, KeyID: sealed.KeyID})
		g.Expect(err).To(MatchError(ContainSubstring("this is key " + b.name)))
		_, err = b.Decrypt(t.Context(), "", &service.DecryptRequest{Ciphertext: sealed.Ciphertext, KeyID: b.name})
		g.Expect(err).To(MatchError(ContainSubstring("not encrypted with this key")))
		_, err = a.Decrypt(t.Context(), "", &service.DecryptRequest{Ciphertext: make([]byte, maxSeed+1), KeyID: a.name})
		g.Expect(err).To(MatchError(ContainSubstring("more than 1024")))
		for _, size := range []int{0, maxSeed} {
			_, err = a.Encrypt(t.Context(), "", make([]byte, size))
			g.Expect(err).To(MatchError(ContainSubstring("can't be encrypted")))
		}
	})
}
