package bounded_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/bounded"
)

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	NewWithT(t).Expect(os.WriteFile(path, []byte("four"), 0o600)).To(Succeed())
	t.Run("When a file is as long as it may be it should be read whole", func(t *testing.T) {
		g := NewWithT(t)
		content, err := bounded.ReadFile(path, 4)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(content)).To(Equal("four"))
	})
	t.Run("When it is longer it should be refused, by its name", func(t *testing.T) {
		_, err := bounded.ReadFile(path, 3)
		NewWithT(t).Expect(err).To(MatchError(path + " has more than 3 bytes"))
	})
	t.Run("When it has no end it should be refused", func(t *testing.T) {
		_, err := bounded.ReadFile("/dev/zero", 1<<10)
		NewWithT(t).Expect(err).To(MatchError("/dev/zero has more than 1024 bytes"))
	})
	t.Run("When there is none it should say so", func(t *testing.T) {
		_, err := bounded.ReadFile(path+"-other", 3)
		NewWithT(t).Expect(err).To(MatchError(fs.ErrNotExist))
	})
	t.Run("When it is a folder it should say so", func(t *testing.T) {
		folder := t.TempDir()
		_, err := bounded.ReadFile(folder, 3)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(folder)))
	})
}
