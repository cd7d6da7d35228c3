package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/oci/reach"
	"hcp.internal/platform/internal/oci/signature"
	"hcp.internal/platform/internal/packages/control/program"
	"hcp.internal/platform/internal/packages/engine/scope"
	"hcp.internal/platform/internal/version"
)

// Options are the flags of package-operator-manager.
type Options struct {
	program.Options             // Namespace: that the operator runs in, for its lease
	ServiceAccountNamespace     string
	ServiceAccountName          string
	PackageOperatorPackageImage string
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
	// Bootstrap runs only what installs the operator itself: the controllers of cluster-scoped packages and of their revisions.
	Bootstrap bool
	// Registry is where metrics are added; nil is that of the process.
	Registry ctrlmetrics.RegistererGatherer

	// RefusedNetworks are those that no registry is asked in.
	RefusedNetworks reach.Refused

	// Signatures says which packages need signatures; nil: none.
	Signatures *signature.Policy

	affinity, tolerations, refusedNetworks, signaturePolicy string
}

// ErrRestart is what a Runnable returns to end the process, with success, because its next start will do more.
var ErrRestart = errors.New("to be started again")

// Bootstrapper installs the operator from a package of itself, o.SelfBootstrap, and returns when that one runs.
type Bootstrapper func(ctx context.Context, cfg *rest.Config, o Options) error

// Command is "package-operator-manager". extensions add controllers to those of revisions.
func Command(bootstrap Bootstrapper, extensions ...Extension) *cobra.Command {
	o := Options{Options: program.Options{LeaderElection: true}}
	cmd := &cobra.Command{
		Use:   "package-operator-manager",
		Short: "Run the controllers of packages until told to stop",
		Long: `Run the controllers of package-operator.run: packages, deployments of objects, their revisions and phases, and object templates.

Inside a cluster it uses the credentials of its pod. Outside of one, give it a kubeconfig.`,
		Example: `  # from a shell, against any API server that has the CustomResourceDefinitions
  package-operator-manager --kubeconfig ~/.kube/config --namespace package-operator-system --metrics-addr 127.0.0.1:8080

  # install the operator from a package of itself, as a Job does
  package-operator-manager --namespace package-operator-system --self-bootstrap registry.example.com/package-operator-package:v1`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.PrintVersion {
				fmt.Fprintln(cmd.ErrOrStderr(), version.This())
				return nil
			}
			cfg, err := process.Connect(cmd.Context(), o.Kubeconfig, cmd.Name())
			if err != nil {
				return err
			}
			if o.SelfBootstrap != "" {
				return bootstrap(cmd.Context(), cfg, o)
			}
			mgr, err := New(cmd.Context(), cfg, o, extensions...)
			if err != nil {
				return err
			}
			process.SpareMemory()
			ctrl.LoggerFrom(cmd.Context()).Info("starting", "namespace", o.Namespace)
			if err := mgr.Start(cmd.Context()); !errors.Is(err, ErrRestart) {
				return err
			}
			return nil
		},
	}
	o.addFlags(cmd.Flags())
	program.ParseArgs(cmd, func(fs *pflag.FlagSet) error { return o.complete(fs, os.Getenv) })
	return cmd
}

// environment are the variables that stand for flags which are not given.
var environment = map[string]string{
	"namespace": "PKO_NAMESPACE", "service-account-namespace": "PKO_SERVICE_ACCOUNT_NAMESPACE", "service-account-name": "PKO_SERVICE_ACCOUNT_NAME",
	"package-operator-package-image": "PKO_PACKAGE_OPERATOR_PACKAGE_IMAGE", "self-bootstrap-config": "PKO_CONFIG",
	"remote-phase-manager-image": "PKO_REMOTE_PHASE_MANAGER_IMAGE", "registry-host-overrides": "PKO_REGISTRY_HOST_OVERRIDES", "image-prefix-overrides": "PKO_IMAGE_PREFIX_OVERRIDES",
	"refused-registry-networks": "PKO_REFUSED_REGISTRY_NETWORKS",
	"package-hash-modifier":     "PKO_PACKAGE_HASH_MODIFIER", "sub-component-affinity": "PKO_SUB_COMPONENT_AFFINITY",
	"sub-component-tolerations": "PKO_SUB_COMPONENT_TOLERATIONS", "log-level": "LOG_LEVEL",
}

