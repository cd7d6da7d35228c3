package aws

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hcp.internal/platform/internal/aws/infra"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/refuse"
)

// Agents, by which calls are told apart in the account's audit log.
const (
	agentCreateInfra  = "cli-create-infra"
	agentDestroyInfra = "cli-destroy-infra"
	agentCreateIAM    = "cli-create-iam"
	agentDestroyIAM   = "cli-destroy-iam"
	agentCreateRole   = "cli-create-role"
	agentConsoleLogs  = "cli-console-logs"
)

const noSecureProxy = "this version makes no proxy that looks into TLS: use --enable-proxy"

// InfraFlags are the flags that say which infrastructure to make, in create infra aws and create cluster aws.
type InfraFlags struct {
	infra.Options
	refused refuse.Flags
}

// Add declares the flags that both commands have.
func (f *InfraFlags) Add(fs *pflag.FlagSet) {
	fs.StringVar(&f.VPCCIDR, "vpc-cidr", "10.0.0.0/16", "Range of the VPC, with a mask of 16")
	fs.BoolVar(&f.EnableProxy, "enable-proxy", false, "Create a proxy through which machines reach the internet, instead of NAT gateways")
	fs.StringVar(&f.ProxyVPCEndpointServiceName, "proxy-vpc-endpoint-service-name", "", "Endpoint service of a proxy that is there, with --enable-proxy")
	fs.BoolVar(&f.SingleNATGateway, "single-nat-gateway", false, "One NAT gateway for all zones")
	fs.BoolVar(&f.PrivateZonesInClusterAccount, "private-zones-in-cluster-account", false, "Create private zones in the cluster's account although the VPC belongs to another one")
	f.refused.Switches(fs, noSecureProxy, "enable-secure-proxy")
}

// Check refuses flags that this version can't honour.
func (f *InfraFlags) Check(fs *pflag.FlagSet) error { return f.refused.Check(fs) }

// CreateInfra makes infrastructure and says what it does on log.
func CreateInfra(ctx context.Context, login Login, o infra.Options, log io.Writer) (*infra.Output, error) {
	cfg, owner, err := login.configs(ctx, agentCreateInfra, o.Region)
	if err != nil {
		return nil, err
	}
	out, err := infra.Create(ctx, o, accounts(cfg, owner), infra.Surroundings{Log: logger(log)})
	return out, blame(ctx, cfg, err)
}

// DestroyInfra removes infrastructure and says what it waits for on log.
func DestroyInfra(ctx context.Context, login Login, o infra.DestroyOptions, log io.Writer) error {
	cfg, owner, err := login.configs(ctx, agentDestroyInfra, o.Region)
	if err != nil {
		return err
	}
	err = infra.Destroy(ctx, o, accounts(cfg, owner), infra.Surroundings{Log: logger(log)})
	if errors.Is(err, infra.ErrLeft) {
		return exit.With(exit.TimedOut, err)
	}
	return blame(ctx, cfg, err)
}

// CreateInfraCommand is `create infra` with the subcommand aws.
func CreateInfraCommand() *cobra.Command {
	cmd := group("infra", "Create network and DNS zones for a hosted cluster", `  hypershift create infra aws --infra-id demo-abc23 --name demo --base-domain example.com --output-file infra.json`)
	var f InfraFlags
	var login Login
	var file string
	var pairs []string
	sub := &cobra.Command{
		Use:   "aws",
		Short: "Create network and DNS zones on AWS",
		Long: `Create a VPC with subnets, gateways and route tables, and private DNS zones, on AWS.

Every resource has the tag kubernetes.io/cluster/INFRA-ID. Existing resources are reused: run the same command again to continue an
interrupted run, and the result describes all of them. docs/aws.md lists the permissions that it needs.`,
		Example: `  hypershift create infra aws --infra-id demo-abc23 --name demo --base-domain example.com --region eu-central-1 \
    --zones eu-central-1a,eu-central-1b --output-file infra.json
  # Machines with public addresses, without NAT gateways
  hypershift create infra aws --infra-id demo-abc23 --base-domain example.com --public-only`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if f.AdditionalTags, err = Tags(pairs); err != nil {
				return err
			}
			if err := errors.Join(f.Check(cmd.Flags()), f.Validate(), checkOutput(file)); err != nil {
				return err
			}
			out, err := CreateInfra(cmd.Context(), login, f.Options, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return write(cmd, file, out)
		},
	}
	fs := sub.Flags()
	fs.StringVar(&f.InfraID, "infra-id", "", "Identifier of the infrastructure, in names and tags (required)")
	fs.StringVar(&f.Name, "name", "example", "Name of the hosted cluster, in names of private zones")
	fs.StringVar(&f.BaseDomain, "base-domain", "", "Domain of a public hosted zone of the account (required)")
	fs.StringVar(&f.BaseDomainPrefix, "base-domain-prefix", "", "What stands before the base domain in the cluster's names; none for nothing (default: --name)")
	fs.StringVar(&f.Region, "region", DefaultRegion, "Region")
	fs.StringSliceVar(&f.Zones, "zones", nil, "Availability zones, at most 8, in an order that stays the same (default: the region's first)")
	fs.StringSliceVar(&pairs, "additional-tags", nil, "Additional tags of all created resources, as key=value,…")
	fs.BoolVar(&f.PublicOnly, "public-only", false, "Create only public subnets, and no NAT gateways")
	fs.StringVar(&file, "output-file", "", "File for the description that create cluster aws --infra-json reads (default: standard output)")
	f.Add(fs)
	login.AddFlags(fs)
	login.AddOwnerFlag(fs)
	cmd.AddCommand(sub)
	return cmd
}

