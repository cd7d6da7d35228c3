// Command hcp-sidecar is every small program that runs beside or before the containers of a hosted control plane, in one
// static binary. The program is chosen by the name it is called by, else by the first argument.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/gomemlimit"
	"hcp.internal/platform/internal/konnectivity"
	"hcp.internal/platform/internal/machine/boot"
	"hcp.internal/platform/internal/machineconfig"
	"hcp.internal/platform/internal/sidecar/apiserverproxy"
	"hcp.internal/platform/internal/sidecar/audittail"
	"hcp.internal/platform/internal/sidecar/capiproxy"
	"hcp.internal/platform/internal/sidecar/endpointresolver"
	"hcp.internal/platform/internal/sidecar/etcdinit"
	"hcp.internal/platform/internal/sidecar/featuregates"
	"hcp.internal/platform/internal/sidecar/kasbootstrap"
	"hcp.internal/platform/internal/sidecar/metricsproxy"
	"hcp.internal/platform/internal/sidecar/nodetrust"
	"hcp.internal/platform/internal/sidecar/prober"
	"hcp.internal/platform/internal/sidecar/pullsecret"
	"hcp.internal/platform/internal/sidecar/shell"
	"hcp.internal/platform/internal/sidecar/tokenminter"
	"hcp.internal/platform/internal/sidecar/tunnelproxy"
	"hcp.internal/platform/internal/sidecar/waitdns"
)

// roles are the programs. Adding one is a package and a line here.
var roles = []func() *cobra.Command{
	apiserverproxy.Command,
	audittail.Command,
	capiproxy.Command,
	prober.Command,
	pullsecret.Command,
	etcdinit.Command,
	endpointresolver.Command,
	etcdDefragCommand,
	featuregates.Command,
	kasbootstrap.Command,
	konnectivity.AgentCommand,
	konnectivity.ServerCommand,
	machineconfig.Command,
	metricsproxy.Command,
	nodetrust.Command,
	boot.Command,
	pauseCommand,
	shell.Command,
	shell.TestCommand,
	tokenminter.Command,
	tunnelproxy.HTTPSCommand,
	tunnelproxy.Socks5Command,
	versionCommand,
	waitdns.Command,
}

func main() {
	// These processes are many and idle: rather collect often than hold memory.
	debug.SetGCPercent(30)
	gomemlimit.Heed()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(filepath.Base(os.Args[0])).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "hcp-sidecar: %v\n", err)
		os.Exit(1)
	}
}

// command is the role that a link is named after, or the root of all roles.
func command(name string) *cobra.Command {
	root := &cobra.Command{
		Use:   "hcp-sidecar",
		Short: "Programs that run beside and before the containers of a hosted control plane",
		Example: `  hcp-sidecar wait-dns etcd-client.clusters-demo.svc
  ln -s hcp-sidecar wait-dns && ./wait-dns etcd-client.clusters-demo.svc`,
		SilenceUsage: true, SilenceErrors: true,
	}
	var names []string
	for _, build := range roles {
		role := build()
		if role.Name() == name || role.HasAlias(name) {
			return role
		}
		names = append(names, role.Name())
		root.AddCommand(role)
	}
	slices.Sort(names)
	root.Long = root.Short + ".\n\nRoles: " + strings.Join(names, ", ") + "."
	return root
}

// pauseCommand sleeps: a placeholder for a container that only has to be there.
func pauseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "pause", Short: "Do nothing until told to stop", Example: "  hcp-sidecar pause", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) { <-cmd.Context().Done() },
	}
}

// etcdDefragCommand stands where the published operator has one more process that defragments: ours does so itself, for all members in turn.
func etcdDefragCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "etcd-defrag-controller", Short: "Leave the defragmentation of etcd to the control-plane-operator, until told to stop",
		Example: "  hcp-sidecar etcd-defrag-controller --namespace clusters-demo", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) { <-cmd.Context().Done() },
	}
	cmd.Flags().String("namespace", "", "namespace of the control plane; nothing is done there")
	return cmd
}
