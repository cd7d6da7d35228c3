//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/local/components"
)

// followPoll is how often a followed log is looked at.
const followPoll = 250 * time.Millisecond

func logsCommand() *cobra.Command {
	f := &folders{}
	follow := false
	cmd := &cobra.Command{
		Use:   "logs [NAME]",
		Short: "Show the log of a process, or list the logs",
		Example: `  hypershift local logs
  hypershift local logs kube-apiserver -f`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := f.stateDir()
			if err != nil {
				return err
			}
			names, err := logNames(components.Paths{State: dir}.Logs())
			if err != nil {
				return err
			}
			if len(args) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), strings.Join(names, "\n"))
				return nil
			}
			// The name is compared with what there is, so it cannot lead out of the folder.
			if !slices.Contains(names, args[0]) {
				return fmt.Errorf("no log %q; there are: %s", args[0], strings.Join(names, ", "))
			}
			path := filepath.Join(components.Paths{State: dir}.Logs(), args[0]+".log")
			return show(cmd.Context(), path, follow, cmd.OutOrStdout(), clock.RealClock{})
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing new output")
	return cmd
}

func logNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there are no logs in %s; start the cluster with: hypershift local up", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("listing logs: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".log"); ok && !e.IsDir() {
			names = append(names, name)
		}
	}
	return names, nil
}

// show copies a log, and when asked goes on until ctx ends, also when the file is rotated.
func show(ctx context.Context, path string, follow bool, out io.Writer, clk clock.Clock) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	defer func() { _ = file.Close() }()
	for {
		if _, err := io.Copy(out, file); err != nil {
			return fmt.Errorf("reading the log: %w", err)
		}
		if !follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-clk.After(followPoll):
		}
		if next, err := os.Open(path); err == nil {
			if same(file, next) {
				_ = next.Close()
				continue
			}
			_, _ = io.Copy(out, file) // what came between the last copy and the rotation
			_ = file.Close()
			file = next
		}
	}
}

func same(a, b *os.File) bool {
	ai, err1 := a.Stat()
	bi, err2 := b.Stat()
	return err1 == nil && err2 == nil && os.SameFile(ai, bi)
}
