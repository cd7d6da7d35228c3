package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"hcp.internal/platform/internal/auditlogs"
	"hcp.internal/platform/internal/autoscaler"
	"hcp.internal/platform/internal/capigroup/conversion"
	"hcp.internal/platform/internal/configoperator"
	consolecommand "hcp.internal/platform/internal/console/command"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/etcdbackup"
	"hcp.internal/platform/internal/etcdbackup/job"
	"hcp.internal/platform/internal/etcdrecovery"
	"hcp.internal/platform/internal/fleet"
	"hcp.internal/platform/internal/fleet/gateway"
	"hcp.internal/platform/internal/hostedcluster"
	"hcp.internal/platform/internal/hostedcontrolplane"
	"hcp.internal/platform/internal/ignition"
	"hcp.internal/platform/internal/nodepool"
	controllers "hcp.internal/platform/internal/operator"
	packagebootstrap "hcp.internal/platform/internal/packages/control/bootstrap"
	packageconnector "hcp.internal/platform/internal/packages/control/connector"
	packagehypershift "hcp.internal/platform/internal/packages/control/hypershift"
	packagemanager "hcp.internal/platform/internal/packages/control/manager"
	"hcp.internal/platform/internal/packages/control/packagecontroller"
	"hcp.internal/platform/internal/pkioperator"
	"hcp.internal/platform/internal/platform/local/provider"
	"hcp.internal/platform/internal/sharedingress"
	"hcp.internal/platform/internal/sidecar/etcdrestore"
	"hcp.internal/platform/internal/sidecar/kmsplugin"
)

// role is one of the programs that this binary stands for.
type role struct {
	name  string
	short string
	// commands returns the subcommands.
	commands func() []*cobra.Command
	// whole says that the only command is the program itself.
	whole bool
	// helpers are subcommands that another program holds, by its name: manifests call them by this role's.
	helpers map[string][]string
}

// program is the one that holds the subcommand that args start with, "" if this one does.
func (r role) program(args []string) string {
	for name, commands := range r.helpers {
		if len(args) > 0 && slices.Contains(commands, args[0]) {
			return name
		}
	}
	return ""
}

// command is the root command of the role.
func (r role) command() *cobra.Command {
	if r.whole {
		cmd := r.commands()[0]
		cmd.Use = r.name
		return cmd
	}
	cmd := &cobra.Command{
		Use:   r.name,
		Short: r.short,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(r.commands()...)
	return cmd
}

// conversionWebhook answers behind a Service, which leads to pods alone.
func conversionWebhook(mgr ctrl.Manager, _ controllers.Shared) error {
	// Not the manager's: with private types that one leads to a proxy, where definitions have other names.
	direct, err := rest.InClusterConfig()
	namespace := os.Getenv("MY_NAMESPACE")
	if errors.Is(err, rest.ErrNotInCluster) || namespace == "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finding the management cluster: %w", err)
	}
	return conversion.Setup(mgr, direct, namespace, conversion.Port)
}

// roles is the table of programs. A new role is a package with Command() and an entry here.
var roles = []role{
	{
		name:  "hypershift-operator",
		short: "Operator of the management cluster: hosted clusters and their workers",
		commands: func() []*cobra.Command {
			return []*cobra.Command{hostedcluster.Command(nodepool.Setup, conversionWebhook, etcdbackup.Setup, fleet.Setup, auditlogs.Setup, gateway.Setup), etcdrecovery.Command(), sharedingress.Command()}
		},
	},
	{
		name:  "control-plane-operator",
		short: "Operator of one hosted control plane",
		commands: func() []*cobra.Command {
			return append([]*cobra.Command{hostedcontrolplane.Command(), configoperator.Command(), etcdrestore.Command(job.FetchSnapshot), ignition.Command(), kmsplugin.Command()}, job.Commands()...)
		},
		helpers: map[string][]string{"hcp-sidecar": sidecarHelpers, "hcp-cloud": {"etcd-upload", "etcd-verify", "etcd-fetch"}},
	},
	{
		name:     "hosted-cluster-config-operator",
		short:    "Operator of what a hosted cluster holds from the start",
		commands: func() []*cobra.Command { return []*cobra.Command{configoperator.Command()} },
		whole:    true,
	},
	{
		name:     "control-plane-pki-operator",
		short:    "Operator of certificates for break-glass access",
		commands: func() []*cobra.Command { return []*cobra.Command{pkioperator.Command()} },
	},
	{
		name:     "capi-provider-local",
		short:    "Infrastructure provider of Cluster API for platform Local",
		commands: func() []*cobra.Command { return []*cobra.Command{provider.Command()} },
		whole:    true,
	},
	{
		name:     autoscaler.Name,
		short:    "Sizes NodePools with spec.autoScaling by the pods of a hosted cluster",
		commands: func() []*cobra.Command { return []*cobra.Command{autoscaler.Command()} },
		whole:    true,
	},
	{
		name:  "package-operator-manager",
		short: "Operator of packages: rolls out what they hold and keeps it so",
		commands: func() []*cobra.Command {
			return []*cobra.Command{packagemanager.Command(packagebootstrap.Run, packagecontroller.Extend, packagehypershift.Extend)}
		},
		whole: true,
	},
	{
		name:     packageconnector.Name,
		short:    "Connector to a hosted cluster: rolls out phases of packages there",
		commands: func() []*cobra.Command { return []*cobra.Command{packageconnector.Command()} },
		whole:    true,
	},
	{
		name:     names.IgnitionServer,
		short:    "Server of the configuration that new machines start with",
		commands: func() []*cobra.Command { return []*cobra.Command{ignition.Command()} },
		whole:    true,
	},
	{
		name:     "console",
		short:    "Web console for users with tokens of the management cluster",
		commands: func() []*cobra.Command { return []*cobra.Command{consolecommand.Role()} },
		whole:    true,
	},
}

// sidecarHelpers are the helper names under which manifests call the control plane operator's binary.
var sidecarHelpers = []string{
	"availability-prober", "token-minter", "etcd-init", "wait-dns", "kas-bootstrap", "audit-tail", "pause",
	"konnectivity-https-proxy", "konnectivity-socks5-proxy", "resolve-dns", "sync-fg-configmap", "etcd-defrag-controller", "endpoint-resolver", "metrics-proxy", "sync-global-pullsecret",
}
