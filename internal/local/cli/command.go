//go:build linux

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/cli/terminal"
	"hcp.internal/platform/internal/local"
	"hcp.internal/platform/internal/local/builds"
	"hcp.internal/platform/internal/local/components"
)

// Command returns "local" with the steps that install the operators and create the demo cluster.
func Command() *cobra.Command { return command(steps()) }

func command(steps local.Steps) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "local",
		Short: "Run a management cluster with a hosted cluster on this machine",
		Example: `  hypershift local up
  hypershift local status
  hypershift local down`,
		Long: `Run a real management cluster on this machine, without a container engine: etcd, kube-apiserver,
kube-controller-manager, kube-scheduler, kubelet, kube-proxy, CoreDNS, containerd and a registry, with the operators
and the hosted cluster clusters/demo in it.

Everything is in one state folder (.local), one control group, one bridge (hcp0) and one packet filter table; "down"
removes all of it. It listens only on loopback and on the bridge's address 10.244.0.1. Needs root.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(upCommand(steps), downCommand(), statusCommand(), logsCommand(), quietCommand(), superviseCommand())
	return cmd
}

// folders are the flags that every subcommand has.
type folders struct {
	state, root string
}

func (f *folders) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.state, "state-dir", "", `state folder (default ".local" in the checkout)`)
	cmd.Flags().StringVar(&f.root, "root", ".", "folder of the checkout, or one below it")
}

// stateDir is the absolute path of the state folder, with links resolved.
func (f *folders) stateDir() (string, error) {
	dir := f.state
	if dir == "" {
		root, err := builds.FindRoot(f.root)
		if err != nil {
			return "", fmt.Errorf("%w; or name the state folder with --state-dir", err)
		}
		dir = filepath.Join(root, ".local")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolving %s: %w", dir, err)
	}
	return local.RealPath(dir), nil
}

func upCommand(steps local.Steps) *cobra.Command {
	f := &folders{}
	s := local.Settings{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the local cluster, or check and repair it",
		Example: `  hypershift local up
  hypershift local up --skip-demo --with-release 1.35
  export KUBECONFIG=$PWD/.local/kubeconfig`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := builds.FindRoot(f.root)
			if err != nil {
				return err
			}
			s.Root = root
			if s.StateDir, err = f.stateDir(); err != nil {
				return err
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("finding this program: %w", err)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			u := &local.Up{Settings: s, Steps: steps, Clock: clock.RealClock{}, Out: cmd.OutOrStdout(), TTY: terminal.Rewritable(os.Stdout), Executable: self}
			return u.Run(ctx)
		},
	}
	f.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&s.KubernetesVersion, "kubernetes-version", local.DefaultKubernetesVersion, "Kubernetes of the management cluster and of the demo cluster")
	fl.StringSliceVar(&s.Releases, "with-release", nil, "build this Kubernetes release too, e.g. 1.35, to upgrade from or to")
	fl.BoolVar(&s.RefreshReleases, "refresh-releases", false, "build release images again, with the present sidecar image")
	fl.BoolVar(&s.SkipDemo, "skip-demo", false, "do not create the hosted cluster clusters/demo")
	fl.BoolVar(&s.SkipInstall, "skip-install", false, "do not install the operators either")
	fl.BoolVar(&s.SkipBuild, "skip-build", false, "use the programs in bin/ as they are")
	fl.BoolVar(&s.PodEgress, "pod-egress", false, "let pods connect to other machines, with this machine's address")
	fl.DurationVar(&s.Timeout, "timeout", local.DefaultTimeout, "give up after this time")
	return cmd
}

func downCommand() *cobra.Command {
	f := &folders{}
	cmd := &cobra.Command{
		Use:     "down",
		Short:   "Remove everything that up created",
		Example: "  hypershift local down",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if os.Geteuid() != 0 {
				return errors.New("taking the local cluster down needs root; run the command with sudo")
			}
			dir, err := f.stateDir()
			if err != nil {
				return err
			}
			return local.Down(cmd.Context(), dir, clock.RealClock{}, cmd.OutOrStdout())
		},
	}
	f.add(cmd)
	return cmd
}

func statusCommand() *cobra.Command {
	f := &folders{}
	output := ""
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what is running",
		Example: `  hypershift local status
  hypershift local status -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := f.stateDir()
			if err != nil {
				return err
			}
			report := local.ReadReport(cmd.Context(), dir)
			if output == "" {
				report.Print(cmd.OutOrStdout())
				return nil
			}
			return printAs(cmd.OutOrStdout(), output, report)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml instead of tables")
	return cmd
}

// printAs writes a report for scripts.
func printAs(w io.Writer, format string, report any) error {
	switch format {
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(report)
	case "yaml":
		data, err := yaml.Marshal(report)
		if err != nil {
			return fmt.Errorf("encoding the report: %w", err)
		}
		_, err = w.Write(data)
		return err
	}
	return fmt.Errorf("--output %q: want json or yaml", format)
}

// superviseCommand is what "up" starts in the background.
func superviseCommand() *cobra.Command {
	f := &folders{}
	cmd := &cobra.Command{
		Use:     "supervise",
		Short:   "Run the processes of the local cluster (started by up)",
		Example: "  hypershift local supervise --state-dir $PWD/.local",
		Hidden:  true,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := f.stateDir()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(context.WithoutCancel(cmd.Context()), os.Interrupt, syscall.SIGTERM)
			defer stop()
			log := logr.FromSlogHandler(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			return local.Supervise(ctx, components.Paths{State: dir}, clock.RealClock{}, log)
		},
	}
	f.add(cmd)
	return cmd
}
