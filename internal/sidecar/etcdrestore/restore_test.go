package etcdrestore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"hcp.internal/platform/internal/testenv"
)

// startEtcd runs a real member on plain HTTP over a data directory and returns a client of it.
func startEtcd(t *testing.T, dataDir string) (*clientv3.Client, *testenv.Process) {
	t.Helper()
	ports, err := testenv.FreePorts(1)
	must(t, err)
	url := fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	p, err := testenv.StartProcess(testenv.KubeBinary(t), t.TempDir(), "etcd", nil, "--name=etcd-0", "--data-dir="+dataDir,
		"--listen-client-urls="+url, "--advertise-client-urls="+url, "--listen-peer-urls=http://127.0.0.1:0", "--log-level=warn",
		"--initial-advertise-peer-urls=http://127.0.0.1:2380", "--initial-cluster=etcd-0=http://127.0.0.1:2380", "--initial-cluster-token=demo")
	must(t, err)
	t.Cleanup(p.Kill)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, Logger: zap.NewNop()})
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	NewWithT(t).Eventually(func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := client.Get(ctx, "probe")
		return err
	}).WithTimeout(30*time.Second).Should(Succeed(), p.Tail)
	return client, p
}

// takeSnapshot returns the file of a snapshot with one key.
func takeSnapshot(t *testing.T) []byte {
	t.Helper()
	client, _ := startEtcd(t, filepath.Join(t.TempDir(), "data"))
	_, err := client.Put(t.Context(), "key", "from the snapshot")
	must(t, err)
	path := filepath.Join(t.TempDir(), "snapshot.db")
	_, err = snapshot.NewV3(zap.NewNop()).Save(t.Context(), clientv3.Config{Endpoints: client.Endpoints()}, path)
	must(t, err)
	raw, err := os.ReadFile(path)
	must(t, err)
	return raw
}

