package destroy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/aws/iam"
	"hcp.internal/platform/internal/aws/infra"
	"hcp.internal/platform/internal/aws/session"
	"hcp.internal/platform/internal/cli/aws"
	"hcp.internal/platform/internal/cli/connect"
)

// awsAccount is what `destroy cluster aws` removes from an account before it lets the HostedCluster go.
type awsAccount struct {
	login       aws.Login
	infra       infra.DestroyOptions
	preserveIAM bool
	secret      string
	// shared: the HostedCluster says that another account has the VPC. leaveOwner: what is in that account stays.
	shared, leaveOwner bool
}

// noOwner as the file with the VPC owner's credentials leaves that account alone, as infra.NoPrefix does for names.
const noOwner = "none"

func (a *awsAccount) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&a.infra.Region, "region", aws.DefaultRegion, "Region, if the HostedCluster is gone already")
	fs.StringVar(&a.infra.BaseDomain, "base-domain", "", "Domain of the public hosted zone (default: that of the HostedCluster)")
	fs.StringVar(&a.infra.BaseDomainPrefix, "base-domain-prefix", "", "What stands before the base domain in the cluster's names; none for nothing (default: that of the HostedCluster)")
	fs.DurationVar(&a.infra.GracePeriod, "aws-infra-grace-period", 0, "How long to try to delete infrastructure; 0 means until nothing is left")
	fs.BoolVar(&a.preserveIAM, "preserve-iam", false, "Keep roles, instance profile and OIDC provider")
	fs.BoolVar(&a.infra.PrivateZonesInClusterAccount, "private-zones-in-cluster-account", false, "Private zones are in the cluster's account although the VPC belongs to another one")
	fs.StringVar(&a.secret, "secret-creds", "", "Secret in the HostedCluster's namespace with aws_access_key_id, aws_secret_access_key and aws_session_token, and baseDomain; needs --role-arn")
	a.login.AddFlags(fs)
	a.login.AddOwnerFlag(fs)
	fs.Lookup(aws.OwnerFlag).Usage += "; " + noOwner + " to leave what is in that account"
}

// run destroys the cluster, with what it has in the account.
func (a *awsAccount) run(ctx context.Context, o Options, out, log io.Writer) error {
	if a.secret != "" && (a.login.RoleARN == "" || a.login.File != "" || a.login.STSFile != "") {
		return errors.New("--secret-creds: use it with --role-arn, and without --aws-creds and --sts-creds")
	}
	c, err := o.Connect.Client()
	if err != nil {
		return err
	}
	if err := a.prepare(ctx, c, o); err != nil {
		return err
	}
	if a.infra.InfraID == "" {
		return Cluster(ctx, o, out) // it says what is missing
	}
	if o.Connect.DryRun != connect.NoDryRun {
		if err := Cluster(ctx, o, out); err != nil {
			return err
		}
		fmt.Fprintf(out, "Then what carries the tag kubernetes.io/cluster/%s in region %s of the AWS account would go%s.\n", a.infra.InfraID, a.infra.Region, a.also())
		return nil
	}
	// Before anything goes: without these the account can't be cleaned up afterwards.
	if err := a.infra.Validate(); err != nil {
		return err
	}
	o.InfraID, o.againWithout = a.infra.InfraID, a.againWithout(o)
	o.account = func(ctx context.Context) error { return a.clean(ctx, o, log) }
	return Cluster(ctx, o, out)
}

// clean removes what the cluster has in the account.
func (a *awsAccount) clean(ctx context.Context, o Options, log io.Writer) error {
	errs := []error{aws.DestroyInfra(ctx, a.login, a.infra, log)}
	if !a.preserveIAM {
		errs = append(errs, a.roles(ctx, log))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("not all of what HostedCluster %s/%s had in AWS is gone: %w; run it again: %s", o.Namespace, o.Name, err, o.againWithout)
	}
	if a.leaveOwner {
		fmt.Fprintf(log, "what the VPC's owner has for infrastructure %s was left: network, private zones, roles\n", a.infra.InfraID)
	}
	return nil
}

// prepare finds out what is to go, before anything does.
func (a *awsAccount) prepare(ctx context.Context, c client.Client, o Options) error {
	if a.leaveOwner = a.login.OwnerFile == noOwner; a.leaveOwner {
		a.login.OwnerFile = ""
	}
	if err := a.observe(ctx, c, o); err != nil {
		return err
	}
	return a.checkOwner(o)
}

// checkOwner refuses to destroy a cluster of whose VPC the account isn't known: its network would stay, and once the HostedCluster is gone nobody says whose it is.
func (a *awsAccount) checkOwner(o Options) error {
	if !a.shared || a.leaveOwner || a.login.OwnerFile != "" {
		return nil
	}
	return fmt.Errorf("another account owns the VPC of HostedCluster %[1]s/%[2]s (spec.platform.aws.sharedVPC), and without its credentials network, private zones and roles "+
		"there would stay: give --%[3]s FILE, or --%[3]s %[4]s to leave them; nothing was deleted", o.Namespace, o.Name, aws.OwnerFlag, noOwner)
}

