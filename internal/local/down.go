package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/local/components"
	"hcp.internal/platform/internal/local/network"
	"hcp.internal/platform/internal/local/policy"
	"hcp.internal/platform/internal/local/teardown"
)

// Down removes everything that "up" made with this state folder, and leaves a folder alone that "up" did not make. With another instance on the machine it
// refuses, because control group and bridge belong to it. It may be run at any time and any number of times.
func Down(ctx context.Context, stateDir string, clk clock.WithTicker, out io.Writer) error {
	current, err := CurrentInstance()
	if err != nil {
		return err
	}
	if current != nil && current.StateDir != stateDir {
		return fmt.Errorf("the instance on this machine uses the state folder %s; take it down with: hypershift local down --state-dir %s", current.StateDir, current.StateDir)
	}
	p := components.Paths{State: stateDir}
	if err := safeToRemove(p, current); err != nil {
		return err
	}
	err = teardown.Run(ctx, teardown.Input{
		StateDir: stateDir, Last: p.Marker(), Group: components.CgroupRoot, Network: components.CgroupRoot, Ours: owned(p, current), Clock: clk,
		Names: teardown.Names{Bridge: network.Bridge, Tables: []string{network.Table, policy.Table}, Shared: []string{network.ProxyTable}, Self: os.Getpid()},
		BeforeState: func() error {
			say := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
			if err := installer(p, say).SwitchOff(ctx); err != nil { // an "up" was killed before that
				say("%v", err) // a service that stays is no reason not to go on
			}
			restored, err := restoreHost(p, kernelSettings)
			for _, key := range restored {
				fmt.Fprintf(out, "restoring the kernel setting %s\n", key)
			}
			return errors.Join(err, network.LeaveFirewalls(ctx))
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
