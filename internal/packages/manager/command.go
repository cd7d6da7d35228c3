package manager

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"hcp.internal/platform/internal/version"
)

// Options are the flags of package-operator-manager.
type Options struct {
	Kubeconfig string
	// Namespace that the operator runs in, for its lease.
	Namespace                          string
	MetricsAddr, PprofAddr, HealthAddr string
	LeaderElection                     bool
	ServiceAccountNamespace            string
	ServiceAccountName                 string
	PackageOperatorPackageImage        string
	// RemotePhaseManagerImage holds the connector; empty takes the image of the process's own pod.
	RemotePhaseManagerImage             string
	SelfBootstrap, SelfBootstrapConfig  string
	RegistryHostOverrides               string
	ImagePrefixOverrides                string
	PackageHashModifier                 int32
	SubComponentAffinity                *corev1.Affinity
	SubComponentTolerations             []corev1.Toleration
	ObjectTemplateRetryInterval         time.Duration
	ObjectTemplateOptionalRetryInterval time.Duration
	// Registry is where metrics are added; nil is that of the process.
	Registry ctrlmetrics.RegistererGatherer
	// ForceAdoption takes every object over, whatever its collision protection says. PKO_FORCE_ADOPTION sets it.
	ForceAdoption bool

	printVersion          bool
	affinity, tolerations string
}

// ErrRestart is what a Runnable returns to end the process, with success, because its next start will do more.
var ErrRestart = errors.New("to be started again")

