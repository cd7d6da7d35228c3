// Command dist makes a distribution of a checkout: everything that somebody needs who has no checkout.
//
//	go run ./hack/dist [-out dist] [-parts archives,chart,…] [-releases 1.36.3,1.35.4] [-architectures amd64,arm64] [-systems linux/amd64,…]
//
//	dist/hypershift-VERSION-OS-ARCH.tar.gz   the command line, for six systems (zip for Windows)
//	dist/images/                             an OCI layout: operators, chart, and releases with all that they name; see hypershift images
//	dist/hypershift-operator-VERSION.tgz     the chart
//	dist/manifests/, dist/kustomize/         the same without Helm
//	dist/krew/                               manifests of plugins of kubectl
//	dist/sbom.spdx.json                      what is linked, and under which licences, and Debian's packages in images
//	dist/SHA256SUMS                          of all of these
//
// The same commit gives the same bytes, in whichever folder it is: programs are built without paths, files have the time of the commit, and lists are
// sorted. Two things come from outside: Go's modules, which go.sum names, and Debian's packages of today for what kube-proxy and workers call, which the
// folder .cache keeps.
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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/local/builds"
	"hcp.internal/platform/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
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
}

// part is something that can be left out.
type part struct {
	name string
	make func(d *distribution, ctx context.Context, say func(string, ...any)) error
}

// parts, in order: the checksums come last.
var parts = []part{
	{"archives", (*distribution).makeArchives},
	{"chart", (*distribution).makeChart},
	{"manifests", (*distribution).makeManifests},
	{"krew", (*distribution).makeKrew},
	{"images", (*distribution).makeImages},
	{"sbom", (*distribution).makeSBOM},
	{"checksums", (*distribution).makeChecksums},
}

func run(ctx context.Context, args []string, out io.Writer) error {
	d := &distribution{version: version.Semver()}
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	flags.StringVar(&d.out, "out", "dist", "folder to write; parts that are there are replaced")
	wanted := flags.String("parts", "", "parts to make, separated by commas (default: all)")
	releases := flags.String("releases", strings.Join(builds.KnownReleases(), ","), "Kubernetes releases, separated by commas")
	architectures := flags.String("architectures", "amd64,arm64", "architectures of images, separated by commas")
	archived := flags.String("systems", "", "systems of the command line's archives, as linux/amd64,darwin/arm64 (default: all six)")
	flags.StringVar(&d.url, "url", "https://downloads.example.com/hypershift/v"+d.version, "where the archives will be; manifests of krew name it")
	flags.StringVar(&d.operatorImage, "image", "registry.example.com/hypershift/hypershift:"+d.version, "image of the operators in manifests; images push puts your registry's into the chart")
	if err := flags.Parse(args); err != nil {
		return err
	}
	d.releases, d.architectures = strings.Split(*releases, ","), strings.Split(*architectures, ",")
	var err error
	if d.systems, err = chooseSystems(*archived); err != nil {
		return err
	}
	if d.root, err = builds.FindRoot("."); err != nil {
		return err
	}
	if d.out, err = filepath.Abs(d.out); err != nil {
		return err
	}
	if d.created, err = commitTime(ctx, d.root); err != nil {
		return err
	}
	d.licences = d.readLicences
	chosen, err := choose(*wanted)
	if err != nil {
		return err
	}
	return d.make(ctx, chosen, progress.NewDisplay(out, false, clock.RealClock{}))
}

// choose looks parts up; none named means all.
func choose(list string) ([]part, error) {
	if list == "" {
		return parts, nil
	}
	var chosen []part
	var known []string
	names := strings.Split(list, ",")
	for _, p := range parts {
		known = append(known, p.name)
		if slices.Contains(names, p.name) {
			chosen = append(chosen, p)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("-parts: unknown part %q: use some of %s", name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}

func (d *distribution) make(ctx context.Context, chosen []part, display *progress.Display) error {
	if err := os.MkdirAll(d.out, 0o755); err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	display.Number(len(chosen))
	for _, p := range chosen {
		err := display.Do(ctx, "making "+p.name, func(ctx context.Context, say func(string, ...any)) error { return p.make(d, ctx, say) })
		if err != nil {
			return err
		}
	}
	return nil
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

// readLicences asks the tool, which has a module of its own.
func (d *distribution) readLicences(ctx context.Context, programs ...string) ([]byte, error) {
	return d.runLicences(ctx, append([]string{"-format", "text"}, programs...)...)
}

func (d *distribution) runLicences(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"run", "./licences"}, args...)...)
	cmd.Dir = filepath.Join(d.root, "tools")
	cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", d.created.Unix()))
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("collecting licences: %w: %s", err, exit.Stderr)
	}
	return out, err
}

// makeSBOM lists what is linked and, where images are made, Debian's packages in them.
func (d *distribution) makeSBOM(ctx context.Context, say func(string, ...any)) error {
	args := []string{"-format", "spdx", "-name", "hypershift", "-version", d.version}
	if _, err := os.Stat(filepath.Join(d.out, "images", "index.json")); err == nil {
		archives, err := d.archivesOfDebian(ctx, say)
		if err != nil {
			return err
		}
		defer func() { _ = os.Remove(archives) }() // is read by then
		args = append(args, "-debian", archives)
	}
	out, err := d.runLicences(ctx, args...)
	if err != nil {
		return err
	}
	return d.write("sbom.spdx.json", out)
}

// archivesOfDebian writes a file with the names of Debian's archives that images are made of. It has to be removed.
func (d *distribution) archivesOfDebian(ctx context.Context, say func(string, ...any)) (string, error) {
	var names strings.Builder
	for _, arch := range d.architectures {
		sets, err := d.debian(ctx, say, arch)
		if err != nil {
			return "", err
		}
		for _, packages := range sets {
			for _, p := range packages {
				names.WriteString(p.File + "\n")
			}
		}
	}
	file, err := os.CreateTemp("", "archives-")
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(names.String())
	if err = errors.Join(err, file.Close()); err != nil {
		err = errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), err
}

// write writes a file of the distribution, with its folders.
func (d *distribution) write(name string, data []byte) error {
	path := filepath.Join(d.out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}
