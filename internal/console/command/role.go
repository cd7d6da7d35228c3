package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/console/access"
	"hcp.internal/platform/internal/console/server"
	"hcp.internal/platform/internal/console/world"
	"hcp.internal/platform/internal/kube/process"
)

// Role is the program "console" of a cluster.
func Role() *cobra.Command {
	address, where, operator, packageOperator := ":8080", "", "", ""
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Web console for users with tokens of the management cluster",
		Example: `  console --addr :8080
  console --addr :8080 --where production`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), address, server.Server{Where: where, OperatorNamespace: operator, PackageOperatorNamespace: packageOperator})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&address, "addr", address, "address on which the console, /healthz and /readyz are served over plain HTTP: put a TLS proxy in front of it")
	fs.StringVar(&where, "where", where, "display name of the management cluster")
	fs.StringVar(&operator, "operator-namespace", operator, "namespace of the hypershift-operator; empty: hypershift")
	fs.StringVar(&packageOperator, "package-operator-namespace", packageOperator, "namespace of the package operator; empty: package-operator-system")
	return cmd
}

// frugal gives back what starting and the first lists have needed, which is more than is ever needed again.
func frugal(ctx context.Context, w *world.World) {
	for !w.Synced() {
		select {
		case <-ctx.Done():
			return
		case <-w.Moved():
		case <-time.After(time.Second): // a kind that is listed, and has nothing, moves nothing
		}
	}
	process.KeepForgetting(ctx)
}

// serve runs the console with what s says of the place.
func serve(ctx context.Context, address string, s server.Server) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the management cluster: %w", err)
	}
	config.UserAgent, config.QPS = "hypershift-console", -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: connect.Scheme()})
	if err != nil {
		return fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("--addr %s: %w", address, err)
	}
	s.World, s.Gate, s.Log, s.Clock = world.New(), access.NewTokens(c, config, clock.RealClock{}), ctrl.Log.WithName("console"), clock.RealClock{}
	process.SpareMemory()
	go frugal(ctx, s.World)
	ended := make(chan struct{})
	go func() { defer close(ended); s.World.Run(ctx, c, "", s.Log) }()
	err = s.Run(ctx, l)
	select {
	case <-ended:
	case <-time.After(5 * time.Second): // a watch that does not end must not keep the process
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return err
}
