package program

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hcp.internal/platform/internal/kube/process"
)

// Options are the flags that both programs have.
type Options struct {
	// Kubeconfig of the management cluster; empty: KUBECONFIG, or the credentials of the pod.
	Kubeconfig string
	// Namespace of the lease; what else it says depends on the program.
	Namespace                          string
	MetricsAddr, PprofAddr, HealthAddr string
	// Secure protects the metrics.
	Secure         process.MetricsSecurity
	LeaderElection bool
	// ForceAdoption takes every object over, whatever its collision protection says. PKO_FORCE_ADOPTION sets it.
	ForceAdoption bool
	// PrintVersion asks for the version and nothing else.
	PrintVersion bool
}

// AddFlags adds the flags. LeaderElection is the default of its flag.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", process.KubeconfigUsage)
	fs.StringVar(&o.MetricsAddr, "metrics-addr", ":8080", "address that metrics are served on; 0 for none")
	o.Secure.AddFlags(fs)
	fs.StringVar(&o.PprofAddr, "pprof-addr", "", "address that profiles are served on, to this host alone: :PORT; empty for none")
	fs.StringVar(&o.HealthAddr, "health-probe-bind-address", ":8081", "address that health checks are served on; 0 for none")
	fs.BoolVar(&o.LeaderElection, "enable-leader-election", o.LeaderElection, "wait for the lease before doing anything, so that only one process works at a time")
	fs.BoolVar(&o.PrintVersion, "version", false, "print the version and end")
}

// ParseArgs makes a command take flags with one dash, too, as the published programs do, and no arguments. complete is called once flags are
// parsed.
func ParseArgs(cmd *cobra.Command, complete func(fs *pflag.FlagSet) error) {
	cmd.DisableFlagParsing = true
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		cmd.DisableFlagParsing = false
		if err := cmd.ParseFlags(DoubleDashes(cmd.Flags(), args)); err != nil {
			return err
		}
		if help, err := cmd.Flags().GetBool("help"); err == nil && help {
			return pflag.ErrHelp
		}
		if rest := cmd.Flags().Args(); len(rest) > 0 {
			return fmt.Errorf("unexpected argument %q", rest[0])
		}
		return complete(cmd.Flags())
	}
}

// DoubleDashes turns "-flag" into "--flag" for every flag that there is.
func DoubleDashes(fs *pflag.FlagSet, args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = arg
		if arg == "--" {
			copy(out[i:], args[i:])
			break
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		if len(name) > 1 && strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && fs.Lookup(name) != nil {
			out[i] = "-" + arg
		}
	}
	return out
}

// Complete fills in what the environment says about flags that are not given; variables are the names of theirs by flag. It checks that a lease has
// a place.
func (o *Options) Complete(fs *pflag.FlagSet, variables map[string]string, getenv func(string) string) error {
	for name, variable := range variables {
		flag, value := fs.Lookup(name), getenv(variable)
		if flag == nil || flag.Changed || value == "" {
			continue
		}
		if err := flag.Value.Set(value); err != nil {
			if flag.Value.Type() == "int32" {
				return fmt.Errorf("unable to parse environment variable '%s' as integer", variable) // as published
			}
			return fmt.Errorf("environment variable %s: %w", variable, err)
		}
	}
	o.ForceAdoption = getenv("PKO_FORCE_ADOPTION") != ""
	if o.LeaderElection && o.Namespace == "" && o.Kubeconfig != "" {
		return errors.New("--namespace: required outside a cluster, for the lease; or give --enable-leader-election=false")
	}
	return nil
}
