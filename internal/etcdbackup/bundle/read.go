package bundle

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"strings"
)

const (
	// MaxSnapshot is etcd's largest database and the sum behind it.
	MaxSnapshot = 8<<30 + 1<<20
	// maxPlainObjects bounds what sealed objects may unpack to.
	maxPlainObjects = 16 << 20
)

// Getter is what is read from. It gives the length of a file, too, or -1 if it isn't known.
type Getter interface {
	Get(ctx context.Context, name string) (io.ReadCloser, int64, error)
}

// ReadManifest reads the manifest that belongs to a snapshot, by the name of either. It must be the manifest of that very snapshot: one key seals many backups, and a copy of
// another's manifest is authenticated, too. With a key, it must be authenticated, unless the name is that of a snapshot that isn't
// sealed: who gives it asks for what was made without a key. Its Key is empty then.
func ReadManifest(ctx context.Context, g Getter, name string, k Key) (Manifest, error) {
	manifest, err := ManifestOf(name)
	if err != nil {
		return Manifest{}, err
	}
	body, _, err := g.Get(ctx, manifest)
	if err != nil {
		return Manifest{}, fmt.Errorf("the manifest: %w", err)
	}
	defer func() { _ = body.Close() }() // it is only read
	raw, err := io.ReadAll(io.LimitReader(body, MaxManifest+1))
	if err != nil {
		return Manifest{}, fmt.Errorf("the manifest: %w", err)
	}
	m, err := DecodeManifest(raw, k)
	if errors.Is(err, ErrUnauthenticated) && strings.HasSuffix(name, SnapshotEnd) {
		m, err = DecodeManifest(raw, nil)
	}
	if err != nil {
		return m, err
	}
	return m, m.named(path.Base(manifest))
}

// OpenNamed opens a file of a storage as Open does, and refuses one that isn't sealed when there is a key, unless its name is that of a snapshot that isn't: anybody who may
// write to the storage could have put it there.
func OpenNamed(name string, src io.Reader, k Key) (io.Reader, error) {
	plain, sealed, err := Open(src, k)
	if err == nil && !sealed && len(k) > 0 && !strings.HasSuffix(name, SnapshotEnd) {
		return nil, ErrUnsealed
	}
	return plain, err
}

