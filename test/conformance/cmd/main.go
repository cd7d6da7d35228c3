// Command conformance runs Kubernetes' conformance suite against a hosted cluster of the local installation that is up, and notes the
// results; make conformance brings one up first. See docs/conformance.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"hcp.internal/platform/internal/local/components"
	"hcp.internal/platform/test/conformance"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	o := conformance.Options{Log: out}
	var stateDir, results, reasons string
	var rest, quick bool
	flags.StringVar(&o.Root, "root", ".", "The repository, with what was built in its folder bin")
	flags.StringVar(&stateDir, "state-dir", "/tmp/hcp-e2e", "State folder of the local installation")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "Kubeconfig of the hosted cluster's administrator (default: that of clusters/demo)")
	flags.StringVar(&o.Sources, "sources", "", "Folder of the module k8s.io/kubernetes whose suite is run (required)")
	flags.StringVar(&o.Focus, "focus", "", "Regular expression: only specs whose names match")
	flags.BoolVar(&quick, "quick", false, "Only a few specs of every group that take seconds each; not with -focus")
	flags.BoolVar(&rest, "rest", false, "Only specs that have not passed yet, by the file with what is known")
	flags.StringVar(&o.Skip, "skip", "", "Regular expression: no specs whose names match")
	flags.IntVar(&o.Processes, "procs", 6, "How many specs run at once")
	flags.DurationVar(&o.Timeout, "timeout", 4*time.Hour, "When to give up; what has run by then counts")
	flags.StringVar(&o.Out, "out", "", "Folder for the suite's log and reports (default: conformance in the state folder)")
	flags.BoolVar(&o.DryRun, "dry-run", false, "Push the images and list what would run")
	flags.StringVar(&results, "results", "docs/conformance.xml", "JUnit file with what is known of each spec; this run's results are written over it")
	flags.StringVar(&reasons, "reasons", "test/conformance/reasons.tsv", "Reasons of specs that fail or cannot run here, as lines of name, tab, sentence")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.Sources == "" {
		return errors.New("-sources is empty; name the folder that (cd conformance && go list -m -f '{{.Dir}}' k8s.io/kubernetes) prints")
	}
	if quick {
		if o.Focus != "" {
			return errors.New("-quick and -focus both choose specs; leave one out")
		}
		o.Focus = conformance.Quick()
	}
	state := components.Paths{State: stateDir}
	if o.Kubeconfig == "" {
		o.Kubeconfig = state.DemoKubeconfig()
	}
	if o.Out == "" {
		o.Out = filepath.Join(stateDir, "conformance")
	}
	for _, path := range []*string{&o.Root, &o.Kubeconfig, &o.Out, &results, &reasons} {
		abs, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = abs
	}
	if _, err := os.Stat(o.Kubeconfig); err != nil {
		return fmt.Errorf("no hosted cluster to test: %w; bring one up with make up, or name its kubeconfig with -kubeconfig", err)
	}
	return conform(ctx, o, rest, results, reasons, out)
}

// conform runs the suite and judges what came of it.
func conform(ctx context.Context, o conformance.Options, rest bool, results, reasonsFile string, out io.Writer) error {
	data, err := os.ReadFile(reasonsFile)
	if err != nil {
		return fmt.Errorf("reading the reasons: %w", err)
	}
	reasons, err := conformance.ParseReasons(data)
	if err != nil {
		return err
	}
	known, err := conformance.Read(results)
	if err != nil {
		return err
	}
	names, err := o.Names(ctx)
	if err != nil {
		return err
	}
	if rest {
		if o.Focus, err = conformance.Rest(names, known, o.Focus); err != nil {
			return err
		}
		if o.Focus == "" {
			fmt.Fprintln(out, "Every spec that the focus matches has passed.")
			return nil
		}
	}
	cases, err := conformance.Run(ctx, o)
	if err != nil || o.DryRun {
		return err
	}
	if err := conformance.Write(results, conformance.Merge(names, known, cases)); err != nil {
		return err
	}
	fmt.Fprint(out, conformance.Markdown(cases, reasons))
	if unexplained := conformance.Unexplained(cases, reasons); len(unexplained) > 0 {
		return fmt.Errorf("%d conformance specs failed that %s has no reason for; the suite's log is %s", len(unexplained), filepath.Base(reasonsFile), filepath.Join(o.Out, "e2e.log"))
	}
	return nil
}
