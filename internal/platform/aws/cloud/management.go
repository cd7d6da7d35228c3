package cloud

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/platform/aws/documents"
	"hcp.internal/platform/internal/platform/aws/privatelink"
	"hcp.internal/platform/internal/platform/beside"
)

// ManagementOptions say what is done in AWS for all hosted clusters of an installation.
type ManagementOptions struct {
	// Documents is the bucket of OIDC documents; none without a name.
	Documents documents.Location
	// PrivateLink is the region of the management cluster, in which endpoint services are made; empty: none are.
	PrivateLink string
	// Identity says which hosted clusters are this operator's.
	Identity scope.Identity
}

// Management is the command that works in AWS for all hosted clusters of an installation.
func Management() *cobra.Command {
	var private bool
	var o ManagementOptions
	cmd := beside.Management(&cobra.Command{
		Use:   "management",
		Short: "Manage AWS resources for all hosted clusters of a management cluster",
		Long: `Work in AWS for all hosted clusters of a management cluster: publish their OIDC documents in a bucket, make the VPC endpoint services of
those that are private, and remove both with the clusters.

The hypershift-operator runs this beside itself. Only one may run at a time.`,
		Example: "  hcp-cloud management --oidc-storage-provider-s3-bucket-name documents --oidc-storage-provider-s3-region eu-west-1 \\\n    --oidc-storage-provider-s3-credentials ~/.aws/credentials",
		PreRunE: func(*cobra.Command, []string) error {
			if private {
				if o.PrivateLink = os.Getenv("AWS_REGION"); o.PrivateLink == "" {
					return errors.New("--private-link: AWS_REGION in the environment must name the region of the management cluster")
				}
			}
			if o.Documents.Bucket == "" && o.PrivateLink == "" {
				return errors.New("there is nothing to do: give --oidc-storage-provider-s3-bucket-name or --private-link")
			}
			return nil
		},
	}, func(ctx context.Context, cfg *rest.Config, identity scope.Identity) error {
		o.Identity = identity
		return RunManagement(ctx, cfg, o)
	})
	fs := cmd.Flags()
	fs.StringVar(&o.Documents.Bucket, "oidc-storage-provider-s3-bucket-name", "", "Bucket that OIDC documents are published in; empty: none are")
	fs.StringVar(&o.Documents.Region, "oidc-storage-provider-s3-region", "", "Region of that bucket")
	fs.StringVar(&o.Documents.Credentials, "oidc-storage-provider-s3-credentials", "", "File with credentials for that bucket; empty: what the environment offers")
	fs.BoolVar(&private, "private-link", false, "Make VPC endpoint services for private hosted clusters, in region $AWS_REGION with the credentials of the environment")
	return cmd
}

// RunManagement works until ctx ends.
func RunManagement(ctx context.Context, cfg *rest.Config, o ManagementOptions) error {
	mgr, err := beside.NewManager(cfg, process.Options{
		Name:   names.HypershiftOperator,
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
	})
	if err != nil {
		return err
	}
	if o.Documents.Bucket != "" {
		r := &documents.Reconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}, Location: o.Documents, Identity: o.Identity, Open: o.Documents.Open,
		}
		if err := r.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("setting up the OIDC documents: %w", err)
		}
	}
	if o.PrivateLink != "" {
		r := &privatelink.Services{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}, Identity: o.Identity, Region: o.PrivateLink, Open: privatelink.OpenProvider,
			Credentials: os.Getenv(credentialsFile),
		}
		if err := r.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("setting up the VPC endpoint services: %w", err)
		}
	}
	return mgr.Start(ctx)
}