// world is a volume, a template and a server that has the given file.
func world(t *testing.T, status int, file []byte) (Restore, *bytes.Buffer) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write(file)
	}))
	t.Cleanup(server.Close)
	volume := t.TempDir()
	template := filepath.Join(t.TempDir(), "etcd.yaml")
	must(t, os.WriteFile(template, []byte("name: etcd-0\ndata-dir: "+filepath.Join(volume, "data")+
		"\ninitial-cluster: etcd-0=http://127.0.0.1:2380\ninitial-cluster-token: demo\n"), 0o600))
	log := &bytes.Buffer{}
	return Restore{
		URL: server.URL + "/demo.db?signature=hush", Template: template, DataDir: filepath.Join(volume, "data"),
		MaxBytes: 64 << 20, Log: log, HTTP: server.Client(),
	}, log
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRestore(t *testing.T) {
	file := takeSnapshot(t)
	sum := sha256.Sum256(file)

	t.Run("When the volume is empty it should hold the snapshot's data, at a revision that no client has seen", func(t *testing.T) {
		g := NewWithT(t)
		r, log := world(t, http.StatusOK, file)
		r.SHA256 = hex.EncodeToString(sum[:])
		g.Expect(r.Run(t.Context())).To(Succeed())
		g.Expect(log.String()).NotTo(ContainSubstring("hush"))
		entries, err := os.ReadDir(filepath.Dir(r.DataDir))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(entries).To(HaveLen(1), "the staging folder must be gone")

		client, _ := startEtcd(t, r.DataDir)
		got, err := client.Get(t.Context(), "key")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Kvs).To(HaveLen(1))
		g.Expect(string(got.Kvs[0].Value)).To(Equal("from the snapshot"))
		g.Expect(got.Header.Revision).To(BeNumerically(">", revisionBump))
	})
	t.Run("When a killed run left its staging folder and an empty data folder it should start over", func(t *testing.T) {
		g := NewWithT(t)
		r, _ := world(t, http.StatusOK, file)
		g.Expect(os.MkdirAll(r.DataDir, 0o700)).To(Succeed())
		left := filepath.Join(filepath.Dir(r.DataDir), stagingName, "data", "member")
		g.Expect(os.MkdirAll(left, 0o700)).To(Succeed())
		g.Expect(r.Run(t.Context())).To(Succeed())
		g.Expect(filepath.Join(r.DataDir, "member", "snap", "db")).To(BeAnExistingFile())
	})
	t.Run("When there is data it should touch nothing and ask nobody", func(t *testing.T) {
		g := NewWithT(t)
		r, log := world(t, http.StatusOK, file)
		r.HTTP = &http.Client{Transport: forbidden{}}
		g.Expect(os.MkdirAll(filepath.Join(r.DataDir, "member"), 0o700)).To(Succeed())
		g.Expect(r.Run(t.Context())).To(Succeed())
		g.Expect(log.String()).To(ContainSubstring("nothing to restore"))
	})

	t.Run("When data is to be replaced it should be, at a revision that was asked for, also after runs that were killed", func(t *testing.T) {
		g := NewWithT(t)
		for _, left := range []string{"", beforeName, stagingName} {
			r, _ := world(t, http.StatusOK, file)
			r.Replace, r.RevisionBump = true, 5*revisionBump
			client, p := startEtcd(t, r.DataDir)
			_, err := client.Put(t.Context(), "key", "newer")
			g.Expect(err).NotTo(HaveOccurred())
			p.Kill()
			switch left {
			case beforeName: // killed between the two renames
				g.Expect(os.Rename(r.DataDir, filepath.Join(filepath.Dir(r.DataDir), beforeName))).To(Succeed())
			case stagingName:
				g.Expect(os.MkdirAll(filepath.Join(filepath.Dir(r.DataDir), stagingName, "data"), 0o700)).To(Succeed())
			}
			g.Expect(r.Run(t.Context())).To(Succeed())
			entries, err := os.ReadDir(filepath.Dir(r.DataDir))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(entries).To(HaveLen(1), "what was before must be gone")
			client, _ = startEtcd(t, r.DataDir)
			got, err := client.Get(t.Context(), "key")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(got.Kvs[0].Value)).To(Equal("from the snapshot"))
			g.Expect(got.Header.Revision).To(BeNumerically(">", 5*revisionBump))
		}
	})
	t.Run("When the snapshot is no snapshot data that was to be replaced should stay", func(t *testing.T) {
		g := NewWithT(t)
		r, _ := world(t, http.StatusOK, file[:len(file)/2])
		r.Replace = true
		kept := filepath.Join(r.DataDir, "member", "snap", "db")
		g.Expect(os.MkdirAll(filepath.Dir(kept), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(kept, []byte("kept"), 0o600)).To(Succeed())
		g.Expect(r.Run(t.Context())).NotTo(Succeed())
		g.Expect(os.ReadFile(kept)).To(BeEquivalentTo("kept"))
	})

	broken := bytes.Clone(file)
	broken[len(broken)/2] ^= 0xff
	for name, tc := range map[string]struct {
		status int
		file   []byte
		mutate func(*Restore)
		want   string
	}{
		"When a byte of the snapshot is flipped it should refuse it": {
			status: http.StatusOK, file: broken, want: "restoring the snapshot",
		},
		"When the snapshot is cut short it should refuse it": {
			status: http.StatusOK, file: file[:len(file)/2], want: "restoring the snapshot",
		},
		"When the object store sends an error document it should say so": {
			status: http.StatusOK, file: []byte("<?xml version=\"1.0\"?><Error/>"), want: "the server sent a document, not a snapshot",
		},
		"When the server has no such file it should give the status": {
			status: http.StatusNotFound, want: "404 Not Found",
		},
		"When the snapshot is larger than allowed it should stop": {
			status: http.StatusOK, file: file, mutate: func(r *Restore) { r.MaxBytes = 100 }, want: "100 bytes allowed",
		},
		"When the snapshot has another checksum than announced it should refuse it": {
			status: http.StatusOK, file: file, mutate: func(r *Restore) { r.SHA256 = strings.Repeat("0", 64) }, want: "its SHA-256 is",
		},
		"When nothing listens it should say so": {
			mutate: func(r *Restore) { r.URL = "http://127.0.0.1:1/demo.db?signature=hush" }, status: http.StatusOK, want: "downloading http://127.0.0.1:1/demo.db: dial",
		},
		"When the URL is no URL of a file it should refuse it": {
			status: http.StatusOK, mutate: func(r *Restore) { r.URL = "file:///etc/passwd?hush" }, want: "must be an http or https URL",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, _ := world(t, tc.status, tc.file)
			if tc.mutate != nil {
				tc.mutate(&r)
			}
			err := r.Run(t.Context())
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			g.Expect(err.Error()).NotTo(ContainSubstring("hush"), "a signature is a secret")
			g.Expect(r.DataDir).NotTo(BeADirectory())
		})
	}
}

type forbidden struct{}

func (forbidden) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no request expected")
}

