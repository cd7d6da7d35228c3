package create

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/aws/iam"
	"hcp.internal/platform/internal/aws/infra"
	awscli "hcp.internal/platform/internal/cli/aws"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/install"
)

// maker is a platform that makes in the cloud what no file describes.
type maker interface {
	// make makes it before load, which then reads descriptions of it. Everything that load, Validate and prepare would refuse is refused before
	// anything is made.
	// The returned function removes the descriptions.
	make(ctx context.Context, raw *rawFlags, fs *pflag.FlagSet, o *Options, log io.Writer) (func(), error)
}

// awsMaking is what `create cluster aws` makes when it isn't given files.
type awsMaking struct {
	login awscli.Login
	infra awscli.InfraFlags
	iam   iam.Options
	// made says that files describe what this run makes.
	made bool
}

func (m *awsMaking) addFlags(fs *pflag.FlagSet) {
	m.infra.Add(fs)
	fs.BoolVar(&m.iam.UseROSAPolicies, "use-rosa-managed-policies", false, "Attach ROSA's managed policies to roles instead of the cluster's own policies")
	fs.BoolVar(&m.iam.SharedRole, "shared-role", false, "One role for all components")
	m.login.AddFlags(fs)
	m.login.AddOwnerFlag(fs)
}

// awsMakingFlags are those that only matter when something is made.
var awsMakingFlags = []string{"vpc-cidr", "enable-proxy", "enable-secure-proxy", "proxy-vpc-endpoint-service-name", "single-nat-gateway",
	"private-zones-in-cluster-account", "use-rosa-managed-policies", "shared-role", "aws-creds", "sts-creds", "role-arn", "vpc-owner-aws-creds"}

func (m *awsMaking) check(fs *pflag.FlagSet) error { return m.infra.Check(fs) }

// notes says which flags have no effect, since files describe what is there.
func (m *awsMaking) notes(fs *pflag.FlagSet) []string {
	var notes []string
	if m.made {
		return nil
	}
	for _, name := range awsMakingFlags {
		if fs.Changed(name) {
			notes = append(notes, fmt.Sprintf("--%s isn't used: --infra-json and --iam-json describe what is there", name))
		}
	}
	return notes
}

func (a *aws) make(ctx context.Context, raw *rawFlags, fs *pflag.FlagSet, o *Options, log io.Writer) (func(), error) {
	none := func() {}
	if o.infraJSON != "" && a.iamJSON != "" {
		return none, nil
	}
	if o.Connect.DryRun != connect.NoDryRun {
		return none, errors.New("--dry-run: the infrastructure would be made first, and the cluster is described by what comes of that: give --infra-json and --iam-json")
	}
	a.making.made = true
	given, err := a.readGiven(o)
	if err != nil {
		return none, err
	}
	generated, err := a.identify(ctx, o, given)
	if err != nil {
		return none, err
	}
	network, roles, err := a.wanted(o)
	if err != nil {
		return none, err
	}
	dir, err := os.MkdirTemp("", "hypershift-aws-")
	if err != nil {
		return none, fmt.Errorf("making a folder for descriptions of the infrastructure: %w", err)
	}
	cleanup := func() { _ = os.RemoveAll(dir) }
	if err := a.rehearse(ctx, raw, fs, o, &roles, dir); err != nil {
		cleanup()
		return none, err
	}
	if generated {
		fmt.Fprintf(log, "The infrastructure is called %s: if this command is interrupted, give it --infra-id %s to go on.\n", o.InfraID, o.InfraID)
	}
	if err := a.makeBoth(ctx, o, dir, network, roles, given, log); err != nil {
		cleanup()
		return none, fmt.Errorf("%w; the same command with --infra-id %s goes on from there", err, o.InfraID)
	}
	return cleanup, nil
}

