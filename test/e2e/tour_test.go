//go:build e2e

package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// pasteTime is how long one command of the tour may take; making a hosted cluster is the longest.
	pasteTime = 5 * time.Minute
	// tourNodes is how many workers the demo cluster has before the tour, which adds one.
	tourNodes = 2
)

// pasteTour does what a reader of the README does after "make up": paste its tour into a shell, as it stands, one line after the
// other with nothing in between.
func pasteTour(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block, err := readmeBlock(string(readme), tourHeading)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	dir := tourFolder(t)
	sh := startShell(t, dir)
	for i, line := range tourLines(block) {
		started := time.Now()
		out, code, err := sh.paste(line)
		if err != nil || code != 0 {
			t.Fatalf("line %d of the tour: exit code %d, %v\n$ %s\n%s", i+1, code, err, line, out)
		}
		t.Logf("%s\n$ %s\n%s", time.Since(started).Round(100*time.Millisecond), line, out)
		for _, pattern := range tourPromises[i].prints {
			if !regexp.MustCompile(pattern).MatchString(out) {
				t.Errorf("line %d of the tour, %q, does not print what it promises, %s:\n%s", i+1, line, pattern, out)
			}
		}
	}
	t.Logf("the tour took %s", time.Since(begin).Round(time.Second))
	expectAdminKubeconfig(t, filepath.Join(dir, "second.kubeconfig"))

	// The other steps go on with the workers that they know.
	management().run(t, "scale", "nodepool", "-n", "clusters", "demo", fmt.Sprint("--replicas=", tourNodes))
	eventually(t, 5*time.Minute, "the demo cluster with as many workers as before", func() error {
		out, err := hosted().try(t, "get", "nodes", "-o", "name")
		if n := len(strings.Fields(out)); err != nil || n != tourNodes {
			return errors.Join(fmt.Errorf("%d nodes", n), err)
		}
		out, err = management().try(t, "get", "pods", "-n", "clusters-demo", "-o", "name")
		if n := strings.Count(out, "pod/demo-"); err != nil || n != tourNodes {
			return errors.Join(fmt.Errorf("%d pods of workers", n), err)
		}
		return nil
	})
}

// tourFolder stands for the checkout after "make up": the same programs and documents, and the state folder of this test as .local.
func tourFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, target := range map[string]string{
		"bin": filepath.Join(root(t), "bin"), "docs": filepath.Join(root(t), "docs"), ".local": stateDir,
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// expectAdminKubeconfig expects that a file is a kubeconfig with one user.
func expectAdminKubeconfig(t *testing.T, path string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(raw), "client-certificate-data:") {
		t.Errorf("%s is no kubeconfig (%v):\n%s", path, err, raw)
	}
}

// shell is a bash that behaves as one at a prompt does: aliases work, a line is read when the one before it has ended.
type shell struct {
	in   io.Writer
	ends *bufio.Reader // the exit code of each line
	mu   sync.Mutex
	out  strings.Builder
}

// Write keeps what commands print, on either stream.
func (s *shell) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

func startShell(t *testing.T, dir string) *shell {
	t.Helper()
	ends, told, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "--norc", "--noprofile")
	cmd.Dir = dir
	// A reader has no kubeconfig yet, and our own programs only by the PATH that the tour sets.
	cmd.Env = append(os.Environ(), "KUBECONFIG=", "PWD="+dir)
	cmd.ExtraFiles = []*os.File{told}
	s := &shell{ends: bufio.NewReader(ends)}
	cmd.Stdout, cmd.Stderr = s, s
	cmd.WaitDelay = 5 * time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.in = in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	told.Close()
	t.Cleanup(func() {
		in.Close()
		ends.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := io.WriteString(in, "shopt -s expand_aliases\n"); err != nil {
		t.Fatal(err)
	}
	return s
}

// mark is what the shell prints behind the output of a command: output and exit code come by two ways, and nothing is read before both are here.
const mark = "\x00"

// paste gives the shell a line as it is, and waits for its end.
func (s *shell) paste(line string) (out string, code int, err error) {
	s.mu.Lock()
	s.out.Reset()
	s.mu.Unlock()
	type result struct {
		code int
		err  error
	}
	ended := make(chan result, 1)
	go func() {
		var r result
		_, r.err = fmt.Fscanln(s.ends, &r.code)
		ended <- r
	}()
	if _, err := fmt.Fprintf(s.in, "%s\n{ echo $? >&3; printf '\\0'; }\n", line); err != nil {
		return "", 0, fmt.Errorf("the shell has ended: %w", err)
	}
	timer := time.NewTimer(pasteTime)
	defer timer.Stop()
	select {
	case r := <-ended:
		code, err = r.code, r.err
	case <-timer.C:
		err = fmt.Errorf("no end after %s", pasteTime)
	}
	for err == nil {
		if out, later, ended := strings.Cut(s.output(), mark); ended {
			return out + later, code, nil // later: of what the line left in the background
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-timer.C:
			err = fmt.Errorf("its output has no end after %s", pasteTime)
		}
	}
	return s.output(), code, err
}

func (s *shell) output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}
