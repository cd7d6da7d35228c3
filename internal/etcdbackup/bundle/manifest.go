package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"crypto/hmac"

	"hcp.internal/platform/internal/contract/backups"
)

const (
	// Format is the newest form of manifests that this version reads. A backup without shards is written in form 1, which versions read that know none.
	Format, plainFormat = 2, 1
	// maxShards is how many a HostedCluster can have, maxShardName how long their names are.
	maxShards, maxShardName = 10, 48
	// MaxManifest bounds what is read of a storage as a manifest; a real one has 2 KiB.
	MaxManifest = 64 << 10
	// MaxObjects bounds the sealed objects of a cluster: they pass through a Secret, which takes 1 MiB.
	MaxObjects = 900 << 10
)

// Ends of names in a storage.
const (
	SnapshotEnd       = ".db"
	SealedSnapshotEnd = backups.SealedEnd
	ObjectsEnd        = ".objects"
	ManifestEnd       = ".json"
)

// Manifest says what a backup is.
type Manifest struct {
	// Format is that of the manifest and of the files beside it. One that is newer than ours is refused.
	Format  int       `json:"format"`
	Created time.Time `json:"created"`
	// Backup is namespace/name of the HCPEtcdBackup; Schedule the name of the one that it was made for, or empty.
	Backup   string  `json:"backup,omitempty"`
	Schedule string  `json:"schedule,omitempty"`
	Producer string  `json:"producer,omitempty"`
	Cluster  Cluster `json:"cluster"`
	Etcd     Etcd    `json:"etcd"`
	// Key is the fingerprint of the key that the files are sealed with; empty: the snapshot isn't sealed, and there are no objects.
	Key      string `json:"key,omitempty"`
	Snapshot File   `json:"snapshot"`
	Objects  *File  `json:"objects,omitempty"`
	// Shards are the snapshots of the other etcds, sorted by name. Without one of them it is no backup.
	Shards []Shard `json:"shards,omitempty"`
	// Verified: all files were read back from the storage after they had been written.
	Verified bool `json:"verified"`
	// MAC authenticates all of the above when there is a key.
	MAC string `json:"mac,omitempty"`
}

// Cluster is whose backup it is.
type Cluster struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
	InfraID   string `json:"infraID,omitempty"`
	ClusterID string `json:"clusterID,omitempty"`
	Platform  string `json:"platform,omitempty"`
	// Release is the image, Version what it has rolled out.
	Release string `json:"release,omitempty"`
	Version string `json:"version,omitempty"`
}

// Etcd is the state that was saved.
type Etcd struct {
	// Revision is the newest in the snapshot: each write that etcd acknowledged with this revision or a lower one is in it.
	Revision int64  `json:"revision"`
	Version  string `json:"version,omitempty"`
	Keys     int    `json:"keys"`
	// Bytes is the size of the database.
	Bytes int64 `json:"bytes"`
	// Shards that aren't in the backup: their data goes with their pods, or the version that made it saved none.
	Shards []string `json:"shards,omitempty"`
}

// Shard is the snapshot of an etcd that holds some resources. Snapshots are taken one after another, the main etcd's first: each is of a moment of its own.
type Shard struct {
	Name     string `json:"name"`
	Etcd     Etcd   `json:"etcd"`
	Snapshot File   `json:"snapshot"`
}

