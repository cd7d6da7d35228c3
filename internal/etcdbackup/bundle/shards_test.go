package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// shard is one of a manifest.
func shard(name string) Shard {
	return Shard{Name: name, Etcd: Etcd{Revision: 3, Bytes: 20}, Snapshot: File{Name: "1" + ShardEnd(name) + SealedSnapshotEnd, Bytes: 5, SHA256: strings.Repeat("1", 64)}}
}

func TestManifestOfShards(t *testing.T) {
	t.Run("When there are shards it should name each, and older versions should refuse it", func(t *testing.T) {
		g, m := NewWithT(t), manifest()
		m.Etcd.Bytes, m.Shards = 7, []Shard{shard("events"), shard("leases")}
		raw, err := m.Encode(key(1))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(raw)).To(ContainSubstring(`"format": 2`))
		got, err := DecodeManifest(raw, key(1))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.ShardNames()).To(Equal([]string{"events", "leases"}))
		g.Expect(got.Stored()).To(BeEquivalentTo(9 + 5 + 5))
		g.Expect(got.Largest()).To(BeEquivalentTo(20))
		p, there := got.Part("leases")
		g.Expect(there).To(BeTrue())
		g.Expect(p.Snapshot.Name).To(Equal("1.etcd-leases.db.enc"))
		_, there = got.Part("nodes")
		g.Expect(there).To(BeFalse())
	})
	t.Run("When there are none it should be as before, for versions that know none", func(t *testing.T) {
		raw, err := manifest().Encode(key(1))
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(raw)).To(ContainSubstring(`"format": 1`))
		g.Expect(string(raw)).NotTo(ContainSubstring("shards"))
	})
	// Whoever has the key can sign anything: what is signed is looked at all the same.
	for name, tc := range map[string]struct {
		change func(*Manifest)
		want   string
	}{
		"When a shard's file is elsewhere it should be refused":       {func(m *Manifest) { m.Shards[0].Snapshot.Name = "../1.db" }, "which no backup has"},
		"When a shard has no file it should be refused":               {func(m *Manifest) { m.Shards[0].Snapshot = File{} }, "which no backup has"},
		"When a shard's name leads elsewhere it should be refused":    {func(m *Manifest) { m.Shards[0].Name = "../etcd" }, "which is not a valid name"},
		"When a shard's name is a flag it should be refused":          {func(m *Manifest) { m.Shards[0].Name = "-x" }, "which is not a valid name"},
		"When a shard has no name it should be refused":               {func(m *Manifest) { m.Shards[0].Name = "" }, "which is not a valid name"},
		"When a shard's name is too long it should be refused":        {func(m *Manifest) { m.Shards[0].Name = strings.Repeat("a", 49) }, "which is not a valid name"},
		"When a shard is there twice it should be refused":            {func(m *Manifest) { m.Shards[1].Name = "events" }, "names shard events twice"},
		"When a shard is saved and isn't it should be refused":        {func(m *Manifest) { m.Etcd.Shards = []string{"events"} }, "names shard events twice"},
		"When two etcds have one file it should be refused":           {func(m *Manifest) { m.Shards[0].Snapshot = m.Snapshot }, `names file "1.db.enc" twice`},
		"When there are more than a cluster has it should be refused": {func(m *Manifest) { m.Shards = many(11) }, "at most 10"},
	} {
		t.Run(name, func(t *testing.T) {
			g, m := NewWithT(t), manifest()
			m.Shards = []Shard{shard("events"), shard("leases")}
			tc.change(&m)
			raw, err := m.Encode(key(1))
			g.Expect(err).NotTo(HaveOccurred())
			_, err = DecodeManifest(raw, key(1))
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
	t.Run("When shards are in a manifest of a form that has none it should be refused", func(t *testing.T) {
		g, m := NewWithT(t), manifest()
		m.Shards = []Shard{shard("events")}
		raw, err := m.Encode(nil)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = DecodeManifest(bytes.Replace(raw, []byte(`"format": 2`), []byte(`"format": 1`), 1), nil)
		g.Expect(err).To(MatchError(ContainSubstring("format 1 does not support")))
	})
}

func many(n int) []Shard {
	var out []Shard
	for i := range n {
		out = append(out, shard(fmt.Sprintf("shard-%d", i)))
	}
	return out
}

// folder is a storage.
type folder map[string][]byte

func (f folder) Get(_ context.Context, name string) (io.ReadCloser, int64, error) {
	raw, there := f[name]
	if !there {
		return nil, 0, errors.New("there is no " + name)
	}
	return io.NopCloser(bytes.NewReader(raw)), int64(len(raw)), nil
}

// unmeasured is a storage that doesn't say how long files are.
type unmeasured struct{ folder }

func (u unmeasured) Get(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	body, _, err := u.folder.Get(ctx, name)
	return body, -1, err
}

func TestVerifyUnmeasured(t *testing.T) {
	t.Run("When the storage doesn't say how long files are they should be read all the same", func(t *testing.T) {
		_, _, err := Verify(t.Context(), unmeasured{backup(t)}, "p/1.db.enc", key(1))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
	for name, change := range map[string]func([]byte) []byte{
		"When such a file is cut off it should be refused":  func(b []byte) []byte { return b[:500] },
		"When such a file is too long it should be refused": func(b []byte) []byte { return append(b, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			f := backup(t)
			f["p/1.db.enc"] = change(f["p/1.db.enc"])
			_, _, err := Verify(t.Context(), unmeasured{f}, "p/1.db.enc", key(1))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("the snapshot: 1.db.enc is damaged")))
		})
	}
}

// snapshotWith looks like one of etcd's.
func snapshotWith(b byte) []byte {
	db := bytes.Repeat([]byte{b}, 1024)
	binary.LittleEndian.PutUint32(db[boltAt:], bolt)
	sum := sha256.Sum256(db)
	return append(db, sum[:]...)
}

func fileOf(name string, raw []byte) File {
	sum := sha256.Sum256(raw)
	return File{Name: name, Bytes: int64(len(raw)), SHA256: hex.EncodeToString(sum[:])}
}

// backup is a whole one in a folder, with shard events.
func backup(t *testing.T) folder {
	t.Helper()
	main, events := sealed(t, key(1), snapshotWith('m')), sealed(t, key(1), snapshotWith('e'))
	m := manifest()
	m.Snapshot = fileOf("1.db.enc", main)
	m.Shards = []Shard{{Name: "events", Snapshot: fileOf("1.etcd-events.db.enc", events)}}
	raw, err := m.Encode(key(1))
	if err != nil {
		t.Fatal(err)
	}
	return folder{"p/1.json": raw, "p/1.db.enc": main, "p/1.etcd-events.db.enc": events}
}

func TestVerifyShards(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(folder)
		want   string
	}{
		"When each snapshot is whole it should pass":          {func(folder) {}, ""},
		"When a shard's snapshot is gone it should say so":    {func(f folder) { delete(f, "p/1.etcd-events.db.enc") }, "the snapshot of shard events: there is no p/1.etcd-events.db.enc"},
		"When a shard's snapshot is changed it should say so": {func(f folder) { f["p/1.etcd-events.db.enc"][200] ^= 1 }, "the snapshot of shard events: 1.etcd-events.db.enc is damaged"},
		"When a shard's snapshot is cut off it should say so": {func(f folder) { f["p/1.etcd-events.db.enc"] = f["p/1.etcd-events.db.enc"][:500] }, "has 500 bytes, and the manifest says"},
		"When snapshots are exchanged it should say so": {func(f folder) {
			f["p/1.etcd-events.db.enc"], f["p/1.db.enc"] = f["p/1.db.enc"], f["p/1.etcd-events.db.enc"]
		}, "the snapshot: 1.db.enc is damaged"},
		"When the main snapshot is gone it should say so": {func(f folder) { delete(f, "p/1.db.enc") }, "the snapshot: there is no"},
	} {
		t.Run(name, func(t *testing.T) {
			f := backup(t)
			tc.change(f)
			_, _, err := Verify(t.Context(), f, "p/1.db.enc", key(1))
			if tc.want == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}