func TestRestoreShard(t *testing.T) {
	file := takeSnapshot(t)
	// The backup has events beside the main etcd.
	fetch := func(_ context.Context, _, shard, to string) error {
		if shard == "events" {
			return os.WriteFile(to, file, 0o600)
		}
		return nil
	}
	for name, tc := range map[string]struct {
		url, shard string
		restored   bool
		said       string
	}{
		"When the backup has the shard it should be restored":               {"s3://backups/1.db.enc", "events", true, "restored the snapshot"},
		"When the backup has nothing of the shard it should begin empty":    {"s3://backups/1.db.enc", "leases", false, "has nothing of shard leases, which begins empty"},
		"When the URL is of a snapshot alone its shards should begin empty": {"https://backups/demo.db", "events", false, "begins empty"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, log := world(t, http.StatusOK, nil)
			r.URL, r.Shard, r.Fetch = tc.url, tc.shard, fetch
			g.Expect(r.Run(t.Context())).To(Succeed())
			g.Expect(log.String()).To(ContainSubstring(tc.said))
			left, err := os.ReadDir(filepath.Dir(r.DataDir))
			g.Expect(err).NotTo(HaveOccurred())
			if !tc.restored {
				g.Expect(left).To(BeEmpty())
				return
			}
			g.Expect(left).To(HaveLen(1))
			client, _ := startEtcd(t, r.DataDir)
			resp, err := client.Get(t.Context(), "key")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(resp.Kvs).To(HaveLen(1))
		})
	}
}

// revisionOf is the newest revision in a database.
func revisionOf(t *testing.T, db string) int64 {
	t.Helper()
	status, err := snapshot.NewV3(zap.NewNop()).Status(db)
	must(t, err)
	return status.Revision
}

func TestRevisionBump(t *testing.T) {
	file := takeSnapshot(t)
	db := filepath.Join(t.TempDir(), "snapshot.db")
	must(t, os.WriteFile(db, file, 0o600))
	fetch := func(_ context.Context, _, _, to string) error { return os.WriteFile(to, file, 0o600) }
	const told = `{"":{"revisionBump":1764000000000000},"events":{"revisionBump":1764000000000007}}`
	for name, tc := range map[string]struct {
		shard, parts string
		given        uint64
		want         int64
		says         string // of the error; empty: none
	}{
		"When the Secret tells a bump it should be added":                                      {parts: told, want: 1764000000000000},
		"When the Secret tells another one for the shard that should be added":                 {parts: told, shard: "events", want: 1764000000000007},
		"When the Secret tells none for the shard clients should be led beyond all the same":   {parts: told, shard: "leases", want: revisionBump},
		"When an older version or a person made the Secret it should be the one as before":     {want: revisionBump},
		"When the pod was told a bump that should be added, whatever the Secret tells":         {parts: told, given: 9, want: 9},
		"When the Secret can't be understood nothing should be restored at a revision too low": {parts: "{", says: "reading key parts of Secret etcd-restore"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, _ := world(t, http.StatusOK, nil)
			r.URL, r.Shard, r.Fetch, r.RevisionBump, r.Secret = "s3://backups/1.db.enc", tc.shard, fetch, tc.given, t.TempDir()
			if tc.parts != "" {
				must(t, os.WriteFile(filepath.Join(r.Secret, "parts"), []byte(tc.parts), 0o600))
			}
			err := r.Run(t.Context())
			if tc.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
				g.Expect(r.DataDir).NotTo(BeADirectory())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(revisionOf(t, filepath.Join(r.DataDir, "member", "snap", "db")) - revisionOf(t, db)).To(Equal(tc.want))
		})
	}
}

