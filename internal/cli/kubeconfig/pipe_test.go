//go:build linux

package kubeconfig

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/cli/outputfile"
)

func TestWritePrivateToPipe(t *testing.T) {
	for _, name := range []string{"pipe", "link"} {
		t.Run("When the file is a "+name+" that a program reads it should be written to and stay what it is", func(t *testing.T) {
			g := NewWithT(t)
			dir := t.TempDir()
			pipe := filepath.Join(dir, "pipe")
			g.Expect(syscall.Mkfifo(pipe, 0o600)).To(Succeed())
			g.Expect(os.Symlink("pipe", filepath.Join(dir, "link"))).To(Succeed())
			reader, err := os.OpenFile(pipe, os.O_RDWR, 0) // for writing, too: then it waits for nobody
			g.Expect(err).NotTo(HaveOccurred())
			defer reader.Close()
			g.Expect(outputfile.Write(filepath.Join(dir, name), []byte("content"), outputfile.Private)).To(Succeed())
			info, err := os.Lstat(pipe)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(info.Mode().Type()).To(Equal(fs.ModeNamedPipe))
			g.Expect(os.Readlink(filepath.Join(dir, "link"))).To(Equal("pipe"))
			entries, err := os.ReadDir(dir)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(entries).To(HaveLen(2))
			got := make([]byte, 100)
			n, err := reader.Read(got)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(got[:n])).To(Equal("content"))
		})
	}
	t.Run("When the file is the standard output of the program, a pipe, it should be written to", func(t *testing.T) {
		g := NewWithT(t)
		r, w, err := os.Pipe()
		g.Expect(err).NotTo(HaveOccurred())
		defer r.Close()
		link := filepath.Join(t.TempDir(), "stdout") // as /dev/stdout is one
		g.Expect(os.Symlink(fmt.Sprintf("/proc/self/fd/%d", w.Fd()), link)).To(Succeed())
		g.Expect(outputfile.Write(link, []byte("content"), outputfile.Private)).To(Succeed())
		g.Expect(w.Close()).To(Succeed())
		got := make([]byte, 100)
		n, err := r.Read(got)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(got[:n])).To(Equal("content"))
		g.Expect(os.Readlink(link)).To(HavePrefix("/proc/self/fd/"))
	})
}
