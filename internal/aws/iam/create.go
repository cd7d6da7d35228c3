package iam

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"hcp.internal/platform/internal/aws/fault"
	"hcp.internal/platform/internal/aws/tags"
	"hcp.internal/platform/internal/sleep"
)

// Options say which roles to make.
type Options struct {
	InfraID string
	// Name is the hosted cluster's; it is a tag, if known.
	Name   string
	Region string
	// Zones of DNS as `create infra aws` printed them.
	PublicZoneID, PrivateZoneID, LocalZoneID string
	// IssuerURL is that of a provider that exists; empty: one is made for the bucket.
	IssuerURL                string
	BucketName, BucketRegion string
	KMSKeyARN                string
	AdditionalTags           tags.Set
	// BaseDomain limits which records ROSA's ingress policy may change.
	BaseDomain string
	// UseROSAPolicies attaches ROSA's managed policies instead of our own.
	UseROSAPolicies bool
	// SharedRole makes one role for all.
	SharedRole bool
	// AutoNode makes a role for Karpenter.
	AutoNode bool
	// SharedVPC says that the VPC is another account's.
	SharedVPC                    bool
	PrivateZonesInClusterAccount bool
}

// Output describes roles in the form that `create cluster aws --iam-json` reads.
type Output struct {
	Region                    string `json:"region"`
	ProfileName               string `json:"profileName"`
	InfraID                   string `json:"infraID"`
	IssuerURL                 string `json:"issuerURL"`
	Roles                     Roles  `json:"roles"`
	KMSKeyARN                 string `json:"kmsKeyARN"`
	KMSProviderRoleARN        string `json:"kmsProviderRoleARN"`
	SharedIngressRoleARN      string `json:"sharedIngressRoleARN,omitempty"`
	SharedControlPlaneRoleARN string `json:"sharedControlPlaneRoleARN,omitempty"`
	KarpenterRoleARN          string `json:"karpenterRoleARN,omitempty"`
}

// Roles are the ARNs that every cluster has.
type Roles struct {
	IngressARN              string `json:"ingressARN"`
	ImageRegistryARN        string `json:"imageRegistryARN"`
	StorageARN              string `json:"storageARN"`
	NetworkARN              string `json:"networkARN"`
	KubeCloudControllerARN  string `json:"kubeCloudControllerARN"`
	NodePoolManagementARN   string `json:"nodePoolManagementARN"`
	ControlPlaneOperatorARN string `json:"controlPlaneOperatorARN"`
}

