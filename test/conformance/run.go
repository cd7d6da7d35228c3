package conformance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hcp.internal/platform/internal/image"
	"hcp.internal/platform/internal/local/components"
	"hcp.internal/platform/internal/local/debian"
)

// Options are what a run is asked for.
type Options struct {
	Root       string // of the checkout, with the programs of make conformance in bin/
	Kubeconfig string // of the hosted cluster's administrator
	Sources    string // folder of the module k8s.io/kubernetes
	// Focus and Skip are regular expressions on names of specs; empty: all, and none.
	Focus, Skip string
	// Processes is how many specs run at once, beside those that the suite runs alone.
	Processes int
	Timeout   time.Duration
	Out       string // folder for logs and the suite's own reports
	Log       io.Writer
	// NoNodes is for an API without nodes: no images are pushed, and no node is waited for. Focus has to name specs that need no pod.
	NoNodes bool
	// DryRun pushes images and lists what would run.
	DryRun bool
}

// endTime is how long the suite gets to tidy up after an interrupt.
const endTime = 2 * time.Minute

func (o Options) bin(name string) string { return filepath.Join(o.Root, "bin", "conformance", name) }

// Run pushes the images and runs the suite. The error is about running it: that specs failed is in the cases.
func Run(ctx context.Context, o Options) ([]Case, error) {
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return nil, fmt.Errorf("creating the folder of reports: %w", err)
	}
	list, err := o.writeRepoList()
	if err != nil {
		return nil, err
	}
	if !o.NoNodes {
		if err := o.push(ctx, list); err != nil {
			return nil, err
		}
	}
	report := filepath.Join(o.Out, "junit_01.xml")
	if err := os.Remove(report); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the report of the run before: %w", err)
	}
	errSuite := o.suite(ctx, list)
	cases, err := Read(report)
	switch {
	case err != nil:
		return nil, errors.Join(errSuite, err)
	case len(cases) == 0 && !o.DryRun:
		return nil, fmt.Errorf("the suite ran no spec (%w); what it said is in %s", errors.Join(errSuite, errors.New("no report")), filepath.Join(o.Out, "e2e.log"))
	}
	return cases, nil
}

// Names are the names of all conformance specs, sorted.
func (o Options) Names(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, o.bin("e2e.test"), "--list-conformance-tests").Output()
	if err != nil {
		return nil, fmt.Errorf("asking e2e.test for the names of specs: %w", err)
	}
	return parseNames(out)
}

// repoList says where the suite's images are. Those that nobody can make stay where they are published.
const repoList = `promoterE2eRegistry: %[1]s/conformance/e2e
gcEtcdRegistry: %[1]s/conformance
gcRegistry: %[1]s/conformance
`

func (o Options) writeRepoList() (string, error) {
	file := filepath.Join(o.Out, "repositories.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, repoList, components.RegistryHost), 0o644); err != nil {
		return "", fmt.Errorf("writing the list of registries: %w", err)
	}
	return file, nil
}

// push makes and pushes every image that the suite may use and that there is a recipe for.
func (o Options) push(ctx context.Context, list string) error {
	cmd := exec.CommandContext(ctx, o.bin("e2e.test"), "--list-images")
	cmd.Env = append(os.Environ(), "KUBE_TEST_REPO_LIST="+list)
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("asking e2e.test for its images: %w", err)
	}
	p := Parts{
		Bin: filepath.Join(o.Root, "bin", "conformance"), CoreDNS: filepath.Join(o.Root, "bin", "coredns"), Pause: filepath.Join(o.Root, "bin", "pause"),
		Sources: filepath.Join(o.Sources, "test", "images"),
	}
	cache := &debian.Cache{Dir: filepath.Join(o.Root, ".cache", "debian"), Say: func(format string, args ...any) { fmt.Fprintf(o.Log, format+"\n", args...) }}
	if err := p.packages(ctx, cache); err != nil {
		return err
	}
	var without []string
	for _, ref := range ours(string(out)) {
		img, err := p.Image(ref)
		if err != nil {
			return err
		}
		if img == nil {
			without = append(without, nameOf(ref))
			continue
		}
		if _, err := image.Push(ctx, ref, img); err != nil {
			return err
		}
	}
	slices.Sort(without)
	fmt.Fprintf(o.Log, "Images are pushed. There are no recipes for %s, which no conformance spec needs.\n", strings.Join(slices.Compact(without), ", "))
	return nil
}

// ours are the lines of a list of images that name our registry.
func ours(list string) []string {
	var refs []string
	for line := range strings.Lines(list) {
		if ref := strings.TrimSpace(line); strings.HasPrefix(ref, components.RegistryHost+"/") {
			refs = append(refs, ref)
		}
	}
	return refs
}

// arguments are those of ginkgo's command, which runs several processes of the suite.
func (o Options) arguments() []string {
	args := []string{"run", "--label-filter=Conformance", "--procs=" + strconv.Itoa(o.Processes), "--timeout=" + o.Timeout.String(), "--no-color", "--silence-skips", "--keep-going"}
	if o.Focus != "" {
		args = append(args, "--focus="+o.Focus)
	}
	if o.Skip != "" {
		args = append(args, "--skip="+o.Skip)
	}
	if o.DryRun {
		args = append(args, "--dry-run", "-v")
	}
	args = append(args, o.bin("e2e.test"), "--",
		"--kubeconfig="+o.Kubeconfig, "--kubectl-path="+filepath.Join(o.Root, "bin", "kubectl"), "--provider=skeleton", "--report-dir="+o.Out, "--disable-log-dump")
	if o.NoNodes {
		return append(args, "--allowed-not-ready-nodes=-1", "--num-nodes=0")
	}
	return append(args, "--allowed-not-ready-nodes=0")
}

// suite runs it, with all that it says in a file and a line for each spec that ended on the screen.
func (o Options) suite(ctx context.Context, list string) error {
	log, err := os.Create(filepath.Join(o.Out, "e2e.log"))
	if err != nil {
		return fmt.Errorf("creating the log: %w", err)
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, o.bin("ginkgo"), o.arguments()...)
	cmd.Dir = o.Out
	cmd.Env = append(os.Environ(), "KUBE_TEST_REPO_LIST="+list)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = endTime
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the suite: %w", err)
	}
	o.follow(io.TeeReader(out, log))
	return cmd.Wait()
}

// follow prints what a person who waits wants to know, until r ends.
func (o Options) follow(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if text := strings.TrimSpace(line); strings.HasPrefix(text, "• [FAILED]") || strings.HasPrefix(text, "[FAIL]") || strings.HasPrefix(text, "Ran ") || strings.HasPrefix(text, "Will run ") {
			fmt.Fprintln(o.Log, text)
		}
		if err != nil {
			return
		}
	}
}