// againWithout is the command that goes on without the HostedCluster, which says all of this. Whose credentials to use is for the user to know.
func (a *awsAccount) againWithout(o Options) string {
	command := fmt.Sprintf("hypershift destroy cluster aws --name %s --namespace %s --infra-id %s --region %s --base-domain %s",
		o.Name, o.Namespace, a.infra.InfraID, a.infra.Region, a.infra.BaseDomain)
	if a.infra.BaseDomainPrefix != "" {
		command += " --base-domain-prefix " + a.infra.BaseDomainPrefix
	}
	if a.infra.PrivateZonesInClusterAccount {
		command += " --private-zones-in-cluster-account"
	}
	if a.preserveIAM {
		command += " --preserve-iam"
	}
	return command + a.ownerArgument()
}

// ownerArgument is what another run needs for the account of the VPC's owner.
func (a *awsAccount) ownerArgument() string {
	switch {
	case a.leaveOwner:
		return " --" + aws.OwnerFlag + " " + noOwner
	case a.login.OwnerFile != "":
		return " --" + aws.OwnerFlag + " " + a.login.OwnerFile
	}
	return ""
}

func (a *awsAccount) also() string {
	if a.preserveIAM {
		return ""
	}
	return ", and the roles whose names begin with it"
}

// roles removes roles, for as long as infrastructure may take.
func (a *awsAccount) roles(ctx context.Context, log io.Writer) error {
	attempts := math.MaxInt
	if a.infra.GracePeriod > 0 {
		attempts = 1 + int(a.infra.GracePeriod/(5*time.Second))
	}
	return aws.DestroyIAM(ctx, a.login, iam.DestroyOptions{InfraID: a.infra.InfraID, PrivateZonesInClusterAccount: a.infra.PrivateZonesInClusterAccount},
		a.infra.Region, attempts, log)
}

// observe takes from the HostedCluster, as long as it is there, what flags don't say.
func (a *awsAccount) observe(ctx context.Context, c client.Client, o Options) error {
	a.infra.Name, a.infra.InfraID = o.Name, o.InfraID
	if a.secret != "" {
		if err := a.readSecret(ctx, c, o.Namespace); err != nil {
			return err
		}
	}
	hc := &hyperv1.HostedCluster{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, hc); err != nil {
		if apierrors.IsNotFound(err) {
			return nil // Cluster says what is missing then
		}
		return fmt.Errorf("reading HostedCluster %s/%s: %w", o.Namespace, o.Name, err)
	}
	if err := checkPlatform(o, hc); err != nil {
		return err
	}
	if hc.Spec.Platform.AWS == nil {
		return fmt.Errorf("HostedCluster %s/%s isn't on AWS: use `hypershift destroy cluster` with its platform", o.Namespace, o.Name)
	}
	a.take(hc)
	return nil
}

// take fills in what is empty.
func (a *awsAccount) take(hc *hyperv1.HostedCluster) {
	if a.infra.InfraID == "" {
		a.infra.InfraID = hc.Spec.InfraID
	}
	a.infra.Region, a.shared = hc.Spec.Platform.AWS.Region, hc.Spec.Platform.AWS.SharedVPC != nil
	if a.infra.BaseDomain == "" {
		a.infra.BaseDomain = string(hc.Spec.DNS.BaseDomain)
	}
	if prefix := hc.Spec.DNS.BaseDomainPrefix; a.infra.BaseDomainPrefix == "" && prefix != nil {
		if a.infra.BaseDomainPrefix = string(*prefix); *prefix == "" {
			a.infra.BaseDomainPrefix = infra.NoPrefix
		}
	}
}

// readSecret takes credentials, and the base domain, from a Secret.
func (a *awsAccount) readSecret(ctx context.Context, c client.Client, namespace string) error {
	secret := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: a.secret}, secret); err != nil {
		return fmt.Errorf("--secret-creds: reading Secret %s/%s: %w", namespace, a.secret, err)
	}
	values := map[string]string{}
	for _, key := range []string{"aws_access_key_id", "aws_secret_access_key", "aws_session_token", "baseDomain"} {
		if values[key] = string(secret.Data[key]); values[key] == "" {
			return fmt.Errorf("--secret-creds: Secret %s/%s has no %s", namespace, a.secret, key)
		}
	}
	a.login.Keys = &session.Keys{AccessKeyID: values["aws_access_key_id"], SecretAccessKey: values["aws_secret_access_key"], SessionToken: values["aws_session_token"]}
	if a.infra.BaseDomain == "" {
		a.infra.BaseDomain = values["baseDomain"]
	}
	return nil
}
