package imagefiles

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/release/releasetest"
)

// published is an image with one layer of any entries, over another with files.
func published(t *testing.T, below map[string][]byte, entries ...tar.Header) (registry *releasetest.Registry, image string) {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, h := range entries {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(releasetest.Image(t, below), layer)
	if err != nil {
		t.Fatal(err)
	}
	registry = releasetest.New(t)
	return registry, registry.Push(t, "image:1", img)
}

func file(name string, size int64) tar.Header {
	return tar.Header{Name: name, Size: size, Mode: 0o4755, Typeflag: tar.TypeReg}
}

var wants = []Want{{Path: "usr/bin/tool"}, {Path: "etc/templates"}, {Path: "etc/more", Optional: true}}

func TestGet(t *testing.T) {
	below := map[string][]byte{"usr/bin/tool": []byte("old"), "etc/templates/a/b": []byte("kept"), "etc/templates/gone": []byte("x"), "etc/passwd": []byte("root")}
	t.Run("When an image has the files it should give them as its uppermost layers have them, and nothing else", func(t *testing.T) {
		g := NewWithT(t)
		_, image := published(t, below, file("./usr/bin/tool", 3), file("etc/templates/.wh.gone", 0), file("../../../outside", 3), file("/etc/templates/../passwd", 3))
		s := &Store{Root: filepath.Join(t.TempDir(), "images")}
		dir, err := s.Get(t.Context(), Request{Image: image, Files: wants})
		g.Expect(err).NotTo(HaveOccurred())
		var found []string
		g.Expect(filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
			if err == nil && !info.IsDir() {
				found = append(found, path[len(dir)+1:])
			}
			return err
		})).To(Succeed())
		g.Expect(found).To(ConsistOf("usr/bin/tool", "etc/templates/a/b"))
		info, err := os.Stat(filepath.Join(dir, "usr/bin/tool"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Size()).To(BeEquivalentTo(3))
		g.Expect(info.Mode()).To(Equal(os.FileMode(0o700)), "nobody else may write it, and it gets no rights of another user")
		g.Expect(filepath.Join(filepath.Dir(s.Root), "outside")).NotTo(BeAnExistingFile())
	})
	for name, tc := range map[string]struct {
		entries []tar.Header
		limits  Limits
		want    error
	}{
		"When a file is a link it should not follow it":                    {entries: []tar.Header{{Name: "usr/bin/tool", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}}, want: ErrHostile},
		"When a folder is a link it should not follow it":                  {entries: []tar.Header{{Name: "etc/templates", Linkname: "/etc", Typeflag: tar.TypeSymlink}}, want: ErrHostile},
		"When a file is a hard link to another it should refuse":           {entries: []tar.Header{{Name: "usr/bin/tool", Linkname: "etc/shadow", Typeflag: tar.TypeLink}}, want: ErrHostile},
		"When a file is a device it should refuse":                         {entries: []tar.Header{{Name: "etc/templates/null", Typeflag: tar.TypeChar}}, want: ErrHostile},
		"When files are larger than they may be it should refuse":          {entries: []tar.Header{file("usr/bin/tool", 2000)}, limits: Limits{Written: 1000}, want: ErrHostile},
		"When there are more files than may be it should refuse":           {entries: []tar.Header{file("etc/templates/1", 1), file("etc/templates/2", 1)}, limits: Limits{Files: 1}, want: ErrHostile},
		"When the archive unpacks to too much it should refuse":            {entries: []tar.Header{file("junk", 1<<20)}, limits: Limits{Unpacked: 1 << 16}, want: ErrHostile},
		"When the archive has too many entries it should refuse":           {entries: []tar.Header{file("a", 1), file("b", 1), file("c", 1)}, limits: Limits{Entries: 2}, want: ErrHostile},
		"When the layers are larger than they may be it should refuse":     {entries: []tar.Header{file("a", 1)}, limits: Limits{Compressed: 10}, want: ErrHostile},
		"When a layer has removed a file it should say that it is missing": {entries: []tar.Header{file("usr/.wh.bin", 0)}, want: ErrMissing},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, image := published(t, below, tc.entries...)
			s := &Store{Root: filepath.Join(t.TempDir(), "images"), Limits: tc.limits}
			_, err := s.Get(t.Context(), Request{Image: image, Files: wants})
			if tc.limits.Compressed == 0 { // which bounds answers of the registry, too
				g.Expect(err).To(MatchError(tc.want))
			}
			g.Expect(err).To(HaveOccurred())
			left, err := os.ReadDir(s.Root)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(left).To(BeEmpty(), "nothing half-made stays")
		})
	}
	t.Run("When there are more folders than are kept those that nobody used for longest should go", func(t *testing.T) {
		g := NewWithT(t)
		s := &Store{Root: filepath.Join(t.TempDir(), "images"), Keep: 1}
		for range 3 {
			_, image := published(t, below, file("usr/bin/tool", 3))
			_, err := s.Get(t.Context(), Request{Image: image, Files: wants})
			g.Expect(err).NotTo(HaveOccurred())
		}
		left, err := os.ReadDir(s.Root)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(left)).To(BeNumerically("<=", 2))
	})
}
