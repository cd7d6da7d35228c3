package create

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/refuse"
)

var awsTexts = texts{
	short: "Create a hosted cluster on Amazon Web Services",
	long: `Create a hosted cluster on Amazon Web Services.

Without --infra-json and --iam-json it makes network, DNS zones and roles in the AWS account first, as create infra aws and create iam aws
do; the files describe what is there. docs/aws.md says which permissions it needs. --render needs both files: a preview makes nothing.`,
	example: `  hypershift create cluster aws --name demo --region eu-central-1 --base-domain example.com --pull-secret pull-secret.json \
    --infra-json infra.json --iam-json iam.json --node-pool-replicas 2 --release-image registry.example.com/ocp/release:4.22 --render
  # Make network and roles, too
  hypershift create cluster aws --name demo --region eu-central-1 --base-domain example.com --pull-secret pull-secret.json \
    --sts-creds sts.json --role-arn arn:aws:iam::123456789012:role/hypershift-cli-role --release-image registry.example.com/ocp/release:4.22`,
	poolExample: `  hypershift create nodepool aws --cluster-name demo --name demo-large --replicas 3 --instance-type m5.2xlarge \
    --subnet-id subnet-0123456789abcdef0`,
}

// awsStorageClass is the StorageClass of etcd's volumes that management clusters of OpenShift have on AWS.
const awsStorageClass = "gp3-csi"

// awsInfra is what describes the network; other fields of the file aren't needed.
type awsInfra struct {
	Region        string    `json:"region"`
	InfraID       string    `json:"infraID"`
	Name          string    `json:"name"` // of the cluster; the published tool writes Name, which is read as well
	MachineCIDR   string    `json:"machineCIDR"`
	VPCID         string    `json:"vpcID"`
	Zones         []awsZone `json:"zones"`
	BaseDomain    string    `json:"baseDomain"`
	DomainPrefix  string    `json:"baseDomainPrefix"` // as --base-domain-prefix
	PublicZoneID  string    `json:"publicZoneID"`
	PrivateZoneID string    `json:"privateZoneID"`
	LocalZoneID   string    `json:"localZoneID"`
	ProxyAddr     string    `json:"proxyAddr"`          // URL
	SecureProxy   string    `json:"secureProxyAddr"`    // URL
	ProxyCA       string    `json:"proxyCA"`            // PEM
	ProxyKey      string    `json:"proxyPrivateSSHKey"` // PEM in base64
	PublicOnly    bool      `json:"publicOnly"`
}

type awsZone struct {
	Name     string `json:"name"`
	SubnetID string `json:"subnetID"`
}

// awsIAM is what describes the roles.
type awsIAM struct {
	InfraID            string              `json:"infraID"`
	ProfileName        string              `json:"profileName"`
	IssuerURL          string              `json:"issuerURL"`
	Roles              hyperv1.AWSRolesRef `json:"roles"`
	KMSKeyARN          string              `json:"kmsKeyARN"`
	KMSProviderRoleARN string              `json:"kmsProviderRoleARN"`
	KarpenterRoleARN   string              `json:"karpenterRoleARN"`
	SharedIngressRole  string              `json:"sharedIngressRoleARN"`
	SharedPlaneRole    string              `json:"sharedControlPlaneRoleARN"`
}

// aws is platform AWS.
type aws struct {
	machines *awsMachines
	refused  refuse.Flags

	region, endpointAccess, iamJSON, kmsKeyARN string
	signingKeyPath                             string
	tags                                       []string
	zones                                      []string
	multiArch, autoNode, publicOnly            bool
	making                                     awsMaking

	proxyKey []byte // PEM

	infra  awsInfra
	iam    awsIAM
	parsed []hyperv1.AWSResourceTag
	issuer string
}

func newAWS() *aws { return &aws{machines: newAWSMachines()} }