// Command is "package-operator-manager". extensions add controllers to those of revisions.
func Command(extensions ...Extension) *cobra.Command {
	o := Options{}
	cmd := &cobra.Command{
		Use:   "package-operator-manager",
		Short: "Run the controllers of packages until told to stop",
		Long: `Run the controllers of package-operator.run: packages, deployments of objects, their revisions and phases, and object templates.

Inside a cluster it uses the credentials of its pod. Outside of one, give it a kubeconfig.`,
		Example: `  # from a shell, against any API server that has the CustomResourceDefinitions
  package-operator-manager --kubeconfig ~/.kube/config --namespace package-operator-system --metrics-addr 127.0.0.1:8080`,
		// Flags are parsed in Args, since those with one dash are to be understood, too.
		DisableFlagParsing: true,
		Args: func(cmd *cobra.Command, args []string) error {
			cmd.DisableFlagParsing = false
			if err := cmd.ParseFlags(doubleDashes(cmd.Flags(), args)); err != nil {
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
				return nil
			}
			cfg, err := Config(o.Kubeconfig)
			if err != nil {
				return err
			}
			mgr, err := New(cmd.Context(), cfg, o, extensions...)
			if err != nil {
				return err
			}
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(gcPercent)
			}
			ctrl.LoggerFrom(cmd.Context()).Info("starting", "namespace", o.Namespace)
			if err := mgr.Start(cmd.Context()); !errors.Is(err, ErrRestart) {
				return err
			}
			return nil
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// gcPercent trades processor time for memory. Caches are most of the heap and live long; what a pass allocates is small beside them, so that
// collecting twice as often costs some 3 % of the processor time of a rollout.
const gcPercent = 50

// environment are the variables that stand for flags which are not given.
var environment = map[string]string{
	"namespace": "PKO_NAMESPACE", "service-account-namespace": "PKO_SERVICE_ACCOUNT_NAMESPACE", "service-account-name": "PKO_SERVICE_ACCOUNT_NAME",
	"package-operator-package-image": "PKO_PACKAGE_OPERATOR_PACKAGE_IMAGE", "self-bootstrap-config": "PKO_CONFIG",
	"remote-phase-manager-image": "PKO_REMOTE_PHASE_MANAGER_IMAGE", "registry-host-overrides": "PKO_REGISTRY_HOST_OVERRIDES", "image-prefix-overrides": "PKO_IMAGE_PREFIX_OVERRIDES",
	"package-hash-modifier": "PKO_PACKAGE_HASH_MODIFIER", "sub-component-affinity": "PKO_SUB_COMPONENT_AFFINITY",
	"sub-component-tolerations": "PKO_SUB_COMPONENT_TOLERATIONS", "log-level": "LOG_LEVEL",
}

func (o *Options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; empty: KUBECONFIG, or the credentials of the pod")
	fs.StringVar(&o.Namespace, "namespace", "", "namespace that the operator runs in, for its lease")
	fs.StringVar(&o.MetricsAddr, "metrics-addr", ":8080", "address that metrics are served on; 0 for none")
	fs.StringVar(&o.PprofAddr, "pprof-addr", "", "address that profiles are served on; empty for none")
	fs.StringVar(&o.HealthAddr, "health-probe-bind-address", ":8081", "address that health checks are served on; 0 for none")
	fs.BoolVar(&o.LeaderElection, "enable-leader-election", true, "wait for the lease before doing anything, so that only one operator works at a time")
	fs.StringVar(&o.ServiceAccountNamespace, "service-account-namespace", "", "namespace of the ServiceAccount whose pull secrets are used")
	fs.StringVar(&o.ServiceAccountName, "service-account-name", "", "ServiceAccount whose pull secrets are used")
	fs.BoolVar(&o.printVersion, "version", false, "print the version and end")
	fs.StringVar(&o.PackageOperatorPackageImage, "package-operator-package-image", "", "package image of the operator's own helpers in namespaces of hosted clusters")
	fs.StringVar(&o.RemotePhaseManagerImage, "remote-phase-manager-image", "", "image of the connectors to hosted clusters, when they are not installed by a package; empty: that of this pod")
	fs.StringVar(&o.SelfBootstrap, "self-bootstrap", "", "not supported: use hypershift install --package-operator")
	fs.StringVar(&o.SelfBootstrapConfig, "self-bootstrap-config", "", "configuration of that package as JSON")
	fs.StringVar(&o.RegistryHostOverrides, "registry-host-overrides", "", "registries to pull from instead of others: host=newhost,…")
	fs.StringVar(&o.ImagePrefixOverrides, "image-prefix-overrides", "", "prefixes of images to replace, the longest that matches: from=to,…")
	fs.Int32Var(&o.PackageHashModifier, "package-hash-modifier", 0, "a number that is part of every package's hash; a new one unpacks all packages again")
	fs.StringVar(&o.affinity, "sub-component-affinity", "", "affinity of the operator's own helpers as JSON")
	fs.StringVar(&o.tolerations, "sub-component-tolerations", "", "tolerations of the operator's own helpers as a JSON list")
	fs.DurationVar(&o.ObjectTemplateRetryInterval, "object-template-resource-retry-interval", 30*time.Second, "how long an ObjectTemplate waits for a source that is missing")
	fs.DurationVar(&o.ObjectTemplateOptionalRetryInterval, "object-template-optional-resource-retry-interval", time.Minute,
		"how long an ObjectTemplate waits until it looks for an optional source again")
}

// doubleDashes turns "-flag" into "--flag" for every flag that there is.
func doubleDashes(fs *pflag.FlagSet, args []string) []string {
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

// complete fills in what the environment says and parses what is JSON.
func (o *Options) complete(fs *pflag.FlagSet, getenv func(string) string) error {
	for name, variable := range environment {
		flag, value := fs.Lookup(name), getenv(variable)
		if flag == nil || flag.Changed || value == "" {
			continue
		}
		if name == "package-hash-modifier" {
			if _, err := strconv.ParseInt(value, 10, 32); err != nil {
				return fmt.Errorf("unable to parse environment variable '%s' as integer", variable)
			}
		}
		if err := flag.Value.Set(value); err != nil {
			return fmt.Errorf("environment variable %s: %w", variable, err)
		}
	}
	o.ForceAdoption = getenv("PKO_FORCE_ADOPTION") != ""
	if o.SelfBootstrap != "" {
		return errors.New("--self-bootstrap: this operator does not install itself from a package; use hypershift install --package-operator")
	}
	if o.affinity != "" {
		if err := json.Unmarshal([]byte(o.affinity), &o.SubComponentAffinity); err != nil {
			return fmt.Errorf("--sub-component-affinity: %w", err)
		}
	}
	if o.tolerations != "" {
		if err := json.Unmarshal([]byte(o.tolerations), &o.SubComponentTolerations); err != nil {
			return fmt.Errorf("--sub-component-tolerations: %w", err)
		}
	}
	if o.LeaderElection && o.Namespace == "" && o.Kubeconfig != "" {
		return fmt.Errorf("--namespace: required outside a cluster, for the lease; or give --enable-leader-election=false")
	}
	return nil
}
