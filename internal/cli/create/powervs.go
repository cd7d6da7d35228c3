package create

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/refuse"
)

var powerVSTexts = texts{
	short: "Create a hosted cluster on IBM Power Virtual Server",
	long: `Create a hosted cluster on IBM Power Virtual Server.

Workspace, network and credentials must exist: this version makes none in the cloud. --infra-json describes them, in the form in
which the published tool's create infra writes them, with credentials; or it holds what spec.platform.powervs of a HostedCluster holds, the names
of five Secrets that exist included. Flags win.`,
	example: `  hypershift create cluster powervs --name demo --base-domain example.com --pull-secret pull-secret.json --infra-json infra.json \
    --resource-group demo --region us-south --zone us-south --vpc demo --vpc-region us-south \
    --release-image registry.example.com/ocp/release:4.22 --render`,
	poolExample: `  hypershift create nodepool powervs --cluster-name demo --name demo-large --replicas 3 --processors 1 --memory 64`,
}

// powerVSInfra is what `create infra powervs` of the published tool writes.
type powerVSInfra struct {
	ID              string `json:"id"` // of the infrastructure
	Region          string `json:"region"`
	Zone            string `json:"zone"`
	VPCRegion       string `json:"vpcRegion"`
	AccountID       string `json:"accountID"`
	BaseDomain      string `json:"baseDomain"`
	CISCRN          string `json:"cisCrn"`
	CISDomainID     string `json:"cisDomainID"`
	ResourceGroup   string `json:"resourceGroup"`
	CloudInstanceID string `json:"cloudInstanceID"`
	DHCPSubnet      string `json:"dhcpSubnet"`
	DHCPSubnetID    string `json:"dhcpSubnetID"`
	VPCName         string `json:"vpcName"`
	VPCSubnetName   string `json:"vpcSubnetName"`
	// Secrets are credentials of five programs, by names that say whose they are.
	Secrets map[string]*corev1.Secret `json:"secrets"`
}

// powerVS is platform PowerVS.
type powerVS struct {
	machines *powerVSMachines
	unused   refuse.Unneeded

	resourceGroup, region, zone, workspace, vpc, vpcRegion string

	spec     hyperv1.PowerVSPlatformSpec
	domainID string // of the DNS zone
	secrets  []*corev1.Secret
}

func newPowerVS() *powerVS { return &powerVS{machines: newPowerVSMachines()} }

func (p *powerVS) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&p.resourceGroup, "resource-group", "", "Resource group of the cluster")
	fs.StringVar(&p.region, "region", "us-south", "Region of the cluster")
	fs.StringVar(&p.zone, "zone", "us-south", "Zone of the cluster")
	fs.StringVar(&p.workspace, "cloud-instance-id", "", "Power VS workspace")
	fs.StringVar(&p.vpc, "vpc", "", "VPC of load balancers")
	fs.StringVar(&p.vpcRegion, "vpc-region", "us-south", "Region of the VPC")
	p.machines.addFlags(fs)
	p.unused.Values(fs, "transit-gateway", "transit-gateway-location")
	p.unused.Switches(fs, "recreate-secrets", "transit-gateway-global-routing", "debug")
}

