package cloud

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/platform/aws/kms"
	"hcp.internal/platform/internal/platform/aws/privatelink"
	"hcp.internal/platform/internal/platform/aws/workers"
	"hcp.internal/platform/internal/platform/beside"
)

// credentialsFile is the variable of the environment that names the SDK's file of credentials.
const credentialsFile = "AWS_SHARED_CREDENTIALS_FILE"

// ControlPlane is the command that works in AWS for one hosted control plane.
func ControlPlane() *cobra.Command {
	return beside.ControlPlane(&cobra.Command{
		Use:   "control-plane",
		Short: "Manage AWS resources for one hosted control plane",
		Long: `Work in AWS for the HostedControlPlane in --namespace: find out whether AWS takes its tokens, whether its KMS key
can be used, keep the security group of its machines, and the VPC endpoints by which they reach a private control plane.

The control-plane-operator runs this beside itself, with the credentials of its pod. Only one may run at a time.`,
		Example: "  AWS_SHARED_CREDENTIALS_FILE=/etc/provider/credentials hcp-cloud control-plane --namespace clusters-demo",
	}, RunControlPlane)
}

// RunControlPlane works until ctx ends.
func RunControlPlane(ctx context.Context, cfg *rest.Config, namespace string) error {
	mgr, err := beside.NewManager(cfg, process.Options{
		Name: names.ControlPlaneOperator, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	if err != nil {
		return err
	}
	w := &workers.Reconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}, NewAPI: workers.NewAPI, Credentials: os.Getenv(credentialsFile)}
	if err := w.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the security group of workers: %w", err)
	}
	if err := (&kms.Reconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}, Token: kms.Tokens(mgr.GetAPIReader())}).SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the check of the KMS key: %w", err)
	}
	applier := apply.New(mgr.GetClient(), names.ControlPlaneOperator)
	balancers := &privatelink.Balancers{Client: mgr.GetClient(), Applier: applier, Clock: clock.RealClock{}}
	ends := &privatelink.Endpoints{Client: mgr.GetClient(), Applier: applier, Clock: clock.RealClock{}, Open: privatelink.OpenConsumer, Credentials: os.Getenv(credentialsFile)}
	if there, err := served(mgr); err != nil {
		return err
	} else if there {
		if err := errors.Join(balancers.SetupWithManager(mgr), ends.SetupWithManager(mgr)); err != nil {
			return fmt.Errorf("setting up the VPC endpoints: %w", err)
		}
	}
	return mgr.Start(ctx)
}

// served tells whether the management cluster has AWSEndpointServices: an installation that hosts nothing on AWS has none.
func served(mgr manager.Manager) (bool, error) {
	kind := hyperv1.GroupVersion.WithKind("AWSEndpointService")
	_, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("looking for kind AWSEndpointService: %w", err)
	}
	return true, nil
}
