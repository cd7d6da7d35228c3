package aws

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/aws/machines"
	"hcp.internal/platform/internal/aws/tags"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/sleep"
)

const (
	agentCreateBastion  = "cli-create-bastion"
	agentDestroyBastion = "cli-destroy-bastion"
	defaultNamespace    = "clusters"
	// bastionTime is how long a machine may take to start.
	bastionTime = 2 * time.Minute
)

// cluster says of which hosted cluster a command is: one of the management cluster, or infrastructure by its identifier.
type cluster struct {
	flags           connect.Flags
	name, namespace string
	infraID, region string
}

func (c *cluster) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&c.name, "name", "", "Name of the hosted cluster")
	fs.StringVarP(&c.namespace, "namespace", "n", defaultNamespace, "Namespace of the HostedCluster")
	c.flags.AddFlags(fs)
	connect.CompleteHostedClusters(cmd, &c.flags, "name", &c.namespace)
	connect.CompleteNamespaces(cmd, &c.flags, "namespace")
}

func (c *cluster) addInfraFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.infraID, "infra-id", "", "Identifier of the infrastructure, with --region instead of --name")
	fs.StringVar(&c.region, "region", "", "Region, with --infra-id")
}

// resolve fills in identifier and region, and gives the HostedCluster's public SSH key if it has one.
func (c *cluster) resolve(ctx context.Context) ([]byte, error) {
	if c.name == "" {
		if c.infraID == "" || c.region == "" {
			return nil, errors.New("name the hosted cluster by --name, or its infrastructure by --infra-id and --region")
		}
		return nil, nil
	}
	if c.infraID != "" || c.region != "" {
		return nil, errors.New("--name: has no use with --infra-id and --region, which the HostedCluster says")
	}
	api, err := c.flags.Client()
	if err != nil {
		return nil, err
	}
	hc := &hyperv1.HostedCluster{}
	if err := api.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: c.name}, hc); err != nil {
		return nil, fmt.Errorf("reading HostedCluster %s/%s: %w", c.namespace, c.name, err)
	}
	if hc.Spec.Platform.AWS == nil {
		return nil, fmt.Errorf("HostedCluster %s/%s isn't on AWS", c.namespace, c.name)
	}
	c.infraID, c.region = hc.Spec.InfraID, hc.Spec.Platform.AWS.Region
	if hc.Spec.SSHKey.Name == "" {
		return nil, nil
	}
	secret := &corev1.Secret{}
	if err := api.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: hc.Spec.SSHKey.Name}, secret); err != nil {
		return nil, fmt.Errorf("reading the SSH key of HostedCluster %s/%s: %w", c.namespace, c.name, err)
	}
	return secret.Data["id_rsa.pub"], nil
}

// ConsoleLogsCommand is `console-logs` with the subcommand aws.
func ConsoleLogsCommand() *cobra.Command {
	cmd := group("console-logs", "Save what machines printed when they booted", `  hypershift console-logs aws --name demo --output-dir logs`)
	var c cluster
	var login Login
	var dir string
	sub := &cobra.Command{
		Use:   "aws",
		Short: "Save the console output of machines on AWS",
		Long: `Save the console output of each running machine of a hosted cluster to a file with the machine's name. AWS keeps the last 64 KiB, and
shows output some minutes after it was printed.`,
		Example: `  hypershift console-logs aws --name demo --output-dir logs`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.name == "" || dir == "" {
				return errors.New("--name and --output-dir are required")
			}
			if _, err := c.resolve(cmd.Context()); err != nil {
				return err
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("--output-dir: %w", err)
			}
			cfg, err := login.Config(cmd.Context(), agentConsoleLogs, c.region)
			if err != nil {
				return err
			}
			var failed []error
			err = machines.Consoles(cmd.Context(), cfg, c.infraID, func(console machines.Console, err error) error {
				if err != nil {
					failed = append(failed, err)
					return nil
				}
				path := filepath.Join(dir, console.File+".log")
				fmt.Fprintln(cmd.OutOrStdout(), path)
				return os.WriteFile(path, console.Text, 0o600)
			})
			return blame(cmd.Context(), cfg, errors.Join(append(failed, err)...))
		},
	}
	c.addFlags(sub)
	sub.Flags().StringVar(&dir, "output-dir", "", "Folder for the files (required)")
	login.AddFlags(sub.Flags())
	cmd.AddCommand(sub)
	return cmd
}