func (p *powerVS) load(fs *pflag.FlagSet, o *Options) error {
	errs := []error{p.machines.load(fs, &o.NodePool)}
	o.notes = append(o.notes, p.unused.Notes(fs)...)
	if o.infraJSON == "" {
		errs = append(errs, errors.New("platform PowerVS needs --infra-json: this version makes no workspace, network and credentials in the cloud"))
		return errors.Join(errs...)
	}
	if err := p.read(o); err != nil {
		return errors.Join(append(errs, err)...)
	}
	if p.spec.VPC == nil {
		p.spec.VPC = &hyperv1.PowerVSVPC{}
	}
	for _, field := range []struct {
		flag string
		from string
		into *string
	}{
		{"resource-group", p.resourceGroup, &p.spec.ResourceGroup}, {"region", p.region, &p.spec.Region}, {"zone", p.zone, &p.spec.Zone},
		{"cloud-instance-id", p.workspace, &p.spec.ServiceInstanceID}, {"vpc", p.vpc, &p.spec.VPC.Name}, {"vpc-region", p.vpcRegion, &p.spec.VPC.Region},
	} {
		if fs.Changed(field.flag) || *field.into == "" {
			*field.into = field.from
		}
		if *field.into == "" {
			errs = append(errs, fmt.Errorf("--%s is required, or must be in --infra-json", field.flag))
		}
	}
	if o.BaseDomain == "" {
		errs = append(errs, errors.New("--base-domain is required, or must be in --infra-json"))
	}
	if p.spec.AccountID == "" || p.spec.CISInstanceCRN == "" || p.spec.Subnet == nil {
		errs = append(errs, errors.New("--infra-json: must have accountID, cisCrn, dhcpSubnet and dhcpSubnetID"))
	}
	for _, c := range powerVSCreds {
		if c.in(&p.spec).Name == "" {
			errs = append(errs, fmt.Errorf("--infra-json: secrets has no %s", c.key))
		}
	}
	return errors.Join(errs...)
}

// powerVSCreds are the credentials that a cluster needs, each for one program.
var powerVSCreds = []struct {
	key    string // below secrets of the description
	word   string // what its key has in common with other spellings of it
	suffix string // of the Secret's name behind the cluster's, when the description names none
	in     func(*hyperv1.PowerVSPlatformSpec) *corev1.LocalObjectReference
}{
	{"kubeCloudControllerManager", "cloudcontroller", "-cloud-controller-creds",
		func(s *hyperv1.PowerVSPlatformSpec) *corev1.LocalObjectReference { return &s.KubeCloudControllerCreds }},
	{"nodePoolManagement", "nodepool", "-node-management-creds",
		func(s *hyperv1.PowerVSPlatformSpec) *corev1.LocalObjectReference { return &s.NodePoolManagementCreds }},
	{"ingressOperator", "ingress", "-ingress-creds",
		func(s *hyperv1.PowerVSPlatformSpec) *corev1.LocalObjectReference { return &s.IngressOperatorCloudCreds }},
	{"storageOperator", "storage", "-storage-creds",
		func(s *hyperv1.PowerVSPlatformSpec) *corev1.LocalObjectReference { return &s.StorageOperatorCloudCreds }},
	{"imageRegistryOperator", "registry", "-image-registry-creds",
		func(s *hyperv1.PowerVSPlatformSpec) *corev1.LocalObjectReference {
			return &s.ImageRegistryOperatorCloudCreds
		}},
}

// read reads the description: what the published tool writes, or what spec.platform.powervs holds, with Secrets that exist already.
func (p *powerVS) read(o *Options) error {
	raw, err := connect.ReadFile(o.infraJSON)
	if err != nil {
		return fmt.Errorf("--infra-json: %w", err)
	}
	var infra powerVSInfra
	// The parser's error may quote the content, and the content has credentials.
	if yaml.Unmarshal(raw, &infra) != nil || yaml.Unmarshal(raw, &p.spec) != nil {
		return fmt.Errorf("--infra-json %s: must be what `create infra powervs` writes, or what spec.platform.powervs holds, as JSON", o.infraJSON)
	}
	o.InfraID, o.BaseDomain = cmp.Or(o.InfraID, infra.ID), cmp.Or(o.BaseDomain, infra.BaseDomain)
	p.domainID = infra.CISDomainID
	p.spec.CISInstanceCRN = cmp.Or(p.spec.CISInstanceCRN, infra.CISCRN)
	p.spec.ServiceInstanceID = cmp.Or(p.spec.ServiceInstanceID, infra.CloudInstanceID)
	if p.spec.VPC == nil && infra.VPCName != "" {
		p.spec.VPC = &hyperv1.PowerVSVPC{Name: infra.VPCName, Region: infra.VPCRegion, Subnet: infra.VPCSubnetName}
	}
	if p.spec.Subnet == nil && infra.DHCPSubnet+infra.DHCPSubnetID != "" {
		p.spec.Subnet = &hyperv1.PowerVSResourceReference{}
		if infra.DHCPSubnet != "" {
			p.spec.Subnet.Name = &infra.DHCPSubnet
		}
		if infra.DHCPSubnetID != "" {
			p.spec.Subnet.ID = &infra.DHCPSubnetID
		}
	}
	return p.useSecrets(o, infra.Secrets)
}

