package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/local/builds"
)

func TestCommandLine(t *testing.T) {
	t.Run("When help is asked for it should name every part and flag, and nothing be made", func(t *testing.T) {
		g := NewWithT(t)
		var out bytes.Buffer
		g.Expect(run(t.Context(), []string{"-help"}, &out)).To(Succeed())
		for _, p := range parts {
			g.Expect(out.String()).To(ContainSubstring("\n  " + p.name + " "))
		}
		for _, name := range []string{"-out folder", "-parts parts", "-releases releases", "-architectures architectures", "-systems systems", "-url address", "-image image"} {
			g.Expect(out.String()).To(ContainSubstring("\n  " + name + "\n"))
		}
	})
	for name, c := range map[string]struct{ args, want string }{
		"a part":         {"-parts charts", `-parts: unknown part "charts": use some of archives, chart, manifests`},
		"a release":      {"-releases 1.30.0", `-releases: unknown Kubernetes release "1.30.0": use some of ` + strings.Join(builds.KnownReleases(), ", ")},
		"an empty one":   {"-releases 1.36.3,", `unknown Kubernetes release ""`},
		"architectures":  {"-architectures riscv64", `-architectures: unknown architecture "riscv64": use some of amd64, arm64`},
		"a system":       {"-systems plan9/amd64", `-systems: unknown system "plan9/amd64": use some of darwin/amd64`},
		"a flag":         {"-part chart", "flag provided but not defined: -part; -help lists the flags"},
		"an argument":    {"chart", `unexpected argument "chart": parts are named with -parts`},
		"an address":     {"-url downloads", `-url: "downloads" is not an address`},
		"an image":       {"-image Not:An:Image", "-image: "},
		"several things": {"-url downloads -architectures riscv64", "-architectures"},
	} {
		t.Run("When "+name+" can't be made it should be told before anything is built", func(t *testing.T) {
			g := NewWithT(t)
			out := filepath.Join(t.TempDir(), "dist")
			g.Expect(run(t.Context(), append([]string{"-out", out}, strings.Fields(c.args)...), io.Discard)).To(MatchError(ContainSubstring(c.want)))
			g.Expect(out).NotTo(BeAnExistingFile())
		})
	}
	t.Run("When lists name things twice and in any order each should be made once", func(t *testing.T) {
		g := NewWithT(t)
		d, chosen, err := parse(t.Context(), []string{"-releases", "1.36.3,1.35.4,1.36.3", "-architectures", "arm64,amd64", "-parts", "krew,chart", "-url", "https://a.test/b/"}, io.Discard)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.releases).To(Equal([]string{"1.35.4", "1.36.3"}))
		g.Expect(d.architectures).To(Equal([]string{"amd64", "arm64"}))
		g.Expect([]string{chosen[0].name, chosen[1].name}).To(Equal([]string{"chart", "krew"}))
		g.Expect(d.url).To(Equal("https://a.test/b"))
	})
	t.Run("When the folder is a file it should be told", func(t *testing.T) {
		g := NewWithT(t)
		file := filepath.Join(t.TempDir(), "dist")
		g.Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
		g.Expect(run(t.Context(), []string{"-out", file, "-parts", "chart"}, io.Discard)).To(MatchError(ContainSubstring("is not a folder")))
	})
}

// again makes parts of a distribution of stand-ins whose folder is there.
func again(t *testing.T, root, out, names string) (*distribution, []part, error) {
	t.Helper()
	chosen, err := choose(names)
	if err != nil {
		t.Fatal(err)
	}
	d := &distribution{
		root: root, out: out, version: "1.2.3", url: "https://downloads.example.com/v1.2.3", operatorImage: "registry.example.com/hypershift/hypershift:1.2.3",
		systems: systems, releases: []string{"1.36.3"}, architectures: []string{"amd64"},
		licences: func(context.Context, ...string) ([]byte, error) { return []byte("licences"), nil },
	}
	return d, chosen, d.make(t.Context(), chosen, progress.NewDisplay(io.Discard, false, clock.RealClock{}))
}

func TestMadeAgain(t *testing.T) {
	t.Run("When parts are made anew checksums of before should go, as they are of other files", func(t *testing.T) {
		g := NewWithT(t)
		out := cheap(t, "chart,manifests,checksums")
		g.Expect(filepath.Join(out, sums)).To(BeARegularFile())
		d, chosen, err := again(t, filepath.Join("..", ".."), out, "chart")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(filepath.Join(out, sums)).NotTo(BeAnExistingFile())
		var said bytes.Buffer
		g.Expect(d.summarize(&said, chosen)).To(Succeed())
		g.Expect(said.String()).To(ContainSubstring("make dist DIST_PARTS=checksums"))
	})
	t.Run("When the version has changed files of the one before should go, and what is nobody's stay, without a checksum", func(t *testing.T) {
		g := NewWithT(t)
		out := cheap(t, "chart,manifests")
		for _, name := range []string{"hypershift-operator-1.2.2.tgz", "manifests/old.yaml", "site/index.html"} {
			g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(out, name)), 0o755)).To(Succeed())
			g.Expect(os.WriteFile(filepath.Join(out, name), nil, 0o600)).To(Succeed())
		}
		_, _, err := again(t, filepath.Join("..", ".."), out, "chart,manifests,checksums")
		g.Expect(err).NotTo(HaveOccurred())
		made := files(t, out)
		g.Expect(made).To(And(HaveKey("hypershift-operator-1.2.3.tgz"), HaveKey("site/index.html"), Not(HaveKey("hypershift-operator-1.2.2.tgz")), Not(HaveKey("manifests/old.yaml"))))
		g.Expect(made[sums]).To(And(ContainSubstring("hypershift-operator-1.2.3.tgz"), Not(ContainSubstring("site/"))))
	})
	t.Run("When images can't be built those of before should stay", func(t *testing.T) {
		g := NewWithT(t)
		out := t.TempDir()
		before := filepath.Join(out, "images", "index.json")
		g.Expect(os.MkdirAll(filepath.Dir(before), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(before, nil, 0o600)).To(Succeed())
		_, _, err := again(t, t.TempDir(), out, "images") // a folder without modules
		g.Expect(err).To(MatchError(ContainSubstring("making images: building ")))
		g.Expect(before).To(BeARegularFile())
		g.Expect(filepath.Join(out, "images.unfinished")).NotTo(BeAnExistingFile())
	})
	t.Run("When it is interrupted it should say just that, whatever the program said that was stopped", func(t *testing.T) {
		g := NewWithT(t)
		ctx, cancel := context.WithCancel(t.Context())
		stopped := part{name: "stopped", make: func(*distribution, context.Context, func(string, ...any)) error {
			cancel()
			return errors.New("signal: killed")
		}}
		d := &distribution{root: t.TempDir(), out: t.TempDir()}
		g.Expect(d.make(ctx, []part{stopped}, progress.NewDisplay(io.Discard, false, clock.RealClock{}))).To(MatchError(context.Canceled))
	})
	t.Run("When there is nothing to list it should be told", func(t *testing.T) {
		_, _, err := again(t, t.TempDir(), t.TempDir(), "checksums")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("has no part of a distribution")))
	})
}

