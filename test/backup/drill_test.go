//go:build backup

package backup

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/sidecar/etcdrestore"
)

// killPoints is how many uploads are killed, each at another moment, with gofakes3, and otherKillPoints with each of the others; DRILL_KILLS changes both.
const killPoints, otherKillPoints = 100, 20

// fill is how many bytes of objects there are, in objects of 100 KiB; DRILL_BYTES changes it.
const fill = 64 << 20

func number(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// snapshotOf saves etcd as the Job's container does.
func snapshotOf(t *testing.T, c *clientv3.Client, file string) {
	t.Helper()
	g := NewWithT(t)
	r, err := c.Snapshot(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	f, err := os.Create(file)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = io.Copy(f, r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Close()).To(Succeed())
	g.Expect(f.Close()).To(Succeed())
}

// contents are all keys at a revision, 0 for the newest, with the sums of their values and the revisions that they were written with.
func contents(t *testing.T, c *clientv3.Client, revision int64) map[string]string {
	t.Helper()
	out := map[string]string{}
	from := "\x00"
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		resp, err := c.Get(ctx, from, clientv3.WithFromKey(), clientv3.WithRev(revision), clientv3.WithLimit(500))
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range resp.Kvs {
			out[string(kv.Key)] = fmt.Sprintf("%d %d %d %x", kv.CreateRevision, kv.ModRevision, kv.Version, sha256.Sum256(kv.Value))
			from = string(kv.Key) + "\x00"
		}
		if !resp.More {
			return out
		}
	}
}

// told is what etcd-upload printed: the URL, and the summary.
func told(t *testing.T, out string) (string, bundle.Summary) {
	t.Helper()
	url, rest, _ := strings.Cut(strings.TrimSpace(out), "\n")
	s := bundle.Summary{}
	if err := json.Unmarshal([]byte(rest), &s); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return url, s
}

// fill writes that many bytes into etcd, and some into its shard.
func (w *world) fill(bytes int) {
	g := NewWithT(w.T)
	value := make([]byte, 100<<10)
	for i := range bytes / len(value) {
		_, _ = rand.Read(value) // never fails
		_, err := w.etcd.Put(w.Context(), fmt.Sprintf("/filled/%06d", i), string(value))
		g.Expect(err).NotTo(HaveOccurred())
	}
	for i := range 300 {
		_, err := w.shard.Put(w.Context(), fmt.Sprintf("/events/%06d", i), "happened")
		g.Expect(err).NotTo(HaveOccurred())
	}
}

// save is a snapshot of both.
func (w *world) save() (file string, took time.Duration) {
	file = filepath.Join(w.dir, "snapshot.db")
	start := time.Now()
	snapshotOf(w.T, w.etcd, file)
	took = time.Since(start)
	snapshotOf(w.T, w.shard, filepath.Join(w.dir, "etcd-events.db"))
	return file, took
}

// TestFaults plays what storages do, and the end of programs at any moment, with three storages: gofakes3, versitygw and Azurite.
func TestFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		storage func(*world)
		kills   int
	}{
		"gofakes3": {inMemory, killPoints}, "versitygw": {gateway, otherKillPoints}, "azurite": {azurite, otherKillPoints},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t, tc.storage)
			w.fill(fill)
			file, _ := w.save()
			out, err := w.upload(file, "drill", 0)
			g.Expect(err).NotTo(HaveOccurred())
			url, sum := told(t, out)
			g.Expect(url).To(HaveSuffix(".db.enc"))
			g.Expect(sum.Verified).To(BeTrue())
			w.Run("When it is restored it should have every key", func(t *testing.T) { compare(t, w, startEtcd(t, w.restore(t, url, "")), sum.Revision) })
			w.shards(file, url)
			w.faults(file, url)
			w.retention(file)
			n := number(t, "DRILL_KILLS", tc.kills)
			w.kills(file, url, n)
			w.restoreKills(url, sum, n)
		})
	}
}

// retention has older backups go.
func (w *world) retention(file string) {
	w.Run("When three are made and two are kept the first should go, with all of its files", func(t *testing.T) {
		g := NewWithT(t)
		var urls []string
		for range 3 {
			var out string
			// A name is of a second, and one that is taken is left alone.
			g.Eventually(func() (err error) {
				out, err = w.run(0, append(w.uploading(file, "kept"), "--keep", "2")...)
				return err
			}).WithTimeout(time.Minute).Should(Succeed())
			url, _ := told(t, out)
			urls = append(urls, url)
		}
		_, err := w.verify(urls[0])
		g.Expect(err).To(MatchError(ContainSubstring("there is no such file")))
		for _, url := range urls[1:] {
			_, err := w.verify(url)
			g.Expect(err).NotTo(HaveOccurred())
		}
		items, err := w.open(t).List(t.Context(), "kept/", 100)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(items).To(HaveLen(6), "each has a snapshot, that of the shard, and a manifest")
	})
}