func (o *Options) addFlags(fs *pflag.FlagSet) {
	o.Options.AddFlags(fs)
	fs.StringVar(&o.Namespace, "namespace", "", "namespace that the operator runs in, for its lease")
	fs.StringVar(&o.ServiceAccountNamespace, "service-account-namespace", "", "namespace of the ServiceAccount whose pull secrets are used")
	fs.StringVar(&o.ServiceAccountName, "service-account-name", "", "ServiceAccount whose pull secrets are used")
	fs.StringVar(&o.PackageOperatorPackageImage, "package-operator-package-image", "", "package image of the operator's own helpers in namespaces of hosted clusters")
	fs.StringVar(&o.RemotePhaseManagerImage, "remote-phase-manager-image", "", "image of the connectors to hosted clusters, when they are not installed by a package; empty: that of this pod")
	fs.StringVar(&o.SelfBootstrap, "self-bootstrap", "", "package image of the operator: install it, wait until it runs, and end")
	fs.StringVar(&o.SelfBootstrapConfig, "self-bootstrap-config", "", "configuration of that package as JSON")
	fs.StringVar(&o.RegistryHostOverrides, "registry-host-overrides", "", "registries to pull from instead of others: host=newhost,…")
	fs.StringVar(&o.signaturePolicy, "image-signature-policy", "", "file with the signatures that images of packages need; empty: none")
	fs.StringVar(&o.refusedNetworks, "refused-registry-networks", "",
		"networks that no registry is asked in, besides link-local ones: 10.96.0.0/12,… Name those of Services and pods, unless a registry of yours is there")
	fs.StringVar(&o.ImagePrefixOverrides, "image-prefix-overrides", "", "prefixes of images to replace, the longest that matches: from=to,…")
	fs.Int32Var(&o.PackageHashModifier, "package-hash-modifier", 0, "a number that is part of every package's hash; a new one unpacks all packages again")
	fs.StringVar(&o.affinity, "sub-component-affinity", "", "affinity of the operator's own helpers as JSON")
	fs.StringVar(&o.tolerations, "sub-component-tolerations", "", "tolerations of the operator's own helpers as a JSON list")
	fs.DurationVar(&o.ObjectTemplateRetryInterval, "object-template-resource-retry-interval", 30*time.Second, "how long an ObjectTemplate waits for a source that is missing")
	fs.DurationVar(&o.ObjectTemplateOptionalRetryInterval, "object-template-optional-resource-retry-interval", time.Minute,
		"how long an ObjectTemplate waits until it looks for an optional source again")
}

// Scopes are those whose packages are worked on.
func (o Options) Scopes() []scope.Scope {
	if o.Bootstrap {
		return []scope.Scope{scope.Cluster}
	}
	return scope.Both()
}

// complete fills in what the environment says and parses what is JSON.
func (o *Options) complete(fs *pflag.FlagSet, getenv func(string) string) error {
	if err := o.Options.Complete(fs, environment, getenv); err != nil {
		return err
	}
	if o.SelfBootstrap != "" && o.Namespace == "" {
		return errors.New("--namespace: required with --self-bootstrap: where the package puts the operator")
	}
	if o.affinity != "" {
		if err := json.Unmarshal([]byte(o.affinity), &o.SubComponentAffinity); err != nil {
			return fmt.Errorf("--sub-component-affinity: %w", err)
		}
	}
	var err error
	if o.RefusedNetworks, err = reach.Parse(o.refusedNetworks); err != nil {
		return fmt.Errorf("--refused-registry-networks: %w", err)
	}
	if o.Signatures, err = signature.ReadPolicy(o.signaturePolicy); err != nil {
		return fmt.Errorf("--image-signature-policy: %w", err)
	}
	if o.tolerations != "" {
		if err := json.Unmarshal([]byte(o.tolerations), &o.SubComponentTolerations); err != nil {
			return fmt.Errorf("--sub-component-tolerations: %w", err)
		}
	}
	return nil
}
