package cloud

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/platform/azure/privatelink"
)

// ControlPlane is the command that works in Azure for one hosted control plane. The control-plane-operator runs it while it leads, so it takes no lease.
func ControlPlane() *cobra.Command {
	var namespace, kubeconfig string
	cmd := &cobra.Command{
		Use:   "azure-control-plane",
		Short: "Manage Azure resources for one hosted control plane",
		Long: `Work in Azure for the HostedControlPlane in --namespace: make the private endpoints by which its machines reach it, and the
private zones and records of its names, and remove them with it.

The control-plane-operator runs this beside itself, with the identity of its pod. Only one may run at a time.`,
		Example: "  AZURE_FEDERATED_TOKEN_FILE=/var/run/secrets/openshift/serviceaccount/token hcp-cloud azure-control-plane --namespace clusters-demo",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if namespace == "" {
				return errors.New("--namespace must name the control plane namespace")
			}
			cfg, err := process.Connect(cmd.Context(), kubeconfig, names.ControlPlaneOperator)
			if err != nil {
				return err
			}
			return RunControlPlane(cmd.Context(), cfg, namespace)
		},
	}
	cmd.Flags().StringVar(&namespace, "namespace", os.Getenv("MY_NAMESPACE"), "Control plane namespace to work in (default $MY_NAMESPACE)")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", process.KubeconfigUsage)
	return cmd
}

// Management is the command that works in Azure for all hosted clusters of an installation. The hypershift-operator runs it while it leads, so it takes no
// lease.
func Management() *cobra.Command {
	var kubeconfig string
	var identity scope.Identity
	cmd := &cobra.Command{
		Use:   "azure-management",
		Short: "Manage Azure resources for all hosted clusters of a management cluster",
		Long: `Work in Azure for all hosted clusters of a management cluster: make the Private Link services of those that are private, in resource group
$` + privatelink.EnvGroup + ` of subscription $` + privatelink.EnvSubscription + `, and remove them with the clusters.

The hypershift-operator runs this beside itself. Only one may run at a time.`,
		Example: "  " + privatelink.EnvGroup + "=management " + privatelink.EnvCredentials + "=~/.azure/credentials hcp-cloud azure-management",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if os.Getenv(privatelink.EnvGroup) == "" {
				return errors.New(privatelink.EnvGroup + " in the environment must name the resource group of the management cluster's load balancers")
			}
			if os.Getenv("ENABLE_HOSTEDCLUSTERS_ANNOTATION_SCOPING") == "true" {
				identity.Scope = ptr.To(os.Getenv("HOSTEDCLUSTERS_SCOPE_ANNOTATION"))
			}
			cfg, err := process.Connect(cmd.Context(), kubeconfig, names.HypershiftOperator)
			if err != nil {
				return err
			}
			return RunManagement(cmd.Context(), cfg, identity)
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", process.KubeconfigUsage)
	cmd.Flags().BoolVar(&identity.PrivateCAPI, "private-capi-types", false, "Work on the hosted clusters whose objects of Cluster API are in HyperShift's own groups")
	return cmd
}

func newManager(cfg *rest.Config, name string, c cache.Options) (manager.Manager, error) {
	scheme, err := process.Scheme(clientgoscheme.AddToScheme, hyperv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	c.DefaultTransform = cache.TransformStripManagedFields()
	return process.NewManager(cfg, process.Options{Name: name, Scheme: scheme, Serve: process.Serve{Metrics: "0"}, Cache: c})
}

// RunControlPlane works until ctx ends.
func RunControlPlane(ctx context.Context, cfg *rest.Config, namespace string) error {
	mgr, err := newManager(cfg, names.ControlPlaneOperator, cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}})
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
	mgr, err := newManager(cfg, names.HypershiftOperator, cache.Options{})
	if err != nil {
		return err
	}
	r := &privatelink.Services{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}, Identity: identity,
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