// CreateBastionCommand is `create bastion` with the subcommand aws.
func CreateBastionCommand() *cobra.Command {
	cmd := group("bastion", "Create a machine from which nodes can be reached", `  hypershift create bastion aws --name demo --aws-creds ~/.aws/credentials --allow-cidr 192.0.2.7/32`)
	var c cluster
	var login Login
	var b machines.Bastion
	var keyFile string
	var pairs []string
	sub := &cobra.Command{
		Use:   "aws",
		Short: "Create a machine on AWS from which nodes can be reached",
		Long: `Create a machine with a public address in the cluster's network, which accepts the cluster's SSH key, and print its ID and address. If
it exists already, it is reused.`,
		Example: `  hypershift create bastion aws --name demo --aws-creds ~/.aws/credentials --allow-cidr 192.0.2.7/32
  hypershift create bastion aws --infra-id demo-abc23 --region eu-central-1 --ssh-key-file ~/.ssh/id_ed25519.pub --aws-creds ~/.aws/credentials`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			key, err := c.resolve(cmd.Context())
			if err != nil {
				return err
			}
			if keyFile != "" {
				if key, err = connect.ReadFile(keyFile); err != nil {
					return fmt.Errorf("--ssh-key-file: %w", err)
				}
			}
			if len(key) == 0 {
				return errors.New("--ssh-key-file is required: the HostedCluster has no SSH key with id_rsa.pub")
			}
			set, err := tags.Parse(pairs)
			if err != nil {
				return fmt.Errorf("--additional-tags: %w", err)
			}
			b.InfraID, b.PublicKey, b.AdditionalTags, b.WaitTime = c.infraID, key, set, bastionTime
			b.Log, b.Pause = logger(cmd.ErrOrStderr()), sleep.For
			cfg, err := login.Config(cmd.Context(), agentCreateBastion, c.region)
			if err != nil {
				return err
			}
			made, err := b.Create(cmd.Context(), cfg)
			if err != nil {
				return blame(cmd.Context(), cfg, err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", made.ID, made.PublicIP)
			return nil
		},
	}
	fs := sub.Flags()
	c.addFlags(sub)
	c.addInfraFlags(fs)
	fs.StringVar(&keyFile, "ssh-key-file", "", "File with the public SSH key (default: the HostedCluster's)")
	fs.StringVar(&b.AllowCIDR, "allow-cidr", "0.0.0.0/0", "Range from which the SSH port may be reached")
	fs.BoolVar(&b.Wait, "wait", true, "Wait until the machine runs")
	fs.StringSliceVar(&pairs, "additional-tags", nil, "Additional tags of all created resources, as key=value,…")
	login.AddFlags(fs)
	cmd.AddCommand(sub)
	return cmd
}

// DestroyBastionCommand is `destroy bastion` with the subcommand aws.
func DestroyBastionCommand() *cobra.Command {
	cmd := group("bastion", "Destroy the machine from which nodes can be reached", `  hypershift destroy bastion aws --name demo --aws-creds ~/.aws/credentials`)
	var c cluster
	var login Login
	sub := &cobra.Command{
		Use:     "aws",
		Short:   "Destroy the machine on AWS from which nodes can be reached",
		Long:    `Destroy the machine, security group and key of create bastion aws, and wait until they are gone.`,
		Example: `  hypershift destroy bastion aws --name demo --aws-creds ~/.aws/credentials`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := c.resolve(cmd.Context()); err != nil {
				return err
			}
			cfg, err := login.Config(cmd.Context(), agentDestroyBastion, c.region)
			if err != nil {
				return err
			}
			b := machines.Bastion{InfraID: c.infraID, Log: logger(cmd.ErrOrStderr()), Pause: sleep.For}
			return blame(cmd.Context(), cfg, b.Destroy(cmd.Context(), cfg))
		},
	}
	c.addFlags(sub)
	c.addInfraFlags(sub.Flags())
	login.AddFlags(sub.Flags())
	cmd.AddCommand(sub)
	return cmd
}