// Stored reads a file of a manifest to its end into sink, opened as OpenNamed does, and compares it with size and sum. What sink got before an error must not be used.
func Stored(ctx context.Context, g Getter, manifest string, f File, k Key, sink io.Writer) error {
	body, size, err := g.Get(ctx, Beside(manifest, f.Name))
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // it is only read
	if size >= 0 && size != f.Bytes {
		return fmt.Errorf("%s has %d bytes, and the manifest says %d", f.Name, size, f.Bytes)
	}
	sum := sha256.New()
	raw := io.TeeReader(io.LimitReader(body, f.Bytes+1), sum)
	plain, err := OpenNamed(f.Name, raw, k)
	if err == nil {
		_, err = io.Copy(sink, plain)
	}
	// What follows its end belongs to the sum, too, and says whether the file or the key is wrong.
	if _, drain := io.Copy(io.Discard, raw); err == nil {
		err = drain
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != f.SHA256 && (err == nil || errors.Is(err, ErrDamaged) || errors.Is(err, ErrUnsealed)) {
		return fmt.Errorf("%s is damaged: its SHA-256 is %s, and the manifest says %s", f.Name, got, f.SHA256)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	return nil
}

// ReadPart reads the snapshot of one etcd of a backup into sink, as etcd wrote it, and compares all that can be compared.
func ReadPart(ctx context.Context, g Getter, manifest string, p Shard, k Key, sink io.Writer) error {
	if p.Snapshot.Bytes > 2*MaxSnapshot {
		return fmt.Errorf("%s would have %d bytes: no etcd is that large", p, p.Snapshot.Bytes)
	}
	check := &Check{W: sink}
	if err := Stored(ctx, g, manifest, p.Snapshot, k, check); err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	if err := check.Err(); err != nil {
		return fmt.Errorf("%s: %s: %w", p, p.Snapshot.Name, err)
	}
	return nil
}

// Verify reads a whole backup, of every etcd, and compares all that can be compared. The objects are returned as they were sealed.
func Verify(ctx context.Context, g Getter, name string, k Key) (Manifest, []byte, error) {
	m, err := ReadManifest(ctx, g, name, k)
	if err != nil {
		return m, nil, err
	}
	for _, p := range m.Parts() {
		if err := ReadPart(ctx, g, name, p, k, io.Discard); err != nil {
			return m, nil, err
		}
	}
	objects, err := ReadObjects(ctx, g, name, m, k)
	return m, objects, err
}

// ReadObjects reads the objects of a backup, of which DecodeObjects makes objects again; nil when it has none.
func ReadObjects(ctx context.Context, g Getter, name string, m Manifest, k Key) ([]byte, error) {
	if m.Objects == nil {
		return nil, nil
	}
	if m.Objects.Bytes > MaxObjects {
		return nil, fmt.Errorf("the objects would have %d bytes, more than %d", m.Objects.Bytes, MaxObjects)
	}
	var plain bytes.Buffer
	if err := Stored(ctx, g, name, *m.Objects, k, &plain); err != nil {
		return nil, fmt.Errorf("the objects: %w", err)
	}
	if _, err := DecodeObjects(plain.Bytes()); err != nil {
		return nil, err // what can't be restored is no backup, however well it is stored
	}
	return plain.Bytes(), nil
}

// Check is a writer that knows whether what went through it is a whole snapshot of etcd: a database, and behind it its SHA-256.
type Check struct {
	// W gets all bytes; nil: nobody.
	W io.Writer

	sum  hash.Hash
	tail []byte
	head []byte
	n    int64
}

// bolt is at byte 16 of every database of etcd.
const bolt, boltAt = 0xED0CDAED, 16

// Write implements io.Writer.
func (c *Check) Write(p []byte) (int, error) {
	if c.sum == nil {
		c.sum = sha256.New()
	}
	if c.n += int64(len(p)); c.n > MaxSnapshot {
		return 0, fmt.Errorf("the snapshot has more than %d bytes: no etcd is that large", int64(MaxSnapshot))
	}
	if missing := boltAt + 4 - len(c.head); missing > 0 {
		c.head = append(c.head, p[:min(missing, len(p))]...)
	}
	// The last 32 bytes are held back: they may be the sum.
	if len(p) >= sha256.Size {
		c.sum.Write(c.tail)
		c.sum.Write(p[:len(p)-sha256.Size])
		c.tail = append(c.tail[:0], p[len(p)-sha256.Size:]...)
	} else {
		c.tail = append(c.tail, p...)
		if over := len(c.tail) - sha256.Size; over > 0 {
			c.sum.Write(c.tail[:over])
			c.tail = append(c.tail[:0], c.tail[over:]...)
		}
	}
	if c.W != nil {
		return c.W.Write(p)
	}
	return len(p), nil
}

// Bytes is how many went through.
func (c *Check) Bytes() int64 { return c.n }

// Err says at the end what is wrong.
func (c *Check) Err() error {
	// A database is a multiple of 512 bytes, so the sum shows by the length.
	if c.n < 512+sha256.Size || c.n%512 != sha256.Size {
		return fmt.Errorf("the snapshot is incomplete: %d bytes, without a checksum at the end", c.n)
	}
	if binary.LittleEndian.Uint32(c.head[boltAt:]) != bolt {
		return errors.New("the file is not a snapshot of etcd: it does not begin like a database")
	}
	if got := c.sum.Sum(nil); !bytes.Equal(got, c.tail) {
		return fmt.Errorf("the snapshot is damaged: its SHA-256 is %x, and the checksum at its end is %x", got, c.tail)
	}
	return nil
}

// Pack makes objects small.
func Pack(plain []byte) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(plain); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Unpack is the reverse of Pack, bounded.
func Unpack(packed []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpacking the objects: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(z, maxPlainObjects+1))
	if err != nil {
		return nil, fmt.Errorf("unpacking the objects: %w", err)
	}
	if len(plain) > maxPlainObjects {
		return nil, fmt.Errorf("unpacking the objects: they have more than %d bytes", maxPlainObjects)
	}
	return plain, nil
}
