package store

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestVolume(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	v, err := Open(t.Context(), Options{Volume: dir, Bucket: "disk"})
	g.Expect(err).NotTo(HaveOccurred())
	put := func(name, content string) error { return v.Put(t.Context(), name, strings.NewReader(content)) }
	t.Run("When a file is written it should be read and listed", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(put("clusters/demo/1.db", "content")).To(Succeed())
		g.Expect(put("clusters/demo2/1.db", "another")).To(Succeed())
		r, size, err := v.Get(t.Context(), "clusters/demo/1.db")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(size).To(Equal(int64(7)))
		g.Expect(io.ReadAll(r)).To(Equal([]byte("content")))
		g.Expect(r.Close()).To(Succeed())
		items, err := v.List(t.Context(), "clusters/demo/", 10)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(items).To(HaveLen(1))
		g.Expect(v.URL(items[0].Name)).To(Equal("s3://disk/clusters/demo/1.db"))
		g.Expect(v.List(t.Context(), "clusters/none/", 10)).To(BeEmpty())
	})
	t.Run("When a name is taken it should be left alone", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(put("clusters/demo/1.db", "evil")).To(MatchError(ErrExists))
		raw, err := os.ReadFile(filepath.Join(dir, "disk/clusters/demo/1.db"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(raw)).To(Equal("content"))
	})
	t.Run("When writing breaks off nothing should be there", func(t *testing.T) {
		g := NewWithT(t)
		broken := io.MultiReader(strings.NewReader("half"), failing{errors.New("it broke")})
		g.Expect(v.Put(t.Context(), "half.db", broken)).To(MatchError(ContainSubstring("it broke")))
		_, _, err := v.Get(t.Context(), "half.db")
		g.Expect(err).To(MatchError(ErrNotFound))
		g.Expect(put("half.db", "whole")).To(Succeed())
	})
	t.Run("When a name or a link leads out of it it should be refused", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(put("../out", "x")).NotTo(Succeed())
		g.Expect(os.Symlink("/etc", filepath.Join(dir, "disk", "link"))).To(Succeed())
		_, _, err := v.Get(t.Context(), "link/hostname")
		g.Expect(err).To(HaveOccurred())
		_, err = Open(t.Context(), Options{Volume: dir, Bucket: "../disk"})
		g.Expect(err).To(MatchError(ContainSubstring("not the name of a folder")))
	})
	t.Run("When a file is deleted it should be gone, and again be no error", func(t *testing.T) {
		g := NewWithT(t)
		for range 2 {
			g.Expect(v.Delete(t.Context(), "clusters/demo/1.db")).To(Succeed())
		}
		_, _, err := v.Get(t.Context(), "clusters/demo/1.db")
		g.Expect(err).To(MatchError(ErrNotFound))
	})
}
