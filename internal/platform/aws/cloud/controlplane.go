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

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/platform/aws/workers"
)

// ControlPlane is the command that works in AWS for one hosted control plane. The control-plane-operator runs it while it leads, so it takes no lease.
func ControlPlane() *cobra.Command {
	var namespace, kubeconfig string
	cmd := &cobra.Command{
		Use:   "control-plane",
		Short: "Work in AWS for one hosted control plane",
		Long: `Work in AWS for the HostedControlPlane in --namespace: find out whether AWS takes its tokens, and keep the security group of its machines.

The control-plane-operator runs this beside itself, with the credentials of its pod. Only one may run at a time.`,
		Example: "  AWS_SHARED_CREDENTIALS_FILE=/etc/provider/credentials hcp-cloud control-plane --namespace clusters-demo",
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

// RunControlPlane works until ctx ends.
func RunControlPlane(ctx context.Context, cfg *rest.Config, namespace string) error {
	scheme, err := process.Scheme(clientgoscheme.AddToScheme, hyperv1.AddToScheme)
	if err != nil {
		return err
	}
	mgr, err := process.NewManager(cfg, process.Options{
		Name: names.ControlPlaneOperator, Scheme: scheme, Serve: process.Serve{Metrics: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}, DefaultTransform: cache.TransformStripManagedFields()},
	})
	if err != nil {
		return err
	}
	w := &workers.Reconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}, NewAPI: workers.NewAPI}
	if err := w.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the security group of workers: %w", err)
	}
	return mgr.Start(ctx)
}
