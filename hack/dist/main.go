// Command dist makes a distribution of a checkout: everything that somebody needs who has no checkout. -help lists parts and flags.
//
// The same commit gives the same bytes, in whichever folder it is: programs are built without paths, files have the time of the commit, and lists are
// sorted. Two things come from outside: Go's modules, which go.sum names, and Debian's packages of today for what kube-proxy and workers call, which the
// folder .cache keeps.
//
// It may be stopped on any line, and be run again: what is compiled is kept, images that were complete are there until the new ones are, and SHA256SUMS
// is there only while it is of everything beside it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/cli/install"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/cli/terminal"
	"hcp.internal/platform/internal/local/builds"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "Interrupted. Run the same command again to continue: what is compiled is kept. "+sums+" is written at the end.")
		os.Exit(130)
	default:
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		os.Exit(1)
	}
}

// distribution is what is made, and of what.
type distribution struct {
	root, out     string
	version       string
	releases      []string // of Kubernetes, without v
	architectures []string
	systems       []system // of archives
	// url is where the archives will be, without a slash at its end.
	url string
	// operatorImage is what manifests name.
	operatorImage string
	// created is the time of everything: that of the commit.
	created time.Time
	// licences returns the texts of what programs are made of, by the names that tools/licences has for them.
	licences func(ctx context.Context, programs ...string) ([]byte, error)

	queue *builds.Queue
	took  map[string]time.Duration // by part
	texts map[string][]byte        // of licences, by programs
}

// part is something that can be left out.
type part struct {
	name  string
	about string // for -help
	make  func(d *distribution, ctx context.Context, say func(string, ...any)) error
	// files are its files and folders in the distribution, as patterns of path.Match. What else is in the folder is not ours, and left alone.
	files []string
	// targets are what it builds, in order; nil if nothing.
	targets func(d *distribution) []builds.Target
}

// parts, in order: the checksums come last. It is filled by init because parts and what makes them name each other.
var parts []part

func init() {
	parts = []part{
		{"archives", "the command line for six systems: hypershift-VERSION-OS-ARCH.tar.gz, .zip for Windows", (*distribution).makeArchives,
			[]string{"hypershift-*.tar.gz", "hypershift-*.zip"}, (*distribution).cliTargets},
		{"chart", "the chart: hypershift-operator-VERSION.tgz", (*distribution).makeChart, []string{install.ChartName + "-*.tgz"}, nil},
		{"manifests", "the same without Helm: manifests/, and kustomize/, a base", (*distribution).makeManifests, []string{"manifests", "kustomize"}, nil},
		{"krew", "krew/: manifests of plugins of kubectl; needs the archives", (*distribution).makeKrew, []string{"krew"}, nil},
		{"images", "images/: an OCI layout of operators, chart, and releases with all that they name; see hypershift images", (*distribution).makeImages,
			[]string{"images"}, (*distribution).imageTargets},
		{"sbom", "sbom.spdx.json: what is linked, and under which licences, and Debian's packages in images", (*distribution).makeSBOM, []string{inventory}, nil},
		{"checksums", sums + ": of the files of all parts", (*distribution).makeChecksums, []string{sums, sums + ".sig"}, nil},
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	d, chosen, err := parse(ctx, args, out)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := d.room(chosen); err != nil {
		return err
	}
	if dirty(ctx, d.root) {
		fmt.Fprintf(out, "Warning: the checkout has uncommitted changes. The distribution will say that it is commit %s, which does not contain them.\n", builds.Commit(d.root))
	}
	if err := d.make(ctx, chosen, progress.NewDisplay(out, terminal.Rewritable(out), clock.RealClock{})); err != nil {
		return d.advise(err)
	}
	return d.summarize(out, chosen)
}

// make makes the chosen parts. The checksums are of everything, so those of before go first.
func (d *distribution) make(ctx context.Context, chosen []part, display *progress.Display) error {
	if err := os.MkdirAll(d.out, 0o755); err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	if err := d.remove("checksums"); err != nil {
		return err
	}
	d.enqueue(d.buildsOf(chosen)...)
	d.took = map[string]time.Duration{}
	display.Number(len(chosen))
	for _, p := range chosen {
		begin := time.Now()
		err := display.Do(ctx, "making "+p.name, func(ctx context.Context, say func(string, ...any)) error {
			err := p.make(d, ctx, say)
			if err != nil && ctx.Err() != nil {
				return ctx.Err() // whatever a program that was stopped said
			}
			return err
		})
		if err != nil {
			return err
		}
		d.took[p.name] = time.Since(begin)
	}
	return nil
}

// dirty says whether tracked files of the checkout are others than those of its commit.
func dirty(ctx context.Context, root string) bool {
	out, err := exec.CommandContext(ctx, "git", "-c", "safe.directory=*", "-C", root, "status", "--porcelain", "--untracked-files=no").Output()
	return err == nil && len(out) > 0
}

// commitTime is that of SOURCE_DATE_EPOCH, else of the commit that is checked out, else 1970.
func commitTime(ctx context.Context, root string) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := exec.CommandContext(ctx, "git", "-c", "safe.directory=*", "-C", root, "log", "-1", "--format=%ct").Output()
		if text = strings.TrimSpace(string(out)); err != nil || text == "" {
			text = "0" // no repository
		}
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q: must be seconds since 1970", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// remove takes away what a run before made of a part.
func (d *distribution) remove(name string) error {
	for _, p := range parts {
		if p.name != name {
			continue
		}
		for _, f := range p.found(d.out) {
			if err := os.RemoveAll(filepath.Join(d.out, f)); err != nil {
				return err
			}
		}
	}
	return nil
}

// write writes a file of the distribution, with its folders.
func (d *distribution) write(name string, data []byte) error {
	path := filepath.Join(d.out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}
