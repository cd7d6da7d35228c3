package atomicfile

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestWrite(t *testing.T) {
	t.Run("When a file is new it should have its content and exactly its permissions", func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "f")
		g.Expect(Write(path, []byte("a"), 0o666)).To(Succeed())
		info, err := os.Stat(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o666))
	})
	t.Run("When a file is there others should never see a part of it", func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "f")
		contents := [][]byte{bytes.Repeat([]byte("a"), 1<<16), bytes.Repeat([]byte("b"), 1<<15)}
		g.Expect(Write(path, contents[0], 0o600)).To(Succeed())
		done := make(chan error, 1)
		go func() {
			for i := range 100 {
				if err := Write(path, contents[i%2], 0o600); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		for over := false; !over; {
			select {
			case err := <-done:
				g.Expect(err).NotTo(HaveOccurred())
				over = true
			default:
			}
			seen, err := os.ReadFile(path)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(bytes.Equal(seen, contents[0]) || bytes.Equal(seen, contents[1])).To(BeTrue(), "a part of %d bytes was seen", len(seen))
		}
	})
	t.Run("When it can't be written nothing should be left, and the file be named", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		path := filepath.Join(dir, "f")
		g.Expect(os.Mkdir(path, 0o700)).To(Succeed()) // a folder can't be replaced by a file
		g.Expect(Write(path, []byte("a"), 0o600)).To(MatchError(ContainSubstring("writing " + path)))
		entries, err := os.ReadDir(dir)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(entries).To(HaveLen(1))
	})
}
