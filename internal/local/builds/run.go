package builds

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxErrorOutput bounds how much of the compiler's output goes into an error: more than it says before it gives up.
const maxErrorOutput = 1 << 20

// endTime is how long the go command may take to end and to tidy up after an interrupt.
const endTime = 10 * time.Second

// Progress is how far the build of a target is.
type Progress struct {
	Downloaded int // modules
	Compiled   int // packages
	// Packages is how many have to be compiled altogether; 0 while that isn't known.
	Packages int
}

// String says it to a person.
func (p Progress) String() string {
	switch {
	case p.Compiled == 0:
		return fmt.Sprintf("downloading modules, %d so far", p.Downloaded)
	case p.Packages == 0:
		return fmt.Sprintf("compiling, %d packages so far", p.Compiled)
	case p.Compiled >= p.Packages:
		return fmt.Sprintf("linking, %d packages are compiled", p.Compiled)
	}
	return fmt.Sprintf("compiling, %d of %d packages", p.Compiled, p.Packages)
}

// Build compiles a target. report is told about each module that is downloaded and each package that is compiled, and so never when Go's
// cache has everything. An error holds what the compiler said; it doesn't name the target.
func Build(ctx context.Context, root string, t Target, report func(Progress)) error {
	out := filepath.Join(root, t.Out)
	folder := filepath.Dir(out)
	if strings.HasSuffix(t.Out, "/") {
		out += "/" // Join took it off
		folder = out
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("creating the folder of %s: %w", t.Out, err)
	}
	// Without -buildvcs=false a checkout that belongs to somebody else does not build, and any edit makes every program another one.
	cmd := t.command(ctx, root, "build", "-v", "-buildvcs=false", "-ldflags", t.LDFlags, "-o", out)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w; install Go 1.21 or newer, see https://go.dev/dl", err)
	}
	counting, stop := context.WithCancel(ctx)
	c := counter{report: report, stale: func() int { return t.stale(counting, root) }}
	output := c.follow(stderr)
	stop()
	err = cmd.Wait()
	c.counting.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, strings.TrimSpace(output))
	}
	return nil
}

// noDebugger leaves out what only debuggers read, in every package: a quarter of the compiler's time goes there, and programs are stripped of it in the end. Stack
// traces and profiles don't need it. The Makefile says the same for tests, which share what is compiled.
const noDebugger = "-gcflags=all=-dwarf=false"

// command runs the go command on the target's packages. It is interrupted, not killed, when ctx ends, so that no compiler outlives it.
func (t Target) command(ctx context.Context, root string, args ...string) *exec.Cmd {
	args = append(args, "-trimpath", noDebugger)
	if t.ModFile != "" && t.ModFile != "go.mod" {
		args = append(args, "-modfile", t.ModFile)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, t.Packages...)...)
	cmd.Dir = filepath.Join(root, t.Dir)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if t.OS != "" {
		cmd.Env = append(cmd.Env, "GOOS="+t.OS)
	}
	if t.Arch != "" {
		cmd.Env = append(cmd.Env, "GOARCH="+t.Arch)
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = endTime
	return cmd
}

// stale counts the packages that have to be compiled; 0 when that can't be found out.
func (t Target) stale(ctx context.Context, root string) int {
	cmd := t.command(ctx, root, "list", "-deps", "-buildvcs=false", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}")
	out, err := cmd.Output()
	if err != nil {
		return 0
	}
	return len(strings.Fields(string(out)))
}

// counter makes Progress of what "go build -v" prints.
type counter struct {
	report func(Progress)
	// stale counts what is left to be compiled. It takes seconds, so it is asked while the compiler works, and only when that does.
	stale    func() int
	packages atomic.Int64
	counting sync.WaitGroup
}

// follow reports until r ends, and returns the lines that are no progress: what the compiler says.
func (c *counter) follow(r io.Reader) string {
	var p Progress
	var output strings.Builder
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		switch text := strings.TrimSuffix(line, "\n"); {
		case text == "":
		case strings.HasPrefix(text, "go: downloading "):
			p.Downloaded++
			c.report(p)
		case !strings.ContainsAny(text, " :#\t"):
			if p.Compiled++; p.Compiled == 1 {
				c.count()
			}
			// What is compiled while others are counted may be missing in the count.
			if p.Packages = int(c.packages.Load()); p.Packages > 0 {
				p.Packages = max(p.Packages, p.Compiled)
			}
			c.report(p)
		case output.Len() < maxErrorOutput:
			output.WriteString(line)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
				fmt.Fprintf(&output, "reading what the go command prints: %v\n", err)
			}
			return output.String()
		}
	}
}

func (c *counter) count() {
	c.counting.Add(1)
	go func() {
		defer c.counting.Done()
		// The first package is compiled when this begins.
		if n := c.stale(); n > 0 {
			c.packages.Store(int64(n) + 1)
		}
	}()
}
