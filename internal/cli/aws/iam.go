package aws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/aws/fault"
	"hcp.internal/platform/internal/aws/iam"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/sleep"
)

// IAMFlags are the flags that say which roles to make, in create iam aws and create cluster aws.
type IAMFlags struct{ iam.Options }

// Add declares the flags that both commands have.
func (f *IAMFlags) Add(fs *pflag.FlagSet) {
	fs.StringVar(&f.KMSKeyARN, "kms-key-arn", "", "Key that encrypts Secrets in etcd; a role that may use it is made")
	fs.StringVar(&f.IssuerURL, "oidc-issuer-url", "", "Issuer of service account tokens whose provider is there (default: one in the bucket of OIDC documents)")
	fs.BoolVar(&f.UseROSAPolicies, "use-rosa-managed-policies", false, "Attach ROSA's managed policies instead of the cluster's own policies")
	fs.BoolVar(&f.SharedRole, "shared-role", false, "One role for all components")
}

// The management cluster's note of the bucket of OIDC documents.
const (
	bucketNamespace = "kube-public"
	bucketConfigMap = "oidc-storage-provider-s3-config"
)

func readBucket(ctx context.Context, c client.Reader) (name, region string, err error) {
	cm := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: bucketNamespace, Name: bucketConfigMap}, cm); err != nil {
		return "", "", fmt.Errorf("reading where OIDC documents are from ConfigMap %s/%s: %w", bucketNamespace, bucketConfigMap, err)
	}
	if cm.Data["name"] == "" || cm.Data["region"] == "" {
		return "", "", fmt.Errorf("ConfigMap %s/%s has no name or no region", bucketNamespace, bucketConfigMap)
	}
	return cm.Data["name"], cm.Data["region"], nil
}

// CreateIAM makes roles and says what it does on log. The bucket of OIDC documents is looked up in the management cluster if o has none.
func CreateIAM(ctx context.Context, login Login, o iam.Options, flags connect.Flags, log io.Writer) (*iam.Output, error) {
	if o.IssuerURL == "" {
		bucket := bucketConfig{o.BucketName, o.BucketRegion}
		if err := bucket.complete(ctx, flags); err != nil {
			return nil, err
		}
		o.BucketName, o.BucketRegion = bucket.name, bucket.region
	}
	cfg, ownerConfig, err := login.configs(ctx, agentCreateIAM, o.Region)
	if err != nil {
		return nil, err
	}
	cluster, owner := roleAccounts(cfg, ownerConfig)
	out, err := iam.Create(ctx, o, cluster, owner, iam.Surroundings{Log: logger(log)})
	return out, blame(ctx, cfg, err)
}

// DestroyIAM removes roles and says what it does on log. Attempts is how often it may fail.
func DestroyIAM(ctx context.Context, login Login, o iam.DestroyOptions, region string, attempts int, log io.Writer) error {
	cfg, ownerConfig, err := login.configs(ctx, agentDestroyIAM, region)
	if err != nil {
		return err
	}
	cluster, owner := roleAccounts(cfg, ownerConfig)
	for try := 1; ; try++ {
		err := iam.Destroy(ctx, o, cluster, owner, iam.Surroundings{Log: logger(log)})
		if err == nil || try >= attempts || fault.Denied(err) || ctx.Err() != nil {
			return blame(ctx, cfg, err)
		}
		logger(log)("trying again: %v", err)
		if err := sleep.For(ctx, destroyWait); err != nil {
			return err
		}
	}
}

// destroyWait is between attempts to remove roles.
const destroyWait = 5 * time.Second

// CreateIAMCommand is `create iam` with the subcommands aws and cli-role.
func CreateIAMCommand() *cobra.Command {
	cmd := group("iam", "Create roles for a hosted cluster, or for this tool", `  hypershift create iam aws --infra-id demo-abc23 --public-zone-id Z1 --private-zone-id Z2 --local-zone-id Z3 --output-file iam.json
  hypershift create iam cli-role --aws-creds ~/.aws/credentials`)
	cmd.AddCommand(createIAM(), cliRole())
	return cmd
}

