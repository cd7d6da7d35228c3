// Package beside has what those commands of hcp-cloud have in common that an operator runs beside itself.
package beside

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/kube/process"
)

// ControlPlane completes a command that works in a cloud for one hosted control plane. The control-plane-operator runs it while it leads, so it takes no lease.
func ControlPlane(cmd *cobra.Command, run func(ctx context.Context, cfg *rest.Config, namespace string) error) *cobra.Command {
	var namespace, kubeconfig string
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if namespace == "" {
			return errors.New("--namespace must name the control plane namespace")
		}
		cfg, err := process.Connect(cmd.Context(), kubeconfig, names.ControlPlaneOperator)
		if err != nil {
			return err
		}
		return run(cmd.Context(), cfg, namespace)
	}
	cmd.Flags().StringVar(&namespace, "namespace", os.Getenv("MY_NAMESPACE"), "Control plane namespace to work in (default $MY_NAMESPACE)")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", process.KubeconfigUsage)
	return cmd
}

// Management completes a command that works in a cloud for all hosted clusters of an installation. The hypershift-operator runs it while it leads, so it takes no
// lease.
func Management(cmd *cobra.Command, run func(ctx context.Context, cfg *rest.Config, identity scope.Identity) error) *cobra.Command {
	var kubeconfig string
	var identity scope.Identity
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		identity.Scope = scope.FromEnvironment()
		cfg, err := process.Connect(cmd.Context(), kubeconfig, names.HypershiftOperator)
		if err != nil {
			return err
		}
		return run(cmd.Context(), cfg, identity)
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", process.KubeconfigUsage)
	cmd.Flags().BoolVar(&identity.PrivateCAPI, "private-capi-types", false, "Work on the hosted clusters whose objects of Cluster API are in HyperShift's own groups")
	return cmd
}

// NewManager makes the manager of such a command: it knows our kinds and serves nothing.
func NewManager(cfg *rest.Config, o process.Options) (manager.Manager, error) {
	scheme, err := process.Scheme(clientgoscheme.AddToScheme, hyperv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	o.Scheme, o.Serve, o.Cache.DefaultTransform = scheme, process.Serve{Metrics: "0"}, cache.TransformStripManagedFields()
	return process.NewManager(cfg, o)
}
