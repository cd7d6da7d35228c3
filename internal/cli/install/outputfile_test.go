package install

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/cli/outputfile"
)

// What --output-file names is replaced as a whole, or not at all, and only its owner can read Secrets in it.
func TestOutputFile(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "pull-secret.json")
	NewWithT(t).Expect(os.WriteFile(secret, []byte(`{"auths":{}}`), 0o600)).To(Succeed())
	render := func(path string, more ...string) (string, error) {
		cmd := Command()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(append([]string{"render", "--hypershift-image", "r/i:1", "--outputs", "resources", "--pull-secret", secret, "--output-file", path}, more...))
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	readable := func(g Gomega, path string) string {
		g.Expect(os.WriteFile(path, []byte("old"), 0o600)).To(Succeed())
		g.Expect(os.Chmod(path, 0o644)).To(Succeed()) // whatever the umask is
		return path
	}
	content := func(g Gomega, path string) string {
		raw, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		return string(raw)
	}
	mode := func(g Gomega, path string) os.FileMode {
		info, err := os.Lstat(path)
		g.Expect(err).NotTo(HaveOccurred())
		return info.Mode()
	}
	t.Run("When the file is new only its owner should read it", func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "install.yaml")
		out, err := render(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(BeEmpty())
		g.Expect(content(g, path)).To(ContainSubstring("kind: Deployment"))
		g.Expect(mode(g, path)).To(Equal(os.FileMode(0o600)))
	})
	t.Run("When the command is refused the file should stay as it was", func(t *testing.T) {
		g := NewWithT(t)
		path := readable(g, filepath.Join(t.TempDir(), "install.yaml"))
		_, err := render(path, "--replicas", "77")
		g.Expect(err).To(MatchError(ContainSubstring("--replicas 77")))
		g.Expect(content(g, path)).To(Equal("old"))
		none := filepath.Join(t.TempDir(), "none.yaml")
		_, err = render(none, "--replicas", "77")
		g.Expect(err).To(HaveOccurred())
		g.Expect(none).NotTo(BeAnExistingFile())
	})
	t.Run("When everybody can read the file it should be closed for Secrets", func(t *testing.T) {
		g := NewWithT(t)
		path := readable(g, filepath.Join(t.TempDir(), "install.yaml"))
		_, err := render(path, "--render-sensitive")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(content(g, path)).To(ContainSubstring(".dockerconfigjson: ey"))
		g.Expect(mode(g, path)).To(Equal(os.FileMode(0o600)))
	})
	t.Run("When there are no Secrets in it the file should stay as readable as it was", func(t *testing.T) {
		g := NewWithT(t)
		path := readable(g, filepath.Join(t.TempDir(), "install.yaml"))
		_, err := render(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(content(g, path)).To(ContainSubstring(".dockerconfigjson: REDACTED"))
		g.Expect(mode(g, path)).To(Equal(os.FileMode(0o644)))
	})
	t.Run("When a link leads to the file it should stay one", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		path, link := readable(g, filepath.Join(dir, "install.yaml")), filepath.Join(dir, "link.yaml")
		g.Expect(os.Symlink("install.yaml", link)).To(Succeed())
		_, err := render(link, "--render-sensitive")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(mode(g, link) & os.ModeSymlink).NotTo(BeZero())
		g.Expect(content(g, path)).To(ContainSubstring("kind: Deployment"))
		g.Expect(mode(g, path)).To(Equal(os.FileMode(0o600)))
	})
	t.Run("When a link leads to no file yet it should make it", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		link := filepath.Join(dir, "link.yaml")
		g.Expect(os.Symlink("install.yaml", link)).To(Succeed())
		_, err := render(link)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(mode(g, link) & os.ModeSymlink).NotTo(BeZero())
		g.Expect(content(g, filepath.Join(dir, "install.yaml"))).To(ContainSubstring("kind: Deployment"))
	})
	t.Run("When the folder is missing it should name flag and file", func(t *testing.T) {
		g := NewWithT(t)
		_, err := render(filepath.Join(t.TempDir(), "none", "install.yaml"))
		g.Expect(err).To(MatchError(And(ContainSubstring("--output-file"), ContainSubstring("install.yaml"))))
	})
}

// Devices, pipes and what the shell redirected are written to, never replaced.
func TestOutputToOpenFiles(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the files of a process are under /proc on Linux")
	}
	open := func(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
	t.Run("When the file is a pipe it should be written to", func(t *testing.T) {
		g := NewWithT(t)
		r, w, err := os.Pipe()
		g.Expect(err).NotTo(HaveOccurred())
		defer r.Close()
		got := make(chan string, 1)
		go func() {
			raw, _ := io.ReadAll(r)
			got <- string(raw)
		}()
		g.Expect(outputfile.Write(open(w), []byte("content"), outputfile.Private)).To(Succeed())
		g.Expect(w.Close()).To(Succeed())
		g.Eventually(got).Should(Receive(Equal("content")))
	})
	t.Run("When the file is one that is open already it should go on where that is", func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "redirected")
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
		g.Expect(err).NotTo(HaveOccurred())
		defer f.Close()
		_, err = f.WriteString("before,")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(outputfile.Write(open(f), []byte("content,"), outputfile.Private)).To(Succeed())
		_, err = f.WriteString("after")
		g.Expect(err).NotTo(HaveOccurred())
		raw, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(raw)).To(Equal("before,content,after"))
	})
	t.Run("When the file is a device it should stay one", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(outputfile.Write(os.DevNull, []byte("content"), outputfile.Private)).To(Succeed())
		info, err := os.Stat(os.DevNull)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode() & os.ModeDevice).NotTo(BeZero())
	})
}
