package upload

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/etcdbackup/upload/store"
)

// shelf is a storage.
type shelf map[string][]byte

func (s shelf) Get(_ context.Context, name string) (io.ReadCloser, int64, error) {
	raw, there := s[name]
	if !there {
		return nil, 0, store.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(raw)), int64(len(raw)), nil
}

func (s shelf) Put(_ context.Context, name string, body io.Reader) (err error) {
	if _, there := s[name]; there {
		return store.ErrExists
	}
	s[name], err = io.ReadAll(body)
	return err
}

func (s shelf) List(_ context.Context, prefix string, _ int) ([]store.Item, error) {
	var items []store.Item
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if strings.HasPrefix(name, prefix) {
			items = append(items, store.Item{Name: name})
		}
	}
	return items, nil
}

func (s shelf) Delete(_ context.Context, name string) error { delete(s, name); return nil }
func (s shelf) URL(name string) string                      { return backups.Scheme + "backups/" + name }

// key is what backups are sealed with here.
var key = bundle.Key(bytes.Repeat([]byte{1}, bundle.KeySize))

// now is when the newest backup was made.
var now = time.Unix(1764000000, 0).UTC()

// hold puts a backup with its manifest into the storage.
func (s shelf) hold(t *testing.T, stem string, created time.Time, k bundle.Key) bundle.Manifest {
	t.Helper()
	end, raw := bundle.SnapshotEnd, plainSnapshot()
	if k != nil {
		end, raw = bundle.SealedSnapshotEnd, sealed(t, raw)
	}
	sum := sha256.Sum256(raw)
	m := bundle.Manifest{Created: created, Cluster: bundle.Cluster{UID: "1"}, Snapshot: bundle.File{Name: filepath.Base(stem) + end, Bytes: int64(len(raw)), SHA256: hex.EncodeToString(sum[:])}}
	encoded, err := m.Encode(k)
	if err != nil {
		t.Fatal(err)
	}
	s[stem+end], s[stem+bundle.ManifestEnd] = raw, encoded
	return m
}

// plainSnapshot looks like one of etcd's.
func plainSnapshot() []byte {
	db := make([]byte, 1024)
	binary.LittleEndian.PutUint32(db[16:], 0xED0CDAED)
	sum := sha256.Sum256(db)
	return append(db, sum[:]...)
}

func sealed(t *testing.T, plain []byte) []byte {
	t.Helper()
	g := NewWithT(t)
	r, err := key.Seal(bytes.NewReader(plain), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	raw, err := io.ReadAll(r)
	g.Expect(err).NotTo(HaveOccurred())
	return raw
}

func TestRetention(t *testing.T) {
	for name, tc := range map[string]struct {
		key bundle.Key
		// others are in the storage beside demo/0, demo/1 and demo/2, of which the last was made now, each an hour after the one before.
		others        func(*testing.T, shelf)
		removed, note string
	}{
		"When there are more than are kept the oldest should go":                    {key, nil, "demo/0", ""},
		"When there are more than are kept without a key the oldest should go, too": {nil, nil, "demo/0", ""},
		"When somebody puts manifests of the future there, without the key, they should count for nothing": {key, func(t *testing.T, s shelf) {
			s.hold(t, "demo/8", now.AddDate(70, 0, 0), nil)
			s.hold(t, "demo/9", now.AddDate(70, 0, 0), nil)
		}, "demo/0", ""},
		"When backups were made without the key they should neither count nor go": {key, func(t *testing.T, s shelf) {
			s.hold(t, "demo/9", now.Add(-time.Minute), nil)
		}, "demo/0", ""},
		"When there is no key those that were made with one should neither count nor go": {nil, func(t *testing.T, s shelf) {
			s.hold(t, "demo/8", now.Add(-24*time.Hour), key)
			s.hold(t, "demo/9", now.Add(-time.Minute), key)
		}, "demo/0", ""},
		"When there is no key and manifests are of the future they should not count, and it should be said": {nil, func(t *testing.T, s shelf) {
			s.hold(t, "demo/8", now.AddDate(70, 0, 0), nil)
			s.hold(t, "demo/9", now.AddDate(70, 0, 0), nil)
		}, "demo/0", "2 backups dated more than 10m0s in the future are kept and not counted: check the clocks, or delete them"},
		"When the clock of who made one is a little ahead it should count": {key, func(t *testing.T, s shelf) {
			s.hold(t, "demo/9", now.Add(time.Minute), key)
		}, "demo/0 demo/1", ""},
		"When a manifest was copied under other names the copies should count for nothing": {key, func(_ *testing.T, s shelf) {
			s["demo/8.json"], s["demo/9.json"], s["demo/sub/1.json"] = s["demo/1.json"], s["demo/1.json"], s["demo/1.json"]
		}, "demo/0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), shelf{}
			var newest bundle.Manifest
			for i := range 3 {
				newest = s.hold(t, fmt.Sprintf("demo/%d", i), now.Add(time.Duration(i-2)*time.Hour), tc.key)
			}
			if tc.others != nil {
				tc.others(t, s)
			}
			want := maps.Clone(s)
			gone := strings.Fields(tc.removed)
			for _, stem := range gone {
				maps.DeleteFunc(want, func(name string, _ []byte) bool { return strings.HasPrefix(name, stem+".") })
			}
			removed, note, err := transfer{Upload: Upload{KeyPrefix: "demo/", Keep: 2}, store: s, key: tc.key}.prune(t.Context(), newest)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(slices.Sorted(maps.Keys(s))).To(Equal(slices.Sorted(maps.Keys(want))))
			g.Expect(removed).To(Equal(len(gone)))
			g.Expect(note).To(Equal(tc.note))
		})
	}
}