func (a *aws) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&a.region, "region", "us-east-1", "Region of the cluster")
	fs.StringSliceVar(&a.zones, "zones", nil, "Availability zones that get a NodePool: of those in --infra-json (default: all), or those in which to create subnets (default: the region's first)")
	fs.StringVar(&a.iamJSON, "iam-json", "", "File that describes roles and the instance profile, as `create iam aws` writes it")
	fs.StringSliceVar(&a.tags, "additional-tags", nil, "Tags of all resources created for the cluster, as key=value,…")
	fs.StringVar(&a.endpointAccess, "endpoint-access", string(hyperv1.Public), "From where the API can be reached: Public, PublicAndPrivate or Private")
	fs.StringVar(&a.kmsKeyARN, "kms-key-arn", "", "KMS key that encrypts Secrets in etcd (default: that in --iam-json, else a key of the cluster's own)")
	fs.StringVar(&a.issuer, "oidc-issuer-url", "", "Issuer of service account tokens (default: that in --iam-json)")
	fs.StringVar(&a.signingKeyPath, "sa-token-issuer-private-key-path", "", "File with the PEM private key that signs service account tokens")
	fs.BoolVar(&a.multiArch, "multi-arch", false, "Allow NodePools with different architectures; the release must support them, too")
	fs.BoolVar(&a.autoNode, "auto-node", false, "Let Karpenter create nodes as Pods need them")
	fs.BoolVar(&a.publicOnly, "public-only", false, "Give machines public addresses, for networks without a NAT gateway")
	a.machines.addMachineFlags(fs)
	a.making.addFlags(fs)
	a.refused.Values(fs, "give credentials of the VPC's account by --vpc-owner-aws-creds", "vpc-owner-sts-creds", "vpc-owner-role-arn")
	a.refused.Values(fs, "this version reads no credentials from a Secret: give --pull-secret, --ssh-key and --base-domain", "secret-creds")
}

func (a *aws) load(fs *pflag.FlagSet, o *Options) error {
	errs := []error{a.refused.Check(fs), a.making.check(fs), a.machines.validate()}
	o.notes = append(o.notes, a.making.notes(fs)...)
	if o.infraJSON == "" || a.iamJSON == "" {
		errs = append(errs, errors.New("platform AWS needs --infra-json and --iam-json with --render: a preview makes no network and no roles in the cloud"))
		return errors.Join(errs...)
	}
	errs = append(errs, readJSON("--infra-json", o.infraJSON, &a.infra), readJSON("--iam-json", a.iamJSON, &a.iam))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var err error
	if o.SigningKey, err = readSigningKey(a.signingKeyPath); err != nil {
		errs = append(errs, err)
	}
	a.parsed, err = awsTags(a.tags)
	errs = append(errs, err, a.useInfra(fs, o))
	access := []string{string(hyperv1.Public), string(hyperv1.PublicAndPrivate), string(hyperv1.Private)}
	if !slices.Contains(access, a.endpointAccess) {
		errs = append(errs, fmt.Errorf("--endpoint-access %q: must be one of %s", a.endpointAccess, strings.Join(access, ", ")))
	}
	o.PrivateNodes = a.endpointAccess != string(hyperv1.Public)
	if o.EtcdStorageClass == "" {
		o.EtcdStorageClass = awsStorageClass
	}
	o.IssuerURL = a.issuer
	if o.IssuerURL == "" {
		o.IssuerURL = a.iam.IssuerURL
	}
	if len(o.SigningKey) > 0 && o.IssuerURL == "" {
		errs = append(errs, errors.New("--sa-token-issuer-private-key-path needs --oidc-issuer-url, or an issuerURL in --iam-json"))
	}
	errs = append(errs, a.useKey())
	if a.autoNode && a.iam.KarpenterRoleARN == "" {
		errs = append(errs, errors.New("--auto-node: --iam-json has no karpenterRoleARN, the role that makes nodes"))
	}
	return errors.Join(errs...)
}

// useKey settles which key encrypts Secrets. One in either place is never left out silently, and neither is a role without one.
func (a *aws) useKey() error {
	switch {
	case a.kmsKeyARN != "" && a.iam.KMSKeyARN != "" && a.kmsKeyARN != a.iam.KMSKeyARN:
		return fmt.Errorf("--kms-key-arn %s: the role in --iam-json may use %s: give that key, or make the role for the other one", a.kmsKeyARN, a.iam.KMSKeyARN)
	case a.kmsKeyARN == "":
		a.kmsKeyARN = a.iam.KMSKeyARN
	}
	if a.kmsKeyARN != "" && a.iam.KMSProviderRoleARN == "" {
		return fmt.Errorf("KMS key %s: --iam-json has no kmsProviderRoleARN, the role that may use it", a.kmsKeyARN)
	}
	if a.kmsKeyARN == "" && a.iam.KMSProviderRoleARN != "" {
		return errors.New("--iam-json has a kmsProviderRoleARN and no kmsKeyARN: name the key by --kms-key-arn, or leave the role out")
	}
	return nil
}

