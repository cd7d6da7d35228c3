//go:build backup

package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/etcdbackup/upload/store"
	"hcp.internal/platform/internal/testenv"
)

// world is an etcd, a storage, and the files that a Job would be given.
type world struct {
	*testing.T
	dir   string
	etcd  *clientv3.Client
	shard *clientv3.Client // that holds events, a shard
	// storage is the URL of what plays faults before the storage; args say which storage it is, those of etcd-upload and those of etcd-verify.
	storage    string
	args       []string
	verifyArgs []string
	options    store.Options
	secret     string // folder with the keys of the Secret
	meta       string
	programs   string
	peak       int64 // most memory of a program, in MiB
}

// startEtcd runs a member over a data directory.
func startEtcd(t *testing.T, dataDir string) *clientv3.Client {
	t.Helper()
	g := NewWithT(t)
	ports, err := testenv.FreePorts(1)
	g.Expect(err).NotTo(HaveOccurred())
	address := fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	p, err := testenv.StartProcess(testenv.KubeBinary(t), t.TempDir(), "etcd", nil, "--name=etcd-0", "--data-dir="+dataDir, "--quota-backend-bytes=8589934592",
		"--listen-client-urls="+address, "--advertise-client-urls="+address, "--listen-peer-urls=http://127.0.0.1:0", "--log-level=error",
		"--initial-advertise-peer-urls=http://127.0.0.1:2380", "--initial-cluster=etcd-0=http://127.0.0.1:2380", "--initial-cluster-token=demo")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(p.Kill)
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, Logger: zap.NewNop(), MaxCallRecvMsgSize: 1 << 30})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = c.Close() })
	g.Eventually(func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Get(ctx, "probe")
		return err
	}).WithTimeout(2*time.Minute).Should(Succeed(), p.Tail)
	return c
}

// newWorld starts etcds, and a storage.
func newWorld(t *testing.T, storage func(w *world)) *world {
	t.Helper()
	g := NewWithT(t)
	root, err := filepath.Abs("../..")
	g.Expect(err).NotTo(HaveOccurred())
	w := &world{T: t, dir: t.TempDir(), programs: filepath.Join(root, "bin"), secret: t.TempDir()}
	w.options.Credentials = filepath.Join(w.secret, backups.CredentialsKey)
	storage(w)
	w.etcd, w.shard = startEtcd(t, filepath.Join(w.dir, "source")), startEtcd(t, filepath.Join(w.dir, "source-of-the-shard"))
	w.meta = filepath.Join(w.dir, "meta")
	w.write(filepath.Join(w.secret, backups.EncryptionKey), "0123456789abcdef0123456789abcdef")
	w.write(w.meta, `{"backup":"clusters-demo/one","cluster":{"namespace":"clusters","name":"demo","uid":"1"},"shards":[{"name":"events"}]}`)
	return w
}

func (w *world) write(file, content string) {
	w.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		w.Fatal(err)
	}
}

// open is the storage as this test reads it.
func (w *world) open(t *testing.T) store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), w.options)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return s
}

// fault asks the storage for faults.
func (w *world) fault(kind, match string, times int) {
	w.Helper()
	if err := w.try(http.MethodPost, url.Values{"kind": {kind}, "match": {match}, "times": {fmt.Sprint(times)}}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) heal() { _ = w.try(http.MethodDelete, nil) } // a fault that stays shows

func (w *world) try(method string, values url.Values) error {
	req, err := http.NewRequestWithContext(w.Context(), method, w.storage+"/-/fault?"+values.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// run executes hcp-cloud as a Job would. killAfter ends it without a chance to clear up; 0: never.
func (w *world) run(killAfter time.Duration, args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(w.programs, "hcp-cloud"), args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Start(); err != nil {
		return "", err
	}
	if killAfter > 0 {
		timer := time.AfterFunc(killAfter, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
		defer timer.Stop()
	}
	memory := watchMemory(cmd.Process.Pid)
	err := cmd.Wait()
	w.peak = max(w.peak, memory())
	if err != nil {
		err = errors.Join(err, errors.New(said.String()))
	}
	return out.String(), err
}

// uploading are the arguments that put a snapshot under a prefix.
func (w *world) uploading(snapshot, prefix string) []string {
	return append([]string{"etcd-upload", "--snapshot-path", snapshot, "--key-prefix", prefix, "--credentials-file", w.options.Credentials,
		"--encryption-key-file", filepath.Join(w.secret, backups.EncryptionKey), "--meta", w.meta}, w.args...)
}

func (w *world) uploader(snapshot, prefix string) *exec.Cmd {
	return exec.Command(filepath.Join(w.programs, "hcp-cloud"), w.uploading(snapshot, prefix)...)
}

// upload puts a snapshot under a prefix.
func (w *world) upload(snapshot, prefix string, killAfter time.Duration) (string, error) {
	return w.run(killAfter, w.uploading(snapshot, prefix)...)
}

// verify reads a backup.
func (w *world) verify(url string) (string, error) {
	scratch, err := os.MkdirTemp(w.dir, "scratch")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	return w.run(0, append([]string{"etcd-verify", "--url", url, "--scratch-dir", scratch, "--credentials-file", w.options.Credentials,
		"--encryption-key-file", filepath.Join(w.secret, backups.EncryptionKey)}, w.verifyArgs...)...)
}

// fetch writes the snapshot of a backup, or of a shard in it, into a new file.
func (w *world) fetch(url, shard, file string) (string, error) {
	return w.run(0, "etcd-fetch", "--url", url, "--shard", shard, "--output", file, "--secret-dir", w.secret)
}

// writer writes all the time, and knows what etcd has acknowledged.
type writer struct {
	mu    sync.Mutex
	acked map[string]int64 // key → revision
	stop  context.CancelFunc
	done  chan struct{}
}

func (w *world) startWriter() *writer {
	ctx, cancel := context.WithCancel(w.Context())
	out := &writer{acked: map[string]int64{}, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(out.done)
		for i := 0; ctx.Err() == nil; i++ {
			key := fmt.Sprintf("/written/%08d", i)
			resp, err := w.etcd.Put(ctx, key, key)
			if err != nil {
				continue
			}
			out.mu.Lock()
			out.acked[key] = resp.Header.Revision
			out.mu.Unlock()
		}
	}()
	w.Cleanup(func() { cancel(); <-out.done })
	return out
}