// secret serves the storage, and is the folder with the keys of Secret etcd-restore by which it is read.
func (s shelf) secret(t *testing.T, k bundle.Key) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, there := s[strings.TrimPrefix(r.URL.Path, "/backups/")]
		if !there {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "<Error><Code>NoSuchKey</Code></Error>")
			return
		}
		_, _ = w.Write(raw)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	files := map[string]string{backups.CredentialsKey: "[default]\naws_access_key_id = a\naws_secret_access_key = b\nendpoint_url = " + server.URL + "\n"}
	if k != nil {
		files[backups.EncryptionKey] = string(k)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestFetch: etcd starts from what is read here.
func TestFetch(t *testing.T) {
	for name, tc := range map[string]struct {
		files func(*testing.T, shelf)
		file  string
		key   bundle.Key
		want  string // of the error; empty: the snapshot is written
	}{
		"When the backup is sealed it should be read": {func(t *testing.T, s shelf) { s.hold(t, "demo/1", now, key) }, "demo/1.db.enc", key, ""},
		"When somebody without the key replaced the backup it should be refused": {func(t *testing.T, s shelf) {
			s.hold(t, "demo/1", now, nil)
			s["demo/1.db.enc"] = plainSnapshot()
		}, "demo/1.db.enc", key, "the manifest is not authenticated with the key that was given"},
		"When somebody took the manifest away and replaced the snapshot it should be refused": {func(_ *testing.T, s shelf) { s["demo/1.db.enc"] = plainSnapshot() }, "demo/1.db.enc", key,
			"s3://backups/demo/1.db.enc: the file is not sealed, although a key was given"},
		"When a sealed snapshot has no manifest it should be read":                     {func(t *testing.T, s shelf) { s["demo/1.db.enc"] = sealed(t, plainSnapshot()) }, "demo/1.db.enc", key, ""},
		"When a snapshot is the user's own it should be read though a key is there":    {func(_ *testing.T, s shelf) { s["demo/1.db"] = plainSnapshot() }, "demo/1.db", key, ""},
		"When a snapshot is the user's own it should be read without a key":            {func(_ *testing.T, s shelf) { s["demo/1.db"] = plainSnapshot() }, "demo/1.db", nil, ""},
		"When a backup was made without a key it should be read though a key is there": {func(t *testing.T, s shelf) { s.hold(t, "demo/1", now, nil) }, "demo/1.db", key, ""},
		"When a backup was made without a key it should be read without one":           {func(t *testing.T, s shelf) { s.hold(t, "demo/1", now, nil) }, "demo/1.db", nil, ""},
		"When the backup is sealed and there is no key it should say so":               {func(t *testing.T, s shelf) { s.hold(t, "demo/1", now, key) }, "demo/1.db.enc", nil, "no key was given"},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), shelf{}
			tc.files(t, s)
			dir, file := s.secret(t, tc.key), filepath.Join(t.TempDir(), "snapshot.db")
			err := fetchFrom(t.Context(), dir, s.URL(tc.file), "", file)
			if tc.want != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(os.ReadFile(file)).To(Equal(plainSnapshot()))
		})
	}
}

// TestFetchChecked: one key seals the backups of many clusters, and who may write to the storage can exchange them after the command has checked one.
func TestFetchChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		// later is what happens to backup demo/1 after it was checked, beside which there is demo/2 of another cluster.
		later func(*testing.T, shelf)
		shard string
		parts string // of the Secret; SUM stands for that of the snapshot
		want  string // of the error; empty: the snapshot is written
	}{
		"When it is as it was checked it should be read": {parts: `{"":{"sha256":"SUM"}}`},
		"When another cluster's backup was put in its place it should be refused": {later: func(t *testing.T, s shelf) { s.hold(t, "demo/1", now, key) },
			parts: `{"":{"sha256":"SUM"}}`, want: "is not the one that the restore has checked"},
		"When its manifest went and another sealed snapshot came it should be refused": {later: func(t *testing.T, s shelf) {
			delete(s, "demo/1.json")
			s["demo/1.db.enc"] = sealed(t, plainSnapshot())
		}, parts: `{"":{"sha256":"SUM"}}`, want: "s3://backups/demo/1.db.enc has no manifest any more, which it had when the restore began"},
		"When a shard was checked and is gone it should be refused":           {shard: "leases", parts: `{"":{"sha256":"SUM"},"leases":{"sha256":"SUM"}}`, want: "no longer has shard leases"},
		"When the Secret tells only how far revisions lead it should be read": {parts: `{"":{"revisionBump":7}}`},
		"When the Secret can't be understood it should be refused":            {parts: `{`, want: "key parts of Secret etcd-restore"},
		"When the manifest is a copy of another's it should be refused, also if an older command made the Secret": {
			later: func(_ *testing.T, s shelf) { s["demo/1.json"] = s["demo/2.json"] }, want: `1.json is the manifest of a backup with another name: it names "2.db.enc"`},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), shelf{}
			checked := s.hold(t, "demo/1", now, key)
			s.hold(t, "demo/2", now, key)
			if tc.later != nil {
				tc.later(t, s)
			}
			dir, file := s.secret(t, key), filepath.Join(t.TempDir(), "snapshot.db")
			if tc.parts != "" {
				g.Expect(os.WriteFile(filepath.Join(dir, "parts"), []byte(strings.ReplaceAll(tc.parts, "SUM", checked.Snapshot.SHA256)), 0o600)).To(Succeed())
			}
			err := fetchFrom(t.Context(), dir, s.URL("demo/1.db.enc"), tc.shard, file)
			if tc.want != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
				g.Expect(file).NotTo(BeAnExistingFile())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(os.ReadFile(file)).To(Equal(plainSnapshot()))
		})
	}
}