// useInfra takes from the description of the network what flags don't say.
func (a *aws) useInfra(fs *pflag.FlagSet, o *Options) error {
	var errs []error
	if a.infra.VPCID == "" || len(a.infra.Zones) == 0 {
		errs = append(errs, errors.New("--infra-json: must have a vpcID and at least one of zones"))
	}
	if a.infra.Region != "" && !fs.Changed("region") {
		a.region = a.infra.Region
	}
	if a.infra.Region != "" && a.infra.Region != a.region {
		errs = append(errs, fmt.Errorf("--region %s: --infra-json is of %s", a.region, a.infra.Region))
	}
	if a.iam.InfraID != "" && a.infra.InfraID != "" && a.iam.InfraID != a.infra.InfraID {
		errs = append(errs, fmt.Errorf("--iam-json is of infrastructure %s, --infra-json of %s", a.iam.InfraID, a.infra.InfraID))
	}
	if o.InfraID == "" {
		o.InfraID = a.infra.InfraID
	}
	if o.BaseDomain == "" {
		o.BaseDomain = a.infra.BaseDomain
	}
	if len(o.MachineCIDRs) == 0 && a.infra.MachineCIDR != "" {
		o.MachineCIDRs = []string{a.infra.MachineCIDR}
	}
	if o.BaseDomainPrefix == "" {
		o.BaseDomainPrefix = a.infra.DomainPrefix
	}
	if o.BaseDomain == "" {
		errs = append(errs, errors.New("--base-domain is required, or must be in --infra-json"))
	}
	a.publicOnly = a.publicOnly || a.infra.PublicOnly
	if a.infra.Name == "" {
		a.infra.Name = o.Name
	}
	if a.infra.ProxyCA != "" && connect.CheckCertificates([]byte(a.infra.ProxyCA)) != nil {
		errs = append(errs, errors.New("--infra-json: proxyCA must hold PEM certificates"))
	}
	if a.infra.ProxyKey != "" {
		var err error
		// The parser's error would quote the key.
		if a.proxyKey, err = base64.StdEncoding.DecodeString(a.infra.ProxyKey); err != nil {
			errs = append(errs, errors.New("--infra-json: proxyPrivateSSHKey must be in base64"))
		}
	}
	for _, zone := range a.zones {
		if !slices.ContainsFunc(a.infra.Zones, func(z awsZone) bool { return z.Name == zone }) {
			errs = append(errs, fmt.Errorf("--zones %s: --infra-json has no subnet in it", zone))
		}
	}
	return errors.Join(errs...)
}

func (a *aws) cluster(_ Options, _ Generated, hc *hyperv1.HostedCluster) {
	spec := &hyperv1.AWSPlatformSpec{
		Region:         a.region,
		RolesRef:       a.iam.Roles,
		EndpointAccess: hyperv1.AWSEndpointAccessType(a.endpointAccess),
		MultiArch:      a.multiArch,
		CloudProviderConfig: &hyperv1.AWSCloudProviderConfig{
			VPC:    a.infra.VPCID,
			Zone:   a.infra.Zones[0].Name,
			Subnet: &hyperv1.AWSResourceReference{ID: ptr.To(a.infra.Zones[0].SubnetID)},
		},
	}
	for _, tag := range a.parsed {
		spec.ResourceTags = append(spec.ResourceTags, hyperv1.AWSClusterResourceTag{AWSResourceTag: tag})
	}
	if a.iam.SharedIngressRole != "" && a.iam.SharedPlaneRole != "" {
		spec.SharedVPC = &hyperv1.AWSSharedVPC{
			RolesRef:    hyperv1.AWSSharedVPCRolesRef{IngressARN: a.iam.SharedIngressRole, ControlPlaneARN: a.iam.SharedPlaneRole},
			LocalZoneID: a.infra.LocalZoneID,
		}
		spec.AdditionalAllowedPrincipals = []string{a.iam.SharedPlaneRole}
	}
	hc.Spec.Platform.AWS = spec
	hc.Spec.DNS.PublicZoneID, hc.Spec.DNS.PrivateZoneID = a.infra.PublicZoneID, a.infra.PrivateZoneID
	if a.kmsKeyARN != "" {
		hc.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{
			Provider: hyperv1.AWS,
			AWS: &hyperv1.AWSKMSSpec{
				Region:    a.region,
				ActiveKey: hyperv1.AWSKMSKeyEntry{ARN: a.kmsKeyARN},
				Auth:      hyperv1.AWSKMSAuthSpec{AWSKMSRoleARN: a.iam.KMSProviderRoleARN},
			},
		}}
	}
	if a.autoNode {
		hc.Spec.AutoNode = &hyperv1.AutoNode{Provisioner: hyperv1.ProvisionerConfig{
			Name: hyperv1.ProvisionerKarpenter,
			Karpenter: &hyperv1.KarpenterConfig{
				Platform: hyperv1.KarpenterAWSPlatform, AWS: &hyperv1.KarpenterAWSConfig{RoleARN: a.iam.KarpenterRoleARN},
			},
		}}
	}
	a.proxy(hc)
	if a.publicOnly {
		if hc.Annotations == nil {
			hc.Annotations = map[string]string{}
		}
		hc.Annotations[hyperv1.AWSMachinePublicIPs] = "true"
	}
}

