package cloud

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/platform/azure/privatelink"
	"hcp.internal/platform/internal/platform/beside"
)

// ControlPlane is the command that works in Azure for one hosted control plane.
func ControlPlane() *cobra.Command {
	return beside.ControlPlane(&cobra.Command{
		Use:   "azure-control-plane",
		Short: "Manage Azure resources for one hosted control plane",
		Long: `Work in Azure for the HostedControlPlane in --namespace: make the private endpoints by which its machines reach it, and the
private zones and records of its names, and remove them with it.

The control-plane-operator runs this beside itself, with the identity of its pod. Only one may run at a time.`,
		Example: "  AZURE_FEDERATED_TOKEN_FILE=/var/run/secrets/openshift/serviceaccount/token hcp-cloud azure-control-plane --namespace clusters-demo",
	}, RunControlPlane)
}

// Management is the command that works in Azure for all hosted clusters of an installation.
func Management() *cobra.Command {
	return beside.Management(&cobra.Command{
		Use:   "azure-management",
		Short: "Manage Azure resources for all hosted clusters of a management cluster",
		Long: `Work in Azure for all hosted clusters of a management cluster: make the Private Link services of those that are private, in resource group
$` + privatelink.EnvGroup + ` of subscription $` + privatelink.EnvSubscription + `, and remove them with the clusters.

The hypershift-operator runs this beside itself. Only one may run at a time.`,
		Example: "  " + privatelink.EnvGroup + "=management " + privatelink.EnvCredentials + "=~/.azure/credentials hcp-cloud azure-management",
		PreRunE: func(*cobra.Command, []string) error {
			if os.Getenv(privatelink.EnvGroup) == "" {
				return errors.New(privatelink.EnvGroup + " in the environment must name the resource group of the management cluster's load balancers")
			}
			return nil
		},
	}, RunManagement)
}

// RunControlPlane works until ctx ends.
func RunControlPlane(ctx context.Context, cfg *rest.Config, namespace string) error {
	mgr, err := beside.NewManager(cfg, process.Options{
		Name: names.ControlPlaneOperator, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	if err != nil {
		return err
	}
	r := &privatelink.Endpoints{
		Client: mgr.GetClient(), Applier: apply.New(mgr.GetClient(), names.ControlPlaneOperator), Clock: clock.RealClock{},
		Open: func(cloudName, subscription string) (*privatelink.Consumer, error) {
			at, err := privatelink.OpenControlPlane(cloudName, subscription)
			if err != nil {
				return nil, err
			}
			return privatelink.NewConsumer(at)
		},
	}
	if err := r.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the private endpoints: %w", err)
	}
	return mgr.Start(ctx)
}

// RunManagement works until ctx ends.
func RunManagement(ctx context.Context, cfg *rest.Config, identity scope.Identity) error {
	mgr, err := beside.NewManager(cfg, process.Options{Name: names.HypershiftOperator})
	if err != nil {
		return err
	}
	r := &privatelink.Services{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}, Identity: identity,
		Credentials: os.Getenv(privatelink.EnvCredentials),
		Open: func(cloudName string) (*privatelink.Provider, error) {
			at, err := privatelink.OpenManagement(cloudName)
			if err != nil {
				return nil, err
			}
			return privatelink.NewProvider(at)
		},
	}
	if err := r.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the Private Link services: %w", err)
	}
	return mgr.Start(ctx)
}