// readGiven reads the file that describes the network, if there is one.
func (a *aws) readGiven(o *Options) (*infra.Output, error) {
	if o.infraJSON == "" {
		return nil, nil
	}
	given := &infra.Output{}
	if err := readJSON("--infra-json", o.infraJSON, given); err != nil {
		return nil, err
	}
	return given, nil
}

// identify settles the identifier: that of the flag, of the file, or of the HostedCluster, if it is there already; otherwise it generates one.
func (a *aws) identify(ctx context.Context, o *Options, given *infra.Output) (generated bool, err error) {
	if o.InfraID == "" && given != nil {
		o.InfraID = given.InfraID
	}
	if o.InfraID != "" {
		return false, nil
	}
	c, err := o.Connect.Client()
	if err != nil {
		return false, err
	}
	hc := &hyperv1.HostedCluster{}
	err = c.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, hc)
	switch {
	case meta.IsNoMatchError(err):
		return false, errors.New("the management cluster doesn't know HostedClusters: run `hypershift install` first")
	case err != nil && !apierrors.IsNotFound(err):
		return false, fmt.Errorf("reading HostedCluster %s/%s: %w", o.Namespace, o.Name, err)
	case err == nil:
		o.InfraID = hc.Spec.InfraID
	}
	if o.InfraID != "" {
		return false, nil
	}
	g, err := generate(*o, rand.Reader)
	o.InfraID = g.InfraID
	return true, err
}

// wanted are options of what is made, as far as they are known before.
func (a *aws) wanted(o *Options) (infra.Options, iam.Options, error) {
	set, err := awscli.Tags(a.tags)
	if err != nil {
		return infra.Options{}, iam.Options{}, err
	}
	if a.making.iam.UseROSAPolicies {
		set["red-hat-managed"], set["red-hat-clustertype"] = "true", "rosa"
	}
	network := a.making.infra.Options
	network.InfraID, network.Name, network.Region, network.Zones = o.InfraID, o.Name, a.region, a.zones
	network.BaseDomain, network.BaseDomainPrefix, network.PublicOnly, network.AdditionalTags = o.BaseDomain, o.BaseDomainPrefix, a.publicOnly, set
	roles := a.making.iam
	roles.InfraID, roles.Name, roles.Region, roles.BaseDomain, roles.AdditionalTags = o.InfraID, o.Name, a.region, o.BaseDomain, set
	roles.KMSKeyARN, roles.IssuerURL, roles.AutoNode, roles.PrivateZonesInClusterAccount = a.kmsKeyARN, a.issuer, a.autoNode, network.PrivateZonesInClusterAccount
	if o.infraJSON != "" {
		return network, roles, nil
	}
	return network, roles, network.Validate()
}

// rehearse does with descriptions of what will be there all that is done before a cluster is written, so that what is refused is refused now. It
// settles the release and what roles need of the management cluster: neither should be another one, or missing, when the network is made.
func (a *aws) rehearse(ctx context.Context, raw *rawFlags, fs *pflag.FlagSet, o *Options, roles *iam.Options, dir string) error {
	trial, err := a.trial(*o, dir)
	if err != nil {
		return err
	}
	if err := raw.load(fs, &trial); err != nil {
		return err
	}
	trial.settle(fs)
	if err := trial.Validate(); err != nil {
		return err
	}
	c, err := o.Connect.Client()
	if err != nil {
		return err
	}
	if err := trial.prepare(ctx, c); err != nil {
		return err
	}
	if trial.InfraID != o.InfraID {
		return fmt.Errorf("--infra-id %s: HostedCluster %s/%s is there with infrastructure %s, which can't change: give --infra-id %s", o.InfraID, o.Namespace, o.Name, trial.InfraID, trial.InfraID)
	}
	if !trial.keepsRelease { // as it is read again when the cluster is written
		o.ReleaseImage = trial.ReleaseImage
	}
	if a.iamJSON != "" {
		return nil
	}
	return rehearseRoles(ctx, c, roles)
}