// clear frees the memory of a storage that keeps everything there.
func (w *world) clear(t *testing.T, prefix string) {
	t.Helper()
	g := NewWithT(t)
	storage := w.open(t)
	items, err := storage.List(t.Context(), prefix+"/", 100)
	g.Expect(err).NotTo(HaveOccurred())
	for _, item := range items {
		g.Expect(storage.Delete(t.Context(), item.Name)).To(Succeed())
	}
}

// TestDrill measures a backup and a restore of DRILL_BYTES, while etcd is written to.
func TestDrill(t *testing.T) {
	w := newWorld(t, inMemory)
	g := NewWithT(t)
	w.fill(number(t, "DRILL_BYTES", fill))
	writer := w.startWriter()
	g.Eventually(func() int { writer.mu.Lock(); defer writer.mu.Unlock(); return len(writer.acked) }).WithTimeout(time.Minute).Should(BeNumerically(">", 100))
	file, saved := w.save()
	t.Run("When etcd is written to all the time a backup should hold all that was acknowledged up to its revision, and nothing else", func(t *testing.T) {
		g := NewWithT(t)
		start := time.Now()
		out, err := w.upload(file, "drill", 0)
		g.Expect(err).NotTo(HaveOccurred())
		url, sum := told(t, out)
		uploaded := time.Since(start)
		g.Expect(sum.Verified).To(BeTrue())
		g.Expect(sum.Shards).To(Equal([]string{"events"}))
		g.Expect(url).To(HaveSuffix(".db.enc"))

		restored := w.restore(t, url, "")
		start = time.Now()
		target := startEtcd(t, restored)
		started := time.Since(start)
		want, got := contents(t, w.etcd, sum.Revision), contents(t, target, 0)
		delete(got, "probe")
		g.Expect(got).To(HaveLen(len(want)))
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%s is another one after the restore", k)
			}
		}
		writer.mu.Lock()
		defer writer.mu.Unlock()
		before := 0
		for k, revision := range writer.acked {
			_, there := got[k]
			if revision <= sum.Revision {
				before++
			}
			if there != (revision <= sum.Revision) {
				t.Errorf("%s was acknowledged at revision %d, the snapshot has %d, and after the restore it is there: %t", k, revision, sum.Revision, there)
			}
		}
		t.Logf("%d objects, %d of them acknowledged while the backup was made up to its revision %d, %d after it; %d bytes of etcd: snapshot %s, seal, upload and read back %s, start of the restored etcd %s; at most %d MiB of memory",
			len(got), before, sum.Revision, len(writer.acked)-before, sum.Bytes, saved.Round(time.Millisecond), uploaded.Round(time.Millisecond), started.Round(time.Millisecond), w.peak)
	})
	writer.stop()
	w.clear(t, "drill")
	w.figures(file)
}

// shards looks at the part of a backup that holds another etcd.
func (w *world) shards(file, url string) {
	w.Run("When a shard is restored it should have what it had, and no key of the main etcd", func(t *testing.T) {
		want, got := contents(t, w.shard, 0), contents(t, startEtcd(t, w.restore(t, url, "events")), 0)
		if len(want) < 300 || len(got) != len(want) {
			t.Errorf("there are %d keys, want %d", len(got), len(want))
		}
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%s is %q after the restore, and was %q", k, got[k], v)
			}
		}
	})
	w.Run("When the backup has nothing of a shard it should begin empty, unless it was there when the restore began", func(t *testing.T) {
		g := NewWithT(t)
		data := w.restore(t, url, "leases")
		g.Expect(data).NotTo(BeADirectory())
		required := filepath.Join(w.secret, backups.ShardsKey)
		g.Expect(os.WriteFile(required, []byte("events,leases"), 0o600)).To(Succeed())
		defer os.Remove(required)
		_, err := w.fetch(url, "leases", filepath.Join(t.TempDir(), "snapshot.db"))
		g.Expect(err).To(MatchError(ContainSubstring("no longer has shard leases")))
	})
	w.Run("When the snapshot of a shard was not made there should be no backup, and nothing of it be left", func(t *testing.T) {
		g := NewWithT(t)
		alone := filepath.Join(t.TempDir(), "snapshot.db")
		g.Expect(os.Link(file, alone)).To(Succeed())
		_, err := w.upload(alone, "without", 0)
		g.Expect(err).To(MatchError(ContainSubstring("shard events")))
		items, err := w.open(t).List(t.Context(), "without/", 10)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(items).To(BeEmpty())
	})
}

// restore fills a new data folder from a backup, as the init container does.
func (w *world) restore(t *testing.T, url, shard string) string {
	t.Helper()
	g := NewWithT(t)
	volume := t.TempDir()
	template := filepath.Join(t.TempDir(), "etcd.yaml")
	data := filepath.Join(volume, "data")
	g.Expect(os.WriteFile(template, []byte("name: etcd-0\ndata-dir: "+data+"\ninitial-cluster: etcd-0=http://127.0.0.1:2380\ninitial-cluster-token: demo\n"), 0o600)).To(Succeed())
	r := etcdrestore.Restore{URL: url, Shard: shard, Template: template, DataDir: data, MaxBytes: bundle.MaxSnapshot, Log: io.Discard,
		Fetch: func(_ context.Context, url, shard, file string) error {
			_, err := w.fetch(url, shard, file)
			return err
		}}
	g.Expect(r.Run(t.Context())).To(Succeed())
	return data
}