// Validate tells what is missing. Flags are named as commands have them.
func (o Options) Validate() error {
	var errs []error
	for flag, value := range map[string]string{
		"--infra-id": o.InfraID, "--public-zone-id": o.PublicZoneID, "--private-zone-id": o.PrivateZoneID, "--local-zone-id": o.LocalZoneID,
		"--region": o.Region,
	} {
		if value == "" {
			errs = append(errs, errors.New(flag+" is required"))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	// The longest name that it becomes part of has 64 characters.
	if longest := o.InfraID + "-" + "cloud-network-config-controller"; len(longest) > 64 {
		errs = append(errs, fmt.Errorf("--infra-id %q: must have at most 32 characters, names of roles have 64", o.InfraID))
	}
	if o.UseROSAPolicies && o.BaseDomain == "" {
		errs = append(errs, errors.New("--use-rosa-managed-policies: needs --base-domain"))
	}
	if o.KMSKeyARN != "" && !strings.HasPrefix(o.KMSKeyARN, "arn:") {
		errs = append(errs, fmt.Errorf("--kms-key-arn %q: must be a key's ARN", o.KMSKeyARN))
	}
	if o.IssuerURL != "" {
		if u, err := url.Parse(o.IssuerURL); err != nil || u.Scheme != "https" || u.Host == "" {
			errs = append(errs, fmt.Errorf("--oidc-issuer-url %q: must begin with https://", o.IssuerURL))
		}
	} else if o.BucketName == "" || o.BucketRegion == "" {
		errs = append(errs, errors.New("--oidc-storage-provider-s3-bucket-name and --oidc-storage-provider-s3-region, or --oidc-issuer-url, are required"))
	}
	return errors.Join(errs...)
}

// Issuer is the URL of the cluster's documents in a bucket. It is a name: it is the same whatever endpoint is called.
func Issuer(bucket, region, infraID string) string {
	return fmt.Sprintf("https://%s.s3.%s.amazonaws.com/%s", bucket, region, infraID)
}

// thumbprint is of the root that AWS's certificates for S3 had. IAM asks for one, and doesn't heed it for issuers in S3.
const thumbprint = "A9D53002E97E00E043244F3D170D6F4C414104FD"

var clientIDs = []string{"openshift", "sts.amazonaws.com"}

// Account is an AWS account's IAM.
type Account struct{ iam *iam.Client }

// NewAccount makes the client. It makes no request.
func NewAccount(cfg aws.Config) *Account { return &Account{iam: iam.NewFromConfig(cfg)} }

// Surroundings are what a run needs besides AWS.
type Surroundings struct {
	Log  func(format string, args ...any)
	Wait func(context.Context, time.Duration) error
}

type run struct {
	Surroundings
	o              Options
	cluster, owner *Account
	tags           tags.Set
}

func newRun(o Options, cluster, owner *Account, s Surroundings) *run {
	if s.Log == nil {
		s.Log = func(string, ...any) {}
	}
	if s.Wait == nil {
		s.Wait = sleep.For
	}
	set := tags.Set{}
	for key, value := range o.AdditionalTags {
		set[key] = value
	}
	set[tags.InfraID] = o.InfraID
	if o.Name != "" {
		set[tags.ClusterName] = o.Name
	}
	return &run{Surroundings: s, o: o, cluster: cluster, owner: owner, tags: set}
}

// Create makes roles, or puts those that are there right, and describes them. Owner is the account of the VPC if that is another one.
func Create(ctx context.Context, o Options, cluster, owner *Account, s Surroundings) (*Output, error) {
	o.SharedVPC = owner != nil
	if err := o.Validate(); err != nil {
		return nil, err
	}
	out, err := newRun(o, cluster, owner, s).create(ctx)
	if err != nil {
		return nil, fault.Explain(err)
	}
	return out, nil
}

func (r *run) create(ctx context.Context) (*Output, error) {
	out := &Output{Region: r.o.Region, InfraID: r.o.InfraID, IssuerURL: r.o.IssuerURL, KMSKeyARN: r.o.KMSKeyARN}
	if out.IssuerURL == "" {
		out.IssuerURL = Issuer(r.o.BucketName, r.o.BucketRegion, r.o.InfraID)
	}
	provider := strings.TrimPrefix(out.IssuerURL, "https://")
	providerARN, err := r.provider(ctx, out.IssuerURL, provider)
	if err != nil {
		return nil, err
	}
	if r.o.SharedRole {
		err = r.sharedRole(ctx, out, providerARN, provider)
	} else {
		err = r.roles(ctx, out, providerARN, provider)
	}
	if err != nil {
		return nil, err
	}
	if r.owner != nil {
		if err := r.ownerRoles(ctx, out); err != nil {
			return nil, err
		}
	}
	return out, r.worker(ctx, out)
}

// findProvider gives the ARN of the provider of that name, exactly.
func (r *run) findProvider(ctx context.Context, name string) (string, error) {
	out, err := r.cluster.iam.ListOpenIDConnectProviders(ctx, &iam.ListOpenIDConnectProvidersInput{})
	if err != nil {
		return "", fmt.Errorf("listing OIDC providers: %w", err)
	}
	for _, provider := range out.OpenIDConnectProviderList {
		if _, path, ok := strings.Cut(aws.ToString(provider.Arn), ":oidc-provider/"); ok && path == name {
			return aws.ToString(provider.Arn), nil
		}
	}
	return "", nil
}

// provider makes the provider, or puts it right where it is: without it, for a moment, no component of a running cluster could call AWS.
func (r *run) provider(ctx context.Context, issuer, name string) (string, error) {
	arn, err := r.findProvider(ctx, name)
	if err != nil {
		return "", err
	}
	if arn == "" && r.o.IssuerURL != "" {
		return "", fmt.Errorf("--oidc-issuer-url %s: the account has no OIDC provider of that URL; make it, or leave the flag out", issuer)
	}
	if arn != "" {
		r.Log("OIDC provider %s is there", arn)
		if r.o.IssuerURL != "" {
			return arn, nil
		}
		return arn, r.correctProvider(ctx, arn)
	}
	out, err := r.cluster.iam.CreateOpenIDConnectProvider(ctx, &iam.CreateOpenIDConnectProviderInput{
		Url: &issuer, ClientIDList: clientIDs, ThumbprintList: []string{thumbprint}, Tags: iamTags(r.tags)})
	if fault.Is(err, "EntityAlreadyExists") { // an answer was lost, or the list is behind
		if arn, err := r.findProvider(ctx, name); err != nil || arn != "" {
			return arn, err
		}
	}
	if err != nil {
		return "", fmt.Errorf("making the OIDC provider of %s: %w", issuer, err)
	}
	r.Log("OIDC provider %s made", aws.ToString(out.OpenIDConnectProviderArn))
	return aws.ToString(out.OpenIDConnectProviderArn), nil
}

func (r *run) correctProvider(ctx context.Context, arn string) error {
	out, err := r.cluster.iam.GetOpenIDConnectProvider(ctx, &iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: &arn})
	if fault.Denied(err) {
		r.Log("OIDC provider %s stays as it is: %s", arn, fault.Explain(err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading OIDC provider %s: %w", arn, err)
	}
	for _, id := range clientIDs {
		if slices.Contains(out.ClientIDList, id) {
			continue
		}
		if _, err := r.cluster.iam.AddClientIDToOpenIDConnectProvider(ctx, &iam.AddClientIDToOpenIDConnectProviderInput{OpenIDConnectProviderArn: &arn, ClientID: &id}); err != nil {
			return fmt.Errorf("changing OIDC provider %s: %w", arn, err)
		}
	}
	if !slices.ContainsFunc(out.ThumbprintList, func(t string) bool { return strings.EqualFold(t, thumbprint) }) {
		if _, err := r.cluster.iam.UpdateOpenIDConnectProviderThumbprint(ctx, &iam.UpdateOpenIDConnectProviderThumbprintInput{
			OpenIDConnectProviderArn: &arn, ThumbprintList: []string{thumbprint}}); err != nil {
			return fmt.Errorf("changing OIDC provider %s: %w", arn, err)
		}
	}
	return nil
}

func (r *run) wanted() []role {
	return slices.DeleteFunc(slices.Clone(roles), func(x role) bool { return x.wanted != nil && !x.wanted(r.o) })
}

// roles makes one for each component.
func (r *run) roles(ctx context.Context, out *Output, providerARN, provider string) error {
	for _, x := range r.wanted() {
		name := r.o.InfraID + "-" + x.suffix
		arn, err := r.role(ctx, r.cluster, name, webIdentity(providerARN, provider, x.accounts), r.tags)
		if err != nil {
			return err
		}
		*x.into(out) = arn
		if err := r.permit(ctx, name, name, x); err != nil {
			return err
		}
		if x.assumes && r.o.SharedVPC {
			if err := r.inline(ctx, r.cluster, name, name+"-assume", document(allow("sts: AssumeRole"))); err != nil {
				return err
			}
		}
	}
	if !r.o.UseROSAPolicies {
		return nil
	}
	ingress, cloud := r.o.InfraID+"-openshift-ingress", r.o.InfraID+"-cloud-controller"
	return errors.Join(
		r.inline(ctx, r.cluster, ingress, ingress, document(r.rosaRecords())),
		r.inline(ctx, r.cluster, cloud, cloud, document(rosaGroups())))
}

// sharedRole makes one that all components take on.
func (r *run) sharedRole(ctx context.Context, out *Output, providerARN, provider string) error {
	name := r.o.InfraID + "-shared-role"
	var accounts []string
	assumes := false
	for _, x := range r.wanted() {
		accounts = append(accounts, x.accounts...)
		assumes = assumes || x.assumes
	}
	arn, err := r.role(ctx, r.cluster, name, webIdentity(providerARN, provider, accounts), r.tags)
	if err != nil {
		return err
	}
	for _, x := range r.wanted() {
		*x.into(out) = arn
		if err := r.permit(ctx, name, name+"-"+x.suffix, x); err != nil {
			return err
		}
	}
	if assumes && r.o.SharedVPC {
		if err := r.inline(ctx, r.cluster, name, name+"-assume", document(allow("sts: AssumeRole"))); err != nil {
			return err
		}
	}
	if r.o.UseROSAPolicies {
		return r.inline(ctx, r.cluster, name, name, document(r.rosaRecords(), rosaGroups()))
	}
	return nil
}

func (r *run) rosaRecords() Statement {
	return allow("route53: ChangeResourceRecordSets").when("ForAllValues:StringLike", "route53:ChangeResourceRecordSetsNormalizedRecordNames",
		[]string{"*." + r.o.BaseDomain})
}

func rosaGroups() Statement { return allow("elasticloadbalancing: SetSecurityGroups") }

// permit gives a role a component's permissions.
func (r *run) permit(ctx context.Context, name, policy string, x role) error {
	if r.o.UseROSAPolicies && x.managed != "" {
		return r.attach(ctx, name, managedPrefix+x.managed)
	}
	return r.inline(ctx, r.cluster, name, policy, document(x.policy(r.o)...))
}

// Patience with a principal that was made a moment ago: trust policies refuse it at first.
const (
	principalTries = 10
	principalWait  = 10 * time.Second
)

// ownerRoles are in the account of the VPC; the cluster's roles take them on.
func (r *run) ownerRoles(ctx context.Context, out *Output) error {
	zones := r.owner
	if r.o.PrivateZonesInClusterAccount {
		zones = r.cluster
	}
	for _, x := range []struct {
		account *Account
		suffix  string
		trust   Document
		policy  Document
		into    *string
	}{
		{zones, "shared-vpc-route53", trustARNs(slices.Compact([]string{out.Roles.IngressARN, out.Roles.ControlPlaneOperatorARN})...), sharedRoute53Policy(), &out.SharedIngressRoleARN},
		{r.owner, "shared-vpc-endpoint", trustARNs(out.Roles.ControlPlaneOperatorARN), sharedEndpointPolicy(), &out.SharedControlPlaneRoleARN},
	} {
		name := r.o.InfraID + "-" + x.suffix
		for try := 1; ; try++ {
			arn, err := r.role(ctx, x.account, name, x.trust, r.tags)
			if err == nil {
				*x.into = arn
				break
			}
			if fault.Denied(err) || try == principalTries {
				return err
			}
			if err := r.Wait(ctx, principalWait); err != nil {
				return err
			}
		}
		if err := r.inline(ctx, x.account, name, name, x.policy); err != nil {
			return err
		}
	}
	return nil
}

func iamTags(set tags.Set) []types.Tag {
	return tags.List(set, func(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} })
}
