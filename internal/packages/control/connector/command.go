package connector

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/packages/control/program"
	"hcp.internal/platform/internal/version"
)

// Options are the flags.
type Options struct {
	// Namespace: that of the phases which are worked on, and of the lease; empty: all namespaces, and cluster-scoped phases, too.
	program.Options
	// Class of the phases.
	Class string
	// TargetKubeconfig is the file that says where objects go; empty: the management cluster itself.
	TargetKubeconfig string
}

// exitVersion is what the published program ends with after it has printed its version.
const exitVersion = 2

// Command is "package-operator-remote-phase-manager".
func Command() *cobra.Command {
	o := Options{}
	cmd := &cobra.Command{
		Use:   Name,
		Short: "Roll out phases of a class in another cluster until told to stop",
		Long: `Roll ObjectSetPhases of a class out in another cluster than their own, until told to stop.

Phases are read from the management cluster: that of the pod, of KUBECONFIG or of --kubeconfig. Their objects go to the cluster of
--target-cluster-kubeconfig-file, which need not answer for this process to start, and which is tried again for as long as it takes.`,
		Example: `  # beside a hosted control plane
  package-operator-remote-phase-manager --namespace clusters-demo --class hosted-cluster --target-cluster-kubeconfig-file /data/kubeconfig

  # from a shell
  package-operator-remote-phase-manager --kubeconfig management.kubeconfig --namespace clusters-demo --target-cluster-kubeconfig-file demo.kubeconfig --metrics-addr 0 --health-probe-bind-address 0`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.PrintVersion {
				fmt.Fprintln(cmd.ErrOrStderr(), version.This())
				os.Exit(exitVersion)
			}
			cfg, err := process.Connect(cmd.Context(), o.Kubeconfig, Name)
			if err != nil {
				return err
			}
			mgr, err := New(cfg, o)
			if err != nil {
				return err
			}
			process.SpareMemory()
			ctrl.LoggerFrom(cmd.Context()).Info("starting", "namespace", o.Namespace, "class", o.Class)
			return mgr.Start(cmd.Context())
		},
	}
	o.addFlags(cmd.Flags())
	program.ParseArgs(cmd, func(fs *pflag.FlagSet) error { return o.complete(fs, os.Getenv) })
	return cmd
}

// environment are the variables that stand for flags which are not given.
var environment = map[string]string{"namespace": "PKO_NAMESPACE", "log-level": "LOG_LEVEL"}

func (o *Options) addFlags(fs *pflag.FlagSet) {
	o.Options.AddFlags(fs)
	fs.StringVar(&o.Namespace, "namespace", "", "namespace whose phases are worked on, and of the lease; empty: all, and cluster-scoped phases, too")
	fs.StringVar(&o.Class, "class", DefaultClass, "class of the phases to work on")
	fs.StringVar(&o.TargetKubeconfig, "target-cluster-kubeconfig-file", "", "kubeconfig of the cluster that objects go to; empty: the management cluster")
}

// complete fills in what the environment says.
func (o *Options) complete(fs *pflag.FlagSet, getenv func(string) string) error {
	if err := o.Options.Complete(fs, environment, getenv); err != nil {
		return err
	}
	if o.Class == "" {
		return errors.New("--class: required")
	}
	return nil
}