// faults plays what a storage can do.
func (w *world) faults(file, url string) {
	for i, tc := range []struct {
		name, kind, match string
		times             int
		read              bool
		want              string // of the error; empty: it succeeds
	}{
		{"When the storage is busy for a while it should arrive", "busy", "", 5, false, ""},
		{"When the storage is slow it should arrive", "slow", "", 3, false, ""},
		{"When the storage loses what it took it should be noticed, and no backup be there", "lost", ".db.enc", 100, false, "InvalidPart|reading back what was written"},
		{"When the storage loses a shard it should be noticed, and no backup be there", "lost", ".etcd-events.db.enc", 100, false, "InvalidPart|reading back what was written"},
		{"When the storage changes a bit of a shard it should be noticed", "flip", ".etcd-events.db.enc", 1, true, "shard events: .*is damaged"},
		{"When reading back breaks off it should go on", "partial", ".db.enc", 1, true, ""},
		{"When reading breaks off again and again it should say how far it came", "partial", ".db.enc", 1000, true, "bytes"},
		{"When the storage changes a bit of what it gives it should be noticed", "flip", ".db.enc", 1, true, "is damaged"},
		{"When the manifest is changed it should be noticed", "flip", ".json", 1, true, "manifest"},
	} {
		w.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			w.fault(tc.kind, tc.match, tc.times)
			var err error
			if tc.read {
				_, err = w.verify(url)
			} else {
				_, err = w.upload(file, fmt.Sprintf("fault-%d", i), 0)
			}
			w.heal()
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(HaveOccurred())
			g.Expect(err.Error()).To(MatchRegexp(tc.want))
			g.Expect(err.Error()).NotTo(ContainSubstring("0123456789abcdef"), "a key is a secret")
		})
	}
	w.Run("When the key is another one it should be refused by name", func(t *testing.T) {
		g := NewWithT(t)
		key := filepath.Join(w.secret, "encryption-key")
		right, err := os.ReadFile(key)
		g.Expect(err).NotTo(HaveOccurred())
		defer func() { g.Expect(os.WriteFile(key, right, 0o600)).To(Succeed()) }()
		g.Expect(os.WriteFile(key, []byte(strings.Repeat("x", 32)), 0o600)).To(Succeed())
		_, err = w.verify(url)
		g.Expect(err).To(MatchError(ContainSubstring("another key")))
	})
}

// kills ends uploads at any moment. Whatever is left must be a whole backup or none.
func (w *world) kills(file, good string, n int) {
	w.Run("When an upload is killed at any moment what is left should be a whole backup or none, and older ones stay", func(t *testing.T) {
		g := NewWithT(t)
		start := time.Now()
		_, err := w.upload(file, "whole", 0)
		g.Expect(err).NotTo(HaveOccurred())
		length := time.Since(start)
		whole, silent, none := 0, 0, 0
		storage := w.open(t)
		for i := range n {
			prefix := fmt.Sprintf("kill-%d", i)
			out, err := w.upload(file, prefix, time.Duration(mathrand.Float64()*1.1*float64(length))+time.Millisecond)
			if err == nil {
				url, _ := told(t, out)
				if _, err := w.verify(url); err != nil {
					t.Errorf("kill point %d: it ended well, and can't be read: %v", i, err)
				}
				whole++
				continue
			}
			// It may have been killed when all was done but to say so. What has a manifest must be whole.
			items, err := storage.List(t.Context(), prefix+"/", 10)
			g.Expect(err).NotTo(HaveOccurred())
			left := ""
			for _, item := range items {
				if strings.HasSuffix(item.Name, bundle.ManifestEnd) {
					left = storage.URL(strings.TrimSuffix(item.Name, bundle.ManifestEnd) + bundle.SealedSnapshotEnd)
				}
			}
			if left != "" {
				if _, err := w.verify(left); err != nil {
					t.Errorf("kill point %d: there is a manifest, and the backup can't be read: %v", i, err)
				}
				silent++
				continue
			}
			none++
			// The next one of that cluster isn't held up by what is left.
			if i%10 == 0 {
				if _, err := w.upload(file, prefix+"/again", 0); err != nil {
					t.Errorf("kill point %d: the next backup fails: %v", i, err)
				}
			}
		}
		_, err = w.verify(good)
		g.Expect(err).NotTo(HaveOccurred())
		t.Logf("%d kill points in %s: %d backups ended before, %d were whole when they were killed, %d are not there", n, length.Round(time.Millisecond), whole, silent, none)
	})
}