// proxy fills in the proxy of the network.
func (a *aws) proxy(hc *hyperv1.HostedCluster) {
	if a.infra.ProxyAddr == "" && a.infra.SecureProxy == "" {
		return
	}
	spec := &configv1.ProxySpec{HTTPProxy: a.infra.ProxyAddr, HTTPSProxy: cmp.Or(a.infra.SecureProxy, a.infra.ProxyAddr)}
	if a.infra.ProxyCA != "" {
		spec.TrustedCA.Name = proxyCAName(a.infra.Name)
	}
	if hc.Spec.Configuration == nil {
		hc.Spec.Configuration = &hyperv1.ClusterConfiguration{}
	}
	hc.Spec.Configuration.Proxy = spec
}

func proxyCAName(infra string) string  { return infra + "-proxy-ca" }
func proxyKeyName(infra string) string { return infra + "-proxy-ssh-key" }

func (a *aws) objects(o Options, g Generated) []client.Object {
	var objs []client.Object
	if a.infra.ProxyCA != "" {
		objs = append(objs, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: proxyCAName(a.infra.Name), Namespace: o.Namespace},
			Data:       map[string]string{"ca-bundle.crt": a.infra.ProxyCA},
		})
	}
	if len(a.proxyKey) > 0 {
		objs = append(objs, &corev1.Secret{
			ObjectMeta: secretMeta(o, g, proxyKeyName(a.infra.Name)),
			Type:       corev1.SecretTypeOpaque,
			Data:       map[string][]byte{"privatekey": a.proxyKey},
		})
	}
	return objs
}

// pools are one for each zone, all of the same size.
func (a *aws) pools(o Options, g Generated, shared *hyperv1.NodePool) []*hyperv1.NodePool {
	var zones []awsZone
	for _, zone := range a.infra.Zones {
		if len(a.zones) == 0 || slices.Contains(a.zones, zone.Name) {
			zones = append(zones, zone)
		}
	}
	var pools []*hyperv1.NodePool
	for _, zone := range zones {
		np := shared.DeepCopy()
		np.Name = o.Name + "-" + zone.Name
		machines := *a.machines
		machines.subnetID = zone.SubnetID
		if machines.profile == "" {
			machines.profile = a.iam.ProfileName
		}
		if machines.profile == "" {
			machines.profile = g.InfraID + "-worker"
		}
		machines.fill(np)
		pools = append(pools, np)
	}
	return pools
}

// awsTags parses key=value.
func awsTags(list []string) ([]hyperv1.AWSResourceTag, error) {
	parsed, err := pairs(list)
	if err != nil {
		return nil, fmt.Errorf("--additional-tags: %w", err)
	}
	return sortedPairs(parsed, func(key, value string) hyperv1.AWSResourceTag { return hyperv1.AWSResourceTag{Key: key, Value: value} }), nil
}

// readJSON reads a file that the cloud's tool wrote. Fields that aren't needed here are left alone.
func readJSON(flag, path string, into any) error {
	raw, err := connect.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s %s: %w", flag, path, err)
	}
	return nil
}