func TestSummary(t *testing.T) {
	t.Run("When it is made it should name each part with its size, what it took, and what is missing", func(t *testing.T) {
		g := NewWithT(t)
		d, chosen, err := again(t, filepath.Join("..", ".."), cheap(t, "manifests"), "chart,krew")
		g.Expect(err).NotTo(HaveOccurred())
		d.url = placeholderURL + d.version
		var out bytes.Buffer
		g.Expect(d.summarize(&out, chosen)).To(Succeed())
		g.Expect(out.String()).To(HavePrefix("\nVersion 1.2.3 of commit "))
		g.Expect(out.String()).To(MatchRegexp(`(?m)^  PART +FILES +SIZE +TOOK +WHAT$`))
		g.Expect(out.String()).To(MatchRegexp(`(?m)^  archives +6 +\d+ kB +earlier +hypershift-1\.2\.3-darwin-amd64\.tar\.gz … hypershift-1\.2\.3-windows-arm64\.zip$`))
		g.Expect(out.String()).To(MatchRegexp(`(?m)^  chart +1 +\d+ kB +\S+s +hypershift-operator-1\.2\.3\.tgz$`))
		g.Expect(out.String()).To(MatchRegexp(`(?m)^  images +- +- +- +not there$`))
		g.Expect(out.String()).To(ContainSubstring("which is a placeholder"))
	})
}

func TestRoom(t *testing.T) {
	all, err := choose("")
	if err != nil {
		t.Fatal(err)
	}
	d := &distribution{root: t.TempDir(), out: filepath.Join(t.TempDir(), "not", "there"), systems: systems, architectures: architectures, releases: builds.KnownReleases()}
	t.Run("When less is made it should take less", func(t *testing.T) {
		g := NewWithT(t)
		less := &distribution{systems: systems[:1], architectures: architectures[:1], releases: d.releases[:1]}
		g.Expect(less.needs(all)).To(BeNumerically("<", d.needs(all)/2))
		g.Expect(d.needs(nil)).To(BeZero())
	})
	t.Run("When the disk has no room it should be told before anything is built", func(t *testing.T) {
		g := NewWithT(t)
		huge := *d
		for len(huge.releases) < 1<<20 { // more than any disk has
			huge.releases = append(huge.releases, huge.releases...)
		}
		g.Expect(huge.room(all)).To(MatchError(And(ContainSubstring(" free, but the distribution needs about "), ContainSubstring("-out"), ContainSubstring("-architectures"))))
	})
	t.Run("When a disk got full on the way it should say how much room is where, and how to go on", func(t *testing.T) {
		g := NewWithT(t)
		for _, err := range []error{fmt.Errorf("writing a blob: %w", unix.ENOSPC), errors.New("exit status 1\nlink: mapping output file failed: no space left on device")} {
			g.Expect(d.advise(err)).To(MatchError(And(HavePrefix(err.Error()), ContainSubstring("GOCACHE"), ContainSubstring("GOTMPDIR"), ContainSubstring("run the same command again"))))
		}
		other := errors.New("other")
		g.Expect(d.advise(other)).To(BeIdenticalTo(other))
	})
}

func TestQueue(t *testing.T) {
	t.Run("When a person waits it should say how long all builds take, and which one it is at", func(t *testing.T) {
		g := NewWithT(t)
		d := &distribution{root: t.TempDir(), systems: systems[2:3], architectures: []string{"arm64"}, releases: []string{"1.36.3"}}
		all, err := choose("")
		g.Expect(err).NotTo(HaveOccurred())
		targets := d.buildsOf(all)
		g.Expect(targets).To(HaveLen(2 + len(d.imageTargets())))
		d.enqueue(targets...)
		first := d.queue.Step()
		g.Expect(text(first)).To(MatchRegexp(`^building, about \d+ min left: .*, 1 of \d+$`))
		third := builds.Step{Name: targets[2].Name, Number: 3, Total: first.Total, Left: first.Left}
		g.Expect(text(third)).To(MatchRegexp(`^building, about \d+ min left: hypershift, .* for linux/arm64, 3 of \d+$`))
		third.Progress = builds.Progress{Compiled: 10, Packages: 20}
		g.Expect(text(third)).To(HaveSuffix(", compiling, 10 of 20 packages"))
	})
}
