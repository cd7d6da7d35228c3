package create

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/refuse"
)

var powerVSTexts = texts{
	short: "Create a hosted cluster on IBM Power Virtual Server",
	long: `Create a hosted cluster on IBM Power Virtual Server.

Workspace, network and credentials must exist: this version makes none in the cloud. --infra-json describes them; it holds
what spec.platform.powervs of a HostedCluster holds, the names of five Secrets with credentials included, and flags win.`,
	example: `  hypershift create cluster powervs --name demo --base-domain example.com --pull-secret pull-secret.json --infra-json infra.json \
    --resource-group demo --region us-south --zone us-south --vpc demo --vpc-region us-south \
    --release-image registry.example.com/ocp/release:4.22 --render`,
	poolExample: `  hypershift create nodepool powervs --cluster-name demo --name demo-large --replicas 3 --processors 1 --memory 64`,
}

// powerVS is platform PowerVS.
type powerVS struct {
	machines *powerVSMachines
	refused  refuse.Flags

	resourceGroup, region, zone, workspace, vpc, vpcRegion string

	spec hyperv1.PowerVSPlatformSpec
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
	p.refused.Values(fs, noInfrastructure, "transit-gateway", "transit-gateway-location")
	p.refused.Switches(fs, noInfrastructure, "recreate-secrets", "transit-gateway-global-routing")
	fs.Bool("debug", false, "Not needed: this version asks nothing of the cloud")
	_ = fs.MarkHidden("debug")
}

func (p *powerVS) load(fs *pflag.FlagSet, o *Options) error {
	errs := []error{p.refused.Check(fs), p.machines.load(fs, &o.NodePool)}
	if o.infraJSON == "" {
		errs = append(errs, errors.New("platform PowerVS needs --infra-json: this version makes no workspace, network and credentials in the cloud"))
		return errors.Join(errs...)
	}
	if err := readYAML("--infra-json", o.infraJSON, &p.spec); err != nil {
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
	for name, value := range map[string]string{
		"accountID": p.spec.AccountID, "cisInstanceCRN": p.spec.CISInstanceCRN,
		"kubeCloudControllerCreds.name": p.spec.KubeCloudControllerCreds.Name, "nodePoolManagementCreds.name": p.spec.NodePoolManagementCreds.Name,
		"ingressOperatorCloudCreds.name": p.spec.IngressOperatorCloudCreds.Name, "storageOperatorCloudCreds.name": p.spec.StorageOperatorCloudCreds.Name,
		"imageRegistryOperatorCloudCreds.name": p.spec.ImageRegistryOperatorCloudCreds.Name,
	} {
		if value == "" {
			errs = append(errs, fmt.Errorf("--infra-json: %s is missing", name))
		}
	}
	if p.spec.Subnet == nil {
		errs = append(errs, errors.New("--infra-json: subnet is missing"))
	}
	return errors.Join(errs...)
}

func (p *powerVS) cluster(_ Options, _ Generated, hc *hyperv1.HostedCluster) {
	hc.Spec.Platform.PowerVS = p.spec.DeepCopy()
}

func (p *powerVS) objects(Options, Generated) []client.Object { return nil }

func (p *powerVS) pools(_ Options, _ Generated, shared *hyperv1.NodePool) []*hyperv1.NodePool {
	p.machines.fill(shared, nil)
	return []*hyperv1.NodePool{shared}
}

// powerVSMachines are machines of IBM Power Virtual Server.
type powerVSMachines struct {
	system, processorType, processors string
	memory                            int32 // GiB
}

func newPowerVSMachines() *powerVSMachines { return &powerVSMachines{} }

func (m *powerVSMachines) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&m.system, "sys-type", "s922", "Model of the host of workers")
	fs.StringVar(&m.processorType, "proc-type", string(hyperv1.PowerVSNodePoolSharedProcType), "How processors are shared: dedicated, shared or capped")
	fs.StringVar(&m.processors, "processors", "0.5", "Processors of each worker")
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

func (m *powerVSMachines) fill(np *hyperv1.NodePool, _ *hyperv1.HostedCluster) {
	np.Spec.Platform.PowerVS = &hyperv1.PowerVSNodePoolPlatform{
		SystemType: m.system, ProcessorType: hyperv1.PowerVSNodePoolProcType(m.processorType), Processors: intstr.Parse(m.processors), MemoryGiB: m.memory,
	}
}