func TestPrepare(t *testing.T) {
	file := takeSnapshot(t)
	volume := func(t *testing.T) (prepare, replace Restore, mark string) {
		t.Helper()
		r, _ := world(t, http.StatusOK, file)
		r.RevisionBump = 7
		mark = filepath.Join(r.DataDir, "before")
		must(t, os.MkdirAll(r.DataDir, 0o700))
		must(t, os.WriteFile(mark, nil, 0o600))
		prepare, replace = r, r
		prepare.Prepare, replace.Replace = true, true
		return prepare, replace, mark
	}
	whole := func(t *testing.T, r Restore) {
		t.Helper()
		g := NewWithT(t)
		g.Expect(filepath.Join(r.DataDir, "member", "snap", "db")).To(BeARegularFile())
		left, err := os.ReadDir(filepath.Dir(r.DataDir))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(left).To(HaveLen(1), "nothing else takes room")
	}
	t.Run("When it is prepared the data of before should stay, and be replaced without the storage", func(t *testing.T) {
		g := NewWithT(t)
		prepare, replace, mark := volume(t)
		g.Expect(prepare.Run(t.Context())).To(Succeed())
		g.Expect(mark).To(BeARegularFile())
		replace.HTTP = nil // it would panic
		g.Expect(replace.Run(t.Context())).To(Succeed())
		g.Expect(mark).NotTo(BeAnExistingFile())
		whole(t, replace)
	})
	t.Run("When it is killed between two renames the next run should end", func(t *testing.T) {
		for _, moved := range []bool{false, true} {
			g := NewWithT(t)
			prepare, replace, _ := volume(t)
			g.Expect(prepare.Run(t.Context())).To(Succeed())
			dir := filepath.Dir(replace.DataDir)
			g.Expect(os.Rename(replace.DataDir, filepath.Join(dir, beforeName))).To(Succeed())
			if moved {
				g.Expect(os.Rename(filepath.Join(dir, preparedName, "data"), replace.DataDir)).To(Succeed())
			}
			replace.HTTP = nil
			g.Expect(replace.Run(t.Context())).To(Succeed())
			whole(t, replace)
		}
	})
	t.Run("When what was prepared is of another restore it should be made anew", func(t *testing.T) {
		g := NewWithT(t)
		prepare, replace, _ := volume(t)
		g.Expect(prepare.Run(t.Context())).To(Succeed())
		replace.RevisionBump = 8
		g.Expect(replace.Run(t.Context())).To(Succeed())
		whole(t, replace)
	})
	t.Run("When it is given up, wherever it was, the data of before should be there and nothing else take room", func(t *testing.T) {
		for name, left := range map[string]func(g Gomega, prepare, replace Restore, dir string){
			"not begun": func(Gomega, Restore, Restore, string) {},
			"prepared":  func(g Gomega, prepare, _ Restore, _ string) { g.Expect(prepare.Run(t.Context())).To(Succeed()) },
			"the storage breaks off": func(g Gomega, prepare, _ Restore, dir string) {
				prepare.SHA256 = strings.Repeat("0", 64)
				g.Expect(prepare.Run(t.Context())).NotTo(Succeed())
				g.Expect(filepath.Join(dir, stagingName)).To(BeADirectory(), "the case is about what fails halfway")
			},
			"killed between two renames": func(g Gomega, prepare, replace Restore, dir string) {
				g.Expect(prepare.Run(t.Context())).To(Succeed())
				g.Expect(os.Rename(replace.DataDir, filepath.Join(dir, beforeName))).To(Succeed())
			},
			"killed after both": func(g Gomega, prepare, replace Restore, dir string) {
				g.Expect(prepare.Run(t.Context())).To(Succeed())
				g.Expect(os.Rename(replace.DataDir, filepath.Join(dir, beforeName))).To(Succeed())
				g.Expect(os.Rename(filepath.Join(dir, preparedName, "data"), replace.DataDir)).To(Succeed())
			},
			"killed between two renames, and then the storage is away": func(g Gomega, _, replace Restore, dir string) {
				g.Expect(os.Rename(replace.DataDir, filepath.Join(dir, beforeName))).To(Succeed())
				replace.URL = "http://127.0.0.1:1/gone.db"
				g.Expect(replace.Run(t.Context())).NotTo(Succeed())
			},
		} {
			t.Run(name, func(t *testing.T) {
				g := NewWithT(t)
				prepare, replace, mark := volume(t)
				dir := filepath.Dir(replace.DataDir)
				left(g, prepare, replace, dir)
				discard := replace
				discard.Replace, discard.Discard, discard.HTTP = false, true, nil // it would panic
				for range 2 {                                                     // the second time there is nothing to do
					g.Expect(discard.Run(t.Context())).To(Succeed())
					g.Expect(mark).To(BeARegularFile())
					g.Expect(os.ReadDir(dir)).To(HaveLen(1))
					g.Expect(os.ReadDir(replace.DataDir)).To(HaveLen(1))
				}
			})
		}
	})
	t.Run("When preparing fails the data of before should be there", func(t *testing.T) {
		g := NewWithT(t)
		prepare, _, mark := volume(t)
		prepare.SHA256 = strings.Repeat("0", 64)
		g.Expect(prepare.Run(t.Context())).NotTo(Succeed())
		g.Expect(mark).To(BeARegularFile())
	})
}