// rehearseRoles finds the bucket of OIDC documents, and checks what can be checked of roles before there are zones.
func rehearseRoles(ctx context.Context, c client.Client, roles *iam.Options) error {
	if roles.IssuerURL == "" {
		name, region, ok, err := install.OIDCBucket(ctx, c)
		if err != nil {
			return err
		}
		if !ok {
			return errors.New("--oidc-issuer-url is required: the installation has no bucket of OIDC documents, which `hypershift install --oidc-storage-provider-s3-bucket-name` gives it")
		}
		roles.BucketName, roles.BucketRegion = name, region
	}
	trial := *roles
	trial.PublicZoneID, trial.PrivateZoneID, trial.LocalZoneID = trialPublicZone, trialPrivateZone, trialPrivateZone
	return trial.Validate()
}

// Zones of a rehearsal.
const (
	trialPublicZone  = "Z0"
	trialPrivateZone = "Z1"
)

// trial are options with descriptions of what will be there.
func (a *aws) trial(o Options, dir string) (Options, error) {
	zones := []infra.Zone{}
	for _, zone := range a.zones {
		zones = append(zones, infra.Zone{Name: zone, SubnetID: "subnet-0"})
	}
	if len(zones) == 0 {
		zones = append(zones, infra.Zone{Name: a.region + "a", SubnetID: "subnet-0"})
	}
	trial := *a
	trialOptions := o
	trialOptions.cloud = &trial
	if o.infraJSON == "" {
		trialOptions.infraJSON = filepath.Join(dir, "trial-infra.json")
		if err := writePrivate(trialOptions.infraJSON, infra.Output{Region: a.region, InfraID: o.InfraID, Name: o.Name, VPCID: "vpc-0", Zones: zones,
			BaseDomain: o.BaseDomain, BaseDomainPrefix: o.BaseDomainPrefix, MachineCIDR: a.making.infra.VPCCIDR, PublicZoneID: trialPublicZone, PrivateZoneID: trialPrivateZone}); err != nil {
			return Options{}, err
		}
	}
	if a.iamJSON == "" {
		trial.iamJSON = filepath.Join(dir, "trial-iam.json")
		out := iam.Output{InfraID: o.InfraID, Region: a.region, IssuerURL: "https://example.com", KMSKeyARN: a.kmsKeyARN}
		if a.kmsKeyARN != "" {
			out.KMSProviderRoleARN = "arn:aws:iam::0:role/trial"
		}
		if a.autoNode {
			out.KarpenterRoleARN = "arn:aws:iam::0:role/trial"
		}
		if err := writePrivate(trial.iamJSON, out); err != nil {
			return Options{}, err
		}
	}
	return trialOptions, nil
}

// makeBoth makes what isn't described, and writes descriptions for load.
func (a *aws) makeBoth(ctx context.Context, o *Options, dir string, network infra.Options, roles iam.Options, given *infra.Output, log io.Writer) error {
	if given == nil {
		made, err := awscli.CreateInfra(ctx, a.making.login, network, log)
		if err != nil {
			return err
		}
		given = made
		o.infraJSON = filepath.Join(dir, "infra.json")
		if err := writePrivate(o.infraJSON, made); err != nil {
			return err
		}
	}
	if a.iamJSON != "" {
		return nil
	}
	roles.PublicZoneID, roles.PrivateZoneID, roles.LocalZoneID = given.PublicZoneID, given.PrivateZoneID, given.LocalZoneID
	made, err := awscli.CreateIAM(ctx, a.making.login, roles, o.Connect, log)
	if err != nil {
		return err
	}
	a.iamJSON = filepath.Join(dir, "iam.json")
	return writePrivate(a.iamJSON, made)
}

// writePrivate writes a description that only the user can read: it may hold a key.
func writePrivate(path string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding a description of the infrastructure: %w", err)
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		return fmt.Errorf("writing a description of the infrastructure: %w", err)
	}
	return nil
}