// File is one of the files, as it is in the storage.
type File struct {
	// Name is without the folder, which is that of the manifest.
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Encode writes a manifest, authenticated when there is a key.
func (m Manifest) Encode(k Key) ([]byte, error) {
	m.Format, m.Key, m.MAC = plainFormat, k.Fingerprint(), ""
	if len(m.Shards) > 0 {
		m.Format = Format
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest: %w", err)
	}
	if len(k) > 0 {
		m.MAC = k.mac(raw)
	}
	return json.MarshalIndent(m, "", "  ")
}

// ErrForeign: a manifest was not made with the key that was given, or was changed.
var ErrForeign = errors.New("the manifest was not made with this key, or was changed since")

// ErrUnauthenticated: a key was given, and the manifest was made without one.
var ErrUnauthenticated = errors.New("the manifest is not authenticated with the key that was given: anyone who may write to the storage can have put it there. Use another backup; " +
	"one that was made without a key is read, if you trust it, by the name of its snapshot, which then ends with " + SnapshotEnd)

// DecodeManifest reads a manifest. A key proves who made it: with one, a manifest that isn't authenticated is refused, since anybody could have put it there. Without a key
// it is only read, and nothing in it is proved.
func DecodeManifest(raw []byte, k Key) (Manifest, error) {
	m := Manifest{}
	if len(raw) > MaxManifest {
		return m, fmt.Errorf("the manifest has more than %d bytes", MaxManifest)
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("the manifest can't be read: %w", err)
	}
	switch {
	case m.Format > Format:
		return m, fmt.Errorf("the backup has format %d, and this version reads %d: use a newer one", m.Format, Format)
	case m.Format < 1:
		return m, errors.New("the file is not the manifest of a backup: it has no format")
	}
	if err := m.check(); err != nil {
		return m, err
	}
	if len(k) == 0 {
		return m, nil
	}
	if m.Key != "" && m.Key != k.Fingerprint() {
		return m, fmt.Errorf("%w: the backup's is %s, the one given %s", ErrWrongKey, m.Key, k.Fingerprint())
	}
	if m.Key == "" {
		return m, ErrUnauthenticated
	}
	got := m.MAC
	m.MAC = ""
	plain, err := json.Marshal(m)
	if err != nil {
		return m, fmt.Errorf("encoding the manifest: %w", err)
	}
	if !hmac.Equal([]byte(got), []byte(k.mac(plain))) {
		return m, ErrForeign
	}
	m.MAC = got
	return m, nil
}

// shardName is what the API takes as the name of a shard.
var shardName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// check says what in a manifest can't be one of ours, whoever signed it.
func (m Manifest) check() error {
	seen := map[string]bool{}
	for _, f := range m.Files() {
		if f.Name == "" || f.Name != path.Base(f.Name) || f.Name == "." || f.Name == ".." || f.Bytes < 0 || len(f.SHA256) != 64 {
			return fmt.Errorf("the manifest names file %q, which no backup has", f.Name)
		}
		if seen[f.Name] {
			return fmt.Errorf("the manifest names file %q twice", f.Name)
		}
		seen[f.Name] = true
	}
	if len(m.Shards) > maxShards {
		return fmt.Errorf("the manifest has %d shards of etcd, and a cluster has at most %d", len(m.Shards), maxShards)
	}
	if len(m.Shards) > 0 && m.Format < Format {
		return fmt.Errorf("the manifest has shards of etcd, which format %d does not support", m.Format)
	}
	known := map[string]bool{}
	for _, name := range m.Etcd.Shards {
		known[name] = true
	}
	for _, s := range m.Shards {
		if len(s.Name) > maxShardName || !shardName.MatchString(s.Name) {
			return fmt.Errorf("the manifest names shard %q, which is not a valid name", s.Name)
		}
		if known[s.Name] {
			return fmt.Errorf("the manifest names shard %s twice", s.Name)
		}
		known[s.Name] = true
	}
	return nil
}

// named says why a manifest can't have a name: its files have another one.
func (m Manifest) named(name string) error {
	if own, err := ManifestOf(m.Snapshot.Name); err != nil || own != name {
		return fmt.Errorf("%s is the manifest of a backup with another name: it names %q", name, m.Snapshot.Name)
	}
	return nil
}

// Files are all that belong to the backup but the manifest.
func (m Manifest) Files() []File {
	var files []File
	for _, p := range m.Parts() {
		files = append(files, p.Snapshot)
	}
	if m.Objects != nil {
		files = append(files, *m.Objects)
	}
	return files
}

// Parts are the etcds of a backup. The first is the main one, whose name is empty.
func (m Manifest) Parts() []Shard {
	return append([]Shard{{Etcd: m.Etcd, Snapshot: m.Snapshot}}, m.Shards...)
}

// Part is that of a shard, or of the main etcd for no name.
func (m Manifest) Part(shard string) (Shard, bool) {
	for _, p := range m.Parts() {
		if p.Name == shard {
			return p, true
		}
	}
	return Shard{}, false
}

// ShardNames are those of the shards that are in the backup.
func (m Manifest) ShardNames() []string {
	var names []string
	for _, s := range m.Shards {
		names = append(names, s.Name)
	}
	return names
}

// Stored is how many bytes the snapshots of all etcds have in the storage.
func (m Manifest) Stored() int64 {
	n := int64(0)
	for _, p := range m.Parts() {
		n += p.Snapshot.Bytes
	}
	return n
}

// Largest is how many bytes the largest database of the backup has.
func (m Manifest) Largest() int64 {
	n := int64(0)
	for _, p := range m.Parts() {
		n = max(n, p.Etcd.Bytes)
	}
	return n
}

// String names the etcd for people.
func (s Shard) String() string {
	if s.Name == "" {
		return "the snapshot"
	}
	return "the snapshot of shard " + s.Name
}

// ShardEnd is what the name of a shard's snapshot has before the end of a snapshot.
func ShardEnd(shard string) string { return ".etcd-" + shard }

// ManifestOf is the name of the manifest beside a snapshot.
func ManifestOf(snapshot string) (string, error) {
	for _, end := range []string{SealedSnapshotEnd, SnapshotEnd, ManifestEnd} {
		if stem, ok := strings.CutSuffix(snapshot, end); ok {
			return stem + ManifestEnd, nil
		}
	}
	return "", fmt.Errorf("%q is not the snapshot of a backup: its name must end with %s or %s", path.Base(snapshot), SnapshotEnd, SealedSnapshotEnd)
}

// Beside is a file in the folder of another.
func Beside(name, file string) string { return path.Join(path.Dir(name), file) }