// useSecrets takes the credentials of the description, whichever way it spells whose they are.
func (p *powerVS) useSecrets(o *Options, secrets map[string]*corev1.Secret) error {
	for _, c := range powerVSCreds {
		for key, secret := range secrets {
			if secret == nil || !strings.Contains(strings.ToLower(key), c.word) {
				continue
			}
			name := cmp.Or(secret.Name, o.Name+c.suffix)
			c.in(&p.spec).Name = name
			made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: secret.Type, Data: map[string][]byte{}}
			maps.Copy(made.Data, secret.Data)
			for key, value := range secret.StringData {
				made.Data[key] = []byte(value)
			}
			if len(made.Data) == 0 {
				return fmt.Errorf("--infra-json: secrets.%s has no data", key)
			}
			p.secrets = append(p.secrets, made)
		}
	}
	return nil
}

func (p *powerVS) cluster(_ Options, _ Generated, hc *hyperv1.HostedCluster) {
	hc.Spec.Platform.PowerVS = p.spec.DeepCopy()
	hc.Spec.DNS.PublicZoneID, hc.Spec.DNS.PrivateZoneID = p.domainID, p.domainID
}

func (p *powerVS) objects(o Options, g Generated) []client.Object {
	var objs []client.Object
	for _, secret := range p.secrets {
		secret.ObjectMeta = secretMeta(o, g, secret.Name)
		objs = append(objs, secret)
	}
	return objs
}

func (p *powerVS) pools(_ Options, _ Generated, shared *hyperv1.NodePool) []*hyperv1.NodePool {
	p.machines.fill(shared)
	return []*hyperv1.NodePool{shared}
}

// powerVSMachines are machines of IBM Power Virtual Server.
type powerVSMachines struct {
	selfContained

	system, processorType, processors string
	memory                            int32 // GiB
}

func newPowerVSMachines() *powerVSMachines { return &powerVSMachines{} }

func (m *powerVSMachines) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&m.system, "sys-type", "s922", "Model of the host of workers")
	fs.StringVar(&m.processorType, "proc-type", string(hyperv1.PowerVSNodePoolSharedProcType), "How processors are shared: dedicated, shared or capped")
	fs.StringVar(&m.processors, "processors", "0.5", "CPUs of each worker")
	fs.Int32Var(&m.memory, "memory", 32, "Memory of each worker in GiB")
}

func (m *powerVSMachines) load(*pflag.FlagSet, *NodePoolOptions) error {
	var errs []error
	types := []hyperv1.PowerVSNodePoolProcType{hyperv1.PowerVSNodePoolDedicatedProcType, hyperv1.PowerVSNodePoolSharedProcType, hyperv1.PowerVSNodePoolCappedProcType}
	if !slices.Contains(types, hyperv1.PowerVSNodePoolProcType(m.processorType)) {
		errs = append(errs, fmt.Errorf("--proc-type %q: must be one of %v", m.processorType, types))
	}
	if count, err := strconv.ParseFloat(m.processors, 64); err != nil || !(count > 0 && count < 1000) {
		errs = append(errs, fmt.Errorf("--processors %q: must be a number such as 0.5", m.processors))
	}
	if m.memory < 1 {
		errs = append(errs, fmt.Errorf("--memory %d: must be at least 1 GiB", m.memory))
	}
	return errors.Join(errs...)
}

func (m *powerVSMachines) fill(np *hyperv1.NodePool) {
	np.Spec.Platform.PowerVS = &hyperv1.PowerVSNodePoolPlatform{
		SystemType: m.system, ProcessorType: hyperv1.PowerVSNodePoolProcType(m.processorType), Processors: intstr.Parse(m.processors), MemoryGiB: m.memory,
	}
}
