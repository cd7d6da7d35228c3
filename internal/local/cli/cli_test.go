//go:build linux

package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
)

func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := Command()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestStatus(t *testing.T) {
	for format, want := range map[string]string{"json": `"state": "Stopped"`, "yaml": "state: Stopped", "": "Stopped (state folder "} {
		t.Run("When nothing runs status -o "+format+" should say so", func(t *testing.T) {
			g := NewWithT(t)
			out, err := run(t, "status", "--state-dir", t.TempDir(), "-o", format)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out).To(ContainSubstring(want))
		})
	}
	t.Run("When the format is unknown it should name the known ones", func(t *testing.T) {
		_, err := run(t, "status", "--state-dir", t.TempDir(), "-o", "xml")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("want json or yaml")))
	})
}

func TestStateFolderBehindALink(t *testing.T) {
	t.Run("When the state folder is a link every command should work with the folder behind it", func(t *testing.T) {
		g := NewWithT(t)
		base, err := filepath.EvalSymlinks(t.TempDir())
		g.Expect(err).NotTo(HaveOccurred())
		real, link := filepath.Join(base, "disk", "state"), filepath.Join(base, ".local")
		g.Expect(os.MkdirAll(real, 0o700)).To(Succeed())
		g.Expect(os.Symlink(real, link)).To(Succeed())
		out, err := run(t, "status", "--state-dir", link)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(ContainSubstring("(state folder " + real + ")"))
		g.Expect((&folders{state: link}).stateDir()).To(Equal(real))
	})
}

func TestUpOutsideOfACheckout(t *testing.T) {
	t.Run("When the folder is no checkout it should say where to go", func(t *testing.T) {
		_, err := run(t, "up", "--root", t.TempDir())
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("checkout of this project")))
	})
}

func TestLogs(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	_, err := run(t, "logs", "--state-dir", dir)
	g.Expect(err).To(MatchError(ContainSubstring("hypershift local up")), "When there are no logs it should say how to get some")

	g.Expect(os.Mkdir(filepath.Join(dir, "logs"), 0o700)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, "logs", "etcd.log"), []byte("line\n"), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, "secret.log"), []byte("no"), 0o600)).To(Succeed())
	g.Expect(run(t, "logs", "--state-dir", dir)).To(Equal("etcd\n"), "When no name is given it should list them")
	g.Expect(run(t, "logs", "etcd", "--state-dir", dir)).To(Equal("line\n"))
	_, err = run(t, "logs", "../secret", "--state-dir", dir)
	g.Expect(err).To(MatchError(ContainSubstring("there are: etcd")), "When a name leads elsewhere it should be refused")
}

func TestFollow(t *testing.T) {
	t.Run("When a followed log is rotated it should go on with the new file", func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "a.log")
		g.Expect(os.WriteFile(path, []byte("one\n"), 0o600)).To(Succeed())
		r, w, err := os.Pipe()
		g.Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- show(ctx, path, true, w, clock.RealClock{}) }()
		read := func() string {
			buf := make([]byte, 100)
			n, _ := r.Read(buf)
			return string(buf[:n])
		}
		g.Expect(read()).To(Equal("one\n"))
		g.Expect(os.Rename(path, path+".1")).To(Succeed())
		g.Expect(os.WriteFile(path, []byte("two\n"), 0o600)).To(Succeed())
		g.Expect(read()).To(Equal("two\n"))
		cancel()
		g.Eventually(done).WithTimeout(30 * time.Second).Should(Receive(BeNil()))
	})
}

func TestLines(t *testing.T) {
	t.Run("When commands print progress it should be said line by line without its time", func(t *testing.T) {
		g := NewWithT(t)
		var said []string
		l := &lines{say: func(f string, args ...any) { said = append(said, fmt.Sprintf(f, args...)) }}
		for _, s := range []string{"[   3s] created 100%", " of it\n[   4s] wait", "ing\n\nplain\n"} {
			_, err := fmt.Fprint(l, s)
			g.Expect(err).NotTo(HaveOccurred())
		}
		g.Expect(said).To(Equal([]string{"created 100% of it", "waiting", "plain"}))
	})
}
