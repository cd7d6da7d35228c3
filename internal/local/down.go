package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/local/components"
	"hcp.internal/platform/internal/local/network"
	"hcp.internal/platform/internal/local/policy"
	"hcp.internal/platform/internal/local/teardown"
)

// Down removes everything that "up" made with this state folder. With another instance on the machine it refuses, because
// control group and bridge belong to it. It may be run at any time and any number of times.
func Down(ctx context.Context, stateDir string, clk clock.WithTicker, out io.Writer) error {
	current, err := CurrentInstance()
	if err != nil {
		return err
	}
	if current != nil && current.StateDir != stateDir {
		return fmt.Errorf("the instance on this machine uses the state folder %s; take it down with: hypershift local down --state-dir %s", current.StateDir, current.StateDir)
	}
	p := components.Paths{State: stateDir}
	if err := safeToRemove(p); err != nil {
		return err
	}
	err = teardown.Run(ctx, teardown.Input{
		StateDir: stateDir, Group: components.CgroupRoot, Network: components.CgroupRoot, Clock: clk,
		Names: teardown.Names{Bridge: network.Bridge, Tables: []string{network.Table, network.ProxyTable, policy.Table}, Self: os.Getpid()},
		BeforeState: func() error {
			restored, err := restoreHost(p)
			for _, key := range restored {
				fmt.Fprintf(out, "restoring the kernel setting %s\n", key)
			}
			return errors.Join(err, network.RemoveForwarding(ctx))
		},
		Report: func(line string) { fmt.Fprintln(out, line) },
	})
	if err != nil {
		return err
	}
	for _, f := range []string{instanceFile, lockFile} {
		if err := os.Remove(f); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing %s: %w", f, err)
		}
	}
	fmt.Fprintln(out, "nothing of the local cluster is left")
	return nil
}

// safeToRemove refuses a folder that is not a state folder: a typing error must not cost a home directory.
func safeToRemove(p components.Paths) error {
	entries, err := os.ReadDir(p.State)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(entries) == 0) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the state folder: %w", err)
	}
	for _, f := range []string{p.HostState(), p.Config(), p.Logs()} {
		if _, err := os.Lstat(f); err == nil && filepath.Clean(p.State) != "/" {
			return nil
		}
	}
	return fmt.Errorf("%s holds files but none that local mode makes; give the right folder with --state-dir", p.State)
}