func createIAM() *cobra.Command {
	var f IAMFlags
	var login Login
	var flags connect.Flags
	var file string
	var pairs []string
	cmd := &cobra.Command{
		Use:   "aws",
		Short: "Create the roles of a hosted cluster on AWS",
		Long: `Create the OIDC provider, a role for each component that calls AWS, and the instance profile of machines.

What exists already is corrected: policies, who may assume a role, the provider's clients. Run the same command again to continue an
interrupted run.`,
		Example: `  hypershift create iam aws --infra-id demo-abc23 --region eu-central-1 --public-zone-id Z1 --private-zone-id Z2 --local-zone-id Z3 \
    --oidc-storage-provider-s3-bucket-name docs --oidc-storage-provider-s3-region eu-central-1 --output-file iam.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if f.AdditionalTags, err = Tags(pairs); err != nil {
				return err
			}
			if err := errors.Join(f.ready(), checkOutput(file)); err != nil {
				return err
			}
			out, err := CreateIAM(cmd.Context(), login, f.Options, flags, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return write(cmd, file, out)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.InfraID, "infra-id", "", "Identifier of the infrastructure (required)")
	fs.StringVar(&f.PublicZoneID, "public-zone-id", "", "Public hosted zone, as create infra aws printed it (required)")
	fs.StringVar(&f.PrivateZoneID, "private-zone-id", "", "Private hosted zone, as create infra aws printed it (required)")
	fs.StringVar(&f.LocalZoneID, "local-zone-id", "", "Private hosted zone of names within the VPC, as create infra aws printed it (required)")
	fs.StringVar(&f.Region, "region", DefaultRegion, "Region of the cluster")
	fs.StringVar(&f.BucketName, "oidc-storage-provider-s3-bucket-name", "", "Bucket of OIDC documents (default: that which install was told)")
	fs.StringVar(&f.BucketRegion, "oidc-storage-provider-s3-region", "", "Region of the bucket (default: that which install was told)")
	fs.StringVar(&f.BaseDomain, "base-domain", "", "Domain below which ingress may change records, with --use-rosa-managed-policies")
	fs.StringSliceVar(&pairs, "additional-tags", nil, "Additional tags of all created resources, as key=value,…")
	fs.BoolVar(&f.PrivateZonesInClusterAccount, "private-zones-in-cluster-account", false, "Private zones are in the cluster's account although the VPC belongs to another one")
	fs.StringVar(&file, "output-file", "", "File for the description that create cluster aws --iam-json reads (default: standard output)")
	f.Add(fs)
	login.AddFlags(fs)
	login.AddOwnerFlag(fs)
	flags.AddFlags(fs)
	return cmd
}

// ready validates what doesn't depend on the management cluster's note of the bucket.
func (f IAMFlags) ready() error {
	o := f.Options
	if o.IssuerURL == "" && (o.BucketName == "" || o.BucketRegion == "") {
		o.BucketName, o.BucketRegion = "later", "later"
	}
	return o.Validate()
}

func cliRole() *cobra.Command {
	var login Login
	name := iam.CLIRoleName
	var pairs map[string]string
	cmd := &cobra.Command{
		Use:   "cli-role",
		Short: "Create a role that may do what this tool does on AWS",
		Long: `Create a role with the permissions that create and destroy of infra and iam need, let the caller assume it, and print its ARN for
--role-arn.`,
		Example: `  hypershift create iam cli-role --aws-creds ~/.aws/credentials --name hypershift-cli-role`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := login.Config(cmd.Context(), agentCreateRole, DefaultRegion)
			if err != nil {
				return err
			}
			arn, err := iam.CLIRole(cmd.Context(), cfg, name, pairs, iam.Surroundings{Log: logger(cmd.ErrOrStderr())})
			if err != nil {
				return blame(cmd.Context(), cfg, err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), arn)
			return nil
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&login.File, "aws-creds", "", "File with AWS credentials (default: the SDK's sources: environment, profile, machine)")
	fs.StringVar(&name, "name", name, "Name of the role")
	fs.StringToStringVarP(&pairs, "additional-tags", "t", nil, "Additional tags of the role, as key=value,…")
	return cmd
}

// DestroyIAMCommand is `destroy iam` with the subcommand aws.
func DestroyIAMCommand() *cobra.Command {
	cmd := group("iam", "Destroy the roles of a hosted cluster", `  hypershift destroy iam aws --infra-id demo-abc23`)
	var o iam.DestroyOptions
	var login Login
	region := DefaultRegion
	sub := &cobra.Command{
		Use:     "aws",
		Short:   "Destroy the roles of a hosted cluster on AWS",
		Long:    `Destroy the OIDC provider, the roles with all of their policies, and the instance profile. Anything that is already gone is skipped.`,
		Example: `  hypershift destroy iam aws --infra-id demo-abc23 --region eu-central-1`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.InfraID == "" {
				return errors.New("--infra-id is required")
			}
			return DestroyIAM(cmd.Context(), login, o, region, 1, cmd.ErrOrStderr())
		},
	}
	fs := sub.Flags()
	fs.StringVar(&o.InfraID, "infra-id", "", "Identifier of the infrastructure (required)")
	fs.StringVar(&region, "region", region, "Region of the cluster")
	fs.BoolVar(&o.PrivateZonesInClusterAccount, "private-zones-in-cluster-account", false, "Private zones are in the cluster's account although the VPC belongs to another one")
	login.AddFlags(fs)
	login.AddOwnerFlag(fs)
	cmd.AddCommand(sub)
	return cmd
}
