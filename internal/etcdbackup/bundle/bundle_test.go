package bundle

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

func key(b byte) Key { return Key(bytes.Repeat([]byte{b}, KeySize)) }

func sealed(t testing.TB, k Key, plain []byte) []byte {
	t.Helper()
	r, err := k.Seal(bytes.NewReader(plain), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func open(raw []byte, k Key) ([]byte, error) {
	r, _, err := Open(bytes.NewReader(raw), k)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func TestSeal(t *testing.T) {
	t.Run("When anything is sealed it should open to the same", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			plain := make([]byte, rapid.IntRange(1, 200_000).Draw(rt, "size"))
			_, _ = rand.Read(plain) // never fails
			raw := sealed(t, key(1), plain)
			if got, err := open(raw, key(1)); err != nil || !bytes.Equal(got, plain) {
				rt.Fatalf("opened to %d bytes, %v", len(got), err)
			}
		})
	})
	t.Run("When a bit is changed or the end is missing it should say so", func(t *testing.T) {
		plain := make([]byte, 150_000)
		raw := sealed(t, key(1), plain)
		rapid.Check(t, func(rt *rapid.T) {
			broken := bytes.Clone(raw)
			if rapid.Bool().Draw(rt, "cut") {
				broken = broken[:rapid.IntRange(len(magic), len(raw)-1).Draw(rt, "at")]
			} else {
				broken[rapid.IntRange(len(magic), len(raw)-1).Draw(rt, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
			}
			if _, err := open(broken, key(1)); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrWrongKey) {
				rt.Fatalf("it was opened: %v", err)
			}
		})
	})
	t.Run("When the key is another or missing it should say which", func(t *testing.T) {
		g, raw := NewWithT(t), sealed(t, key(1), []byte("x"))
		_, err := open(raw, key(2))
		g.Expect(err).To(MatchError(ErrWrongKey))
		_, err = open(raw, nil)
		g.Expect(err).To(MatchError(ErrNoKey))
	})
	t.Run("When a file is not sealed it should pass as it is", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(open([]byte("plain"), key(1))).To(Equal([]byte("plain")))
		g.Expect(open(nil, nil)).To(BeEmpty())
	})
}

func TestParseKey(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ParseKey(key(3))).To(Equal(key(3)))
	g.Expect(ParseKey([]byte("AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM=\n"))).To(Equal(key(3)))
	_, err := ParseKey([]byte("hunter2"))
	g.Expect(err).To(MatchError(ContainSubstring("must be 32 bytes")))
	g.Expect(err.Error()).NotTo(ContainSubstring("hunter2"), "When a key is wrong it should not be shown")
}

func manifest() Manifest {
	return Manifest{Created: time.Unix(1764000000, 0).UTC(), Cluster: Cluster{Namespace: "clusters", Name: "demo"}, Etcd: Etcd{Revision: 7},
		Snapshot: File{Name: "1.db.enc", Bytes: 9, SHA256: strings.Repeat("0", 64)}}
}

func TestManifest(t *testing.T) {
	raw, err := manifest().Encode(key(1))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	plain, err := manifest().Encode(nil)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Run("When it was made with the key it should be read", func(t *testing.T) {
		g := NewWithT(t)
		m, err := DecodeManifest(raw, key(1))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.Etcd.Revision).To(Equal(int64(7)))
		_, err = DecodeManifest(raw, nil)
		g.Expect(err).NotTo(HaveOccurred(), "When there is no key it should be listed all the same")
	})
	t.Run("When it was made without a key it should be read without one", func(t *testing.T) {
		_, err := DecodeManifest(plain, nil)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
	for name, tc := range map[string]struct {
		raw  []byte
		key  Key
		want string
	}{
		"When it was made without a key it should be refused": {plain, key(1), "the manifest is not authenticated with the key that was given"},
		"When it was changed it should be refused":            {bytes.Replace(raw, []byte(`"demo"`), []byte(`"evil"`), 1), key(1), "was changed"},
		"When its key is another it should be refused":        {raw, key(2), "another key"},
		"When it is of a newer version it should be refused":  {bytes.Replace(raw, []byte(`"format": 1`), []byte(`"format": 3`), 1), key(1), "use a newer one"},
		"When it names a file elsewhere it should be refused": {bytes.Replace(raw, []byte("1.db.enc"), []byte("../1.db"), 1), key(1), "which no backup has"},
		"When it is something else it should be refused":      {[]byte("{}"), key(1), "no format"},
		"When it is no JSON it should be refused":             {[]byte("<?xml"), key(1), "the manifest can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeManifest(tc.raw, tc.key)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func FuzzManifest(f *testing.F) {
	raw, _ := manifest().Encode(key(1))
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := DecodeManifest(raw, key(1))
		if err == nil && strings.Contains(m.Snapshot.Name, "/") {
			t.Errorf("%q leads elsewhere", m.Snapshot.Name)
		}
	})
}
