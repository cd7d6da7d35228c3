package connector

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"hcp.internal/platform/internal/packages/manager"
	"hcp.internal/platform/internal/version"
)

// Options are the flags.
type Options struct {
	// Kubeconfig of the management cluster; empty: KUBECONFIG, or the credentials of the pod.
	Kubeconfig                         string
	MetricsAddr, PprofAddr, HealthAddr string
	// Namespace whose phases are worked on; empty: those of all, and cluster-scoped ones.
	Namespace      string
	LeaderElection bool
	// Class of the phases.
	Class string
	// TargetKubeconfig is the file that says where objects go; empty: the management cluster itself.
	TargetKubeconfig string
	// ForceAdoption takes every object over, whatever its collision protection says. PKO_FORCE_ADOPTION sets it.
	ForceAdoption bool

	printVersion bool
}

// gcPercent trades processor time for memory: there is one such process for each hosted cluster.
const gcPercent = 50

// exitVersion is what the published program ends with after it has printed its version.
const exitVersion = 2

// Command is "package-operator-remote-phase-manager".
func Command() *cobra.Command {
	o := Options{}
	cmd := &cobra.Command{
		Use:   Name,
		Short: "Roll phases of a class out in another cluster until told to stop",
		Long: `Roll ObjectSetPhases of a class out in another cluster than their own, until told to stop.

Phases are read from the management cluster: that of the pod, of KUBECONFIG or of --kubeconfig. Their objects go to the cluster of
--target-cluster-kubeconfig-file, which need not answer for this process to start, and which is tried again for as long as it takes.`,
		Example: `  # beside a hosted control plane
  package-operator-remote-phase-manager --namespace clusters-demo --class hosted-cluster --target-cluster-kubeconfig-file /data/kubeconfig

  # from a shell
  package-operator-remote-phase-manager --kubeconfig management.kubeconfig --namespace clusters-demo --target-cluster-kubeconfig-file demo.kubeconfig --metrics-addr 0 --health-probe-bind-address 0`,
		// Flags are parsed in Args, since those with one dash are to be understood, too.
		DisableFlagParsing: true,
		Args: func(cmd *cobra.Command, args []string) error {
			cmd.DisableFlagParsing = false
			if err := cmd.ParseFlags(manager.DoubleDashes(cmd.Flags(), args)); err != nil {
				return err
			}
			if help, err := cmd.Flags().GetBool("help"); err == nil && help {
				return pflag.ErrHelp
			}
			if rest := cmd.Flags().Args(); len(rest) > 0 {
				return fmt.Errorf("unexpected argument %q", rest[0])
			}
			return o.complete(cmd.Flags(), os.Getenv)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.printVersion {
				fmt.Fprintln(cmd.ErrOrStderr(), version.Commit())
				os.Exit(exitVersion)
			}
			cfg, err := manager.Config(o.Kubeconfig)
			if err != nil {
				return err
			}
			mgr, err := New(cfg, o)
			if err != nil {
				return err
			}
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(gcPercent)
			}
			ctrl.LoggerFrom(cmd.Context()).Info("starting", "namespace", o.Namespace, "class", o.Class)
			return mgr.Start(cmd.Context())
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// environment are the variables that stand for flags which are not given.
var environment = map[string]string{"namespace": "PKO_NAMESPACE", "log-level": "LOG_LEVEL"}

func (o *Options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of the management cluster; empty: KUBECONFIG, or the credentials of the pod")
	fs.StringVar(&o.MetricsAddr, "metrics-addr", ":8080", "address that metrics are served on; 0 for none")
	fs.StringVar(&o.PprofAddr, "pprof-addr", "", "address that profiles are served on; empty for none")
	fs.StringVar(&o.Namespace, "namespace", "", "namespace whose phases are worked on, and of the lease; empty: all, and cluster-scoped phases, too")
	fs.BoolVar(&o.LeaderElection, "enable-leader-election", false, "wait for the lease before doing anything, so that only one process works at a time")
	fs.StringVar(&o.HealthAddr, "health-probe-bind-address", ":8081", "address that health checks are served on; 0 for none")
	fs.StringVar(&o.Class, "class", DefaultClass, "class of the phases to work on")
	fs.StringVar(&o.TargetKubeconfig, "target-cluster-kubeconfig-file", "", "kubeconfig of the cluster that objects go to; empty: the management cluster")
	fs.BoolVar(&o.printVersion, "version", false, "print the version and end")
}

// complete fills in what the environment says.
func (o *Options) complete(fs *pflag.FlagSet, getenv func(string) string) error {
	for name, variable := range environment {
		flag, value := fs.Lookup(name), getenv(variable)
		if flag == nil || flag.Changed || value == "" {
			continue
		}
		if err := flag.Value.Set(value); err != nil {
			return fmt.Errorf("environment variable %s: %w", variable, err)
		}
	}
	o.ForceAdoption = getenv("PKO_FORCE_ADOPTION") != ""
	if o.Class == "" {
		return fmt.Errorf("--class: required")
	}
	if o.LeaderElection && o.Namespace == "" && o.Kubeconfig != "" {
		return fmt.Errorf("--namespace: required outside a cluster, for the lease; or give --enable-leader-election=false")
	}
	return nil
}
