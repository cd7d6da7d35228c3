// Command adversary plays seeds against the local cluster that is up; make adversary brings one up first. See docs/adversary.md.
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

	"hcp.internal/platform/test/adversary"
	"hcp.internal/platform/test/adversary/plan"
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
	flags := flag.NewFlagSet("adversary", flag.ContinueOnError)
	var (
		seed     = flags.Uint64("seed", 1, "First seed")
		seeds    = flags.Uint64("seeds", 1, "How many seeds, one after the other; the first that finds something is the last")
		length   = flags.Duration("for", 20*time.Minute, fmt.Sprintf("About how long a seed takes (%s to %s); another length is another plan", plan.MinLength, plan.MaxLength))
		stateDir = flags.String("state-dir", "/tmp/hcp-e2e", "State folder of the local cluster")
		root     = flags.String("root", ".", "The repository, with what was built in its folder bin")
		slack    = flags.Int("slack", 1, "By how much each bound of time is multiplied, on a machine that does something else besides")
		only     = flags.Bool("plan", false, "Print what would be done, and do nothing")
		heal     = flags.Bool("heal", false, "Undo what a run that was killed left behind, and do nothing else")
	)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *heal {
		return adversary.Heal(*stateDir, out)
	}
	dir, err := filepath.Abs(*root)
	if err != nil {
		return err
	}
	for n := range *seeds {
		s := *seed + n
		if *only {
			if err := plan.For(s, *length).Print(out); err != nil {
				return err
			}
			continue
		}
		if os.Geteuid() != 0 {
			return errors.New("the adversary kills processes and cuts networks of pods: run it as root, on a machine of your own")
		}
		report, err := adversary.Run(ctx, adversary.Options{Seed: s, Length: *length, StateDir: *stateDir, Root: dir, Log: out, Slack: *slack})
		for _, v := range report.Violations {
			fmt.Fprintln(os.Stderr, "Violated:", v)
		}
		if err != nil {
			return fmt.Errorf("playing seed %d: %w", s, err)
		}
		if len(report.Violations) > 0 {
			return fmt.Errorf("seed %d: %d promises didn't hold; make adversary SEED=%d LENGTH=%s plays it again", s, len(report.Violations), s, *length)
		}
		fmt.Fprintf(os.Stderr, "Seed %d: %d steps, %d of them met nobody; every promise held.\n", s, report.Played+report.Skipped, report.Skipped)
	}
	return nil
}