// DestroyInfraCommand is `destroy infra` with the subcommand aws.
func DestroyInfraCommand() *cobra.Command {
	cmd := group("infra", "Destroy network and DNS zones of a hosted cluster", `  hypershift destroy infra aws --infra-id demo-abc23 --name demo --base-domain example.com`)
	var o infra.DestroyOptions
	var login Login
	var refused refuse.Flags
	sub := &cobra.Command{
		Use:   "aws",
		Short: "Destroy network and DNS zones on AWS",
		Long: `Destroy what has the tag kubernetes.io/cluster/INFRA-ID, or is in a VPC that has it: machines, load balancers, gateways, subnets, private
zones, the image registry's buckets, the apps record of the public zone. Volumes and snapshots that the hosted cluster made are left, because they hold
data; the command names them at the end.

The command continues until nothing is left, and prints what it is waiting for. You can interrupt it and run it again at any time.`,
		Example: `  hypershift destroy infra aws --infra-id demo-abc23 --name demo --base-domain example.com --region eu-central-1
  # Give up after half an hour, with exit code 124
  hypershift destroy infra aws --infra-id demo-abc23 --name demo --base-domain example.com --aws-infra-grace-period 30m`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(refused.Check(cmd.Flags()), o.Validate()); err != nil {
				return err
			}
			return DestroyInfra(cmd.Context(), login, o, cmd.ErrOrStderr())
		},
	}
	fs := sub.Flags()
	fs.StringVar(&o.InfraID, "infra-id", "", "Identifier of the infrastructure (required)")
	fs.StringVar(&o.Name, "name", "example", "Name of the hosted cluster, in names of private zones and records")
	fs.StringVar(&o.BaseDomain, "base-domain", "", "Domain of the public hosted zone (required)")
	fs.StringVar(&o.BaseDomainPrefix, "base-domain-prefix", "", "What stands before the base domain in the cluster's names; none for nothing (default: --name)")
	fs.StringVar(&o.Region, "region", DefaultRegion, "Region")
	fs.DurationVar(&o.GracePeriod, "aws-infra-grace-period", 0, "How long to try; 0 means until nothing is left")
	fs.BoolVar(&o.PrivateZonesInClusterAccount, "private-zones-in-cluster-account", false, "Private zones are in the cluster's account although the VPC belongs to another one")
	refused.Values(fs, "this version calls with one identity: give it all permissions, as create iam cli-role does",
		"aws-creds.aws-ebs-csi-driver-controller", "aws-creds.cloud-controller", "aws-creds.cloud-network-config-controller",
		"aws-creds.control-plane-operator", "aws-creds.node-pool", "aws-creds.openshift-image-registry")
	login.AddFlags(fs)
	login.AddOwnerFlag(fs)
	cmd.AddCommand(sub)
	return cmd
}

// group is a command with one subcommand for each cloud; those of the published tool that aren't there say so.
func group(use, short, example string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: example,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		Args:               cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return fmt.Errorf("%s %s: this version logs in to no cloud but AWS; make and remove what a cluster needs with the cloud's tools, and describe it to `hypershift create cluster PLATFORM` by its flags",
				cmd.CommandPath(), args[0])
		},
	}
}
