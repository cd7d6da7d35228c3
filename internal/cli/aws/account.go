// Package aws holds the commands that work on an AWS account: network and zones, roles, a machine to reach nodes from, and what machines
// printed when they booted.
package aws

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hcp.internal/platform/internal/aws/fault"
	"hcp.internal/platform/internal/aws/iam"
	"hcp.internal/platform/internal/aws/infra"
	"hcp.internal/platform/internal/aws/session"
	"hcp.internal/platform/internal/aws/tags"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/outputfile"
)

// DefaultRegion is where everything is unless --region says otherwise.
const DefaultRegion = "us-east-1"

// callerTime bounds the question as whom a refused call was made.
const callerTime = 10 * time.Second

// Login are the flags that say as whom to call AWS.
type Login struct {
	File, STSFile, RoleARN string
	OwnerFile              string
	// Keys are credentials of a Secret, instead of a file's.
	Keys *session.Keys
}

// AddFlags declares the flags of one account.
func (l *Login) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&l.File, "aws-creds", l.File, "File with AWS credentials (default: the SDK's sources: environment, profile, machine)")
	fs.StringVar(&l.STSFile, "sts-creds", l.STSFile, "File that `aws sts get-session-token` printed; needs --role-arn")
	fs.StringVar(&l.RoleARN, "role-arn", l.RoleARN, "ARN of the role to assume, as created by create iam cli-role")
}

// OwnerFlag names the file with credentials of the account that has the VPC.
const OwnerFlag = "vpc-owner-aws-creds"

// AddOwnerFlag declares the flag of the account that has the VPC.
func (l *Login) AddOwnerFlag(fs *pflag.FlagSet) {
	fs.StringVar(&l.OwnerFile, OwnerFlag, l.OwnerFile, "File with credentials of the account that owns the VPC, if it is another one")
}

// Config makes the configuration of the cluster's account.
func (l Login) Config(ctx context.Context, agent, region string) (aws.Config, error) {
	return session.Load(ctx, session.Options{Agent: agent, Region: region, CredentialsFile: l.File, STSFile: l.STSFile, Keys: l.Keys, RoleARN: l.RoleARN})
}

// owner makes that of the VPC's account; nil if it is the same.
func (l Login) owner(ctx context.Context, agent, region string) (*aws.Config, error) {
	if l.OwnerFile == "" {
		return nil, nil
	}
	cfg, err := session.Load(ctx, session.Options{Agent: agent, Region: region, CredentialsFile: l.OwnerFile})
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", OwnerFlag, err)
	}
	return &cfg, nil
}

// configs are those of both accounts.
func (l Login) configs(ctx context.Context, agent, region string) (aws.Config, *aws.Config, error) {
	cfg, err := l.Config(ctx, agent, region)
	if err != nil {
		return cfg, nil, err
	}
	owner, err := l.owner(ctx, agent, region)
	return cfg, owner, err
}

// accounts are the clients for infrastructure.
func accounts(cfg aws.Config, owner *aws.Config) infra.Accounts {
	a := infra.Accounts{Cluster: infra.NewAccount(cfg)}
	if owner != nil {
		a.Owner = infra.NewAccount(*owner)
	}
	return a
}

// roleAccounts are the clients for roles; owner is nil without an account of its own for the VPC.
func roleAccounts(cfg aws.Config, ownerConfig *aws.Config) (cluster, owner *iam.Account) {
	if ownerConfig != nil {
		owner = iam.NewAccount(*ownerConfig)
	}
	return iam.NewAccount(cfg), owner
}

// Tags reads --additional-tags and adds the one that says what made the resources.
func Tags(pairs []string) (tags.Set, error) {
	set, err := tags.Parse(pairs)
	if err != nil {
		return nil, fmt.Errorf("--additional-tags: %w", err)
	}
	set[tags.Source] = "cli"
	return set, nil
}

// blame adds to a refusal as whom the call was made.
func blame(ctx context.Context, cfg aws.Config, err error) error {
	if err == nil || !fault.Denied(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callerTime)
	defer cancel()
	arn, _, failed := session.Caller(ctx, cfg)
	if failed != nil {
		return err
	}
	return fmt.Errorf("as %s: %w", arn, err)
}

// logger writes a line for each thing that happens.
func logger(w io.Writer) func(string, ...any) {
	return func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
}

// write prints a result for other commands to read, or puts it into a file that only the user can read: it may hold a key.
func write(cmd *cobra.Command, file string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	if file == "" {
		_, err = cmd.OutOrStdout().Write(raw)
		return err
	}
	if err := outputfile.Write(file, raw, outputfile.Private); err != nil {
		return fmt.Errorf("--output-file: %w", err)
	}
	return nil
}

// checkOutput finds out before anything is made whether the result can be written.
func checkOutput(file string) error {
	if file == "" {
		return nil
	}
	if err := outputfile.Check(file); err != nil {
		return fmt.Errorf("--output-file: %w", err)
	}
	return nil
}

// bucketConfig is where install notes the bucket of OIDC documents.
type bucketConfig struct{ name, region string }

// complete reads what is missing from the management cluster.
func (b *bucketConfig) complete(ctx context.Context, flags connect.Flags) error {
	if b.name != "" && b.region != "" {
		return nil
	}
	c, err := flags.Client()
	if err != nil {
		return err
	}
	name, region, err := readBucket(ctx, c)
	if err != nil {
		return fmt.Errorf("%w; give --oidc-storage-provider-s3-bucket-name and --oidc-storage-provider-s3-region", err)
	}
	b.name, b.region = name, region
	return nil
}
