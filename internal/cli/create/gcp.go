package create

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

var gcpTexts = texts{
	short: "Create a hosted cluster on Google Cloud (TechPreview)",
	long: `Create a hosted cluster on Google Cloud. The APIs must be installed with --tech-preview-no-upgrade.

Network, workload identity pool and service accounts must exist: this version makes none in the cloud.`,
	example: `  hypershift create cluster gcp --name demo --project my-project --region us-central1 --network demo --base-domain example.com \
    --private-service-connect-subnet demo-psc --workload-identity-project-number 123456789012 --workload-identity-pool-id demo-pool \
    --workload-identity-provider-id demo-provider --control-plane-service-account plane@my-project.iam.gserviceaccount.com … \
    --service-account-signing-key-path key.pem --oidc-issuer-url https://issuer.example.com --pull-secret pull-secret.json --render`,
	poolExample: `  hypershift create nodepool gcp --cluster-name demo --name demo-a --replicas 3 --machine-type n2-standard-8 --zone us-central1-a --subnet demo`,
}

// gcp is platform GCP.
type gcp struct {
	machines gcpMachines

	project, region, network, pscSubnet        string
	poolProject, poolID, providerID            string
	endpointAccess, issuer, signingKeyPath     string
	nodePool, plane, controller                string
	storage, imageRegistry, networkServiceAcct string
}

func newGCP() *gcp { return &gcp{} }

func (p *gcp) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&p.project, "project", "", "ID of the project (required)")
	fs.StringVar(&p.region, "region", "", "Region of the cluster (required)")
	fs.StringVar(&p.network, "network", "", "VPC network (required)")
	fs.StringVar(&p.pscSubnet, "private-service-connect-subnet", "", "Subnet of the endpoint for private access (required)")
	fs.StringVar(&p.poolProject, "workload-identity-project-number", "", "Number of the project with the workload identity pool (required)")
	fs.StringVar(&p.poolID, "workload-identity-pool-id", "", "Workload identity pool (required)")
	fs.StringVar(&p.providerID, "workload-identity-provider-id", "", "Provider in the workload identity pool (required)")
	fs.StringVar(&p.nodePool, "node-pool-service-account", "", "Service account that makes machines (required)")
	fs.StringVar(&p.plane, "control-plane-service-account", "", "Service account of the control plane operator (required)")
	fs.StringVar(&p.controller, "cloud-controller-service-account", "", "Service account of the cloud controller manager (required)")
	fs.StringVar(&p.storage, "storage-service-account", "", "Service account of the disk driver (required)")
	fs.StringVar(&p.imageRegistry, "image-registry-service-account", "", "Service account of the image registry (required)")
	fs.StringVar(&p.networkServiceAcct, "network-service-account", "", "Service account of the cloud network config controller (required)")
	fs.StringVar(&p.signingKeyPath, "service-account-signing-key-path", "", "File with the PEM private key that signs service account tokens")
	fs.StringVar(&p.issuer, "oidc-issuer-url", "", "Issuer of service account tokens")
	fs.StringVar(&p.endpointAccess, "endpoint-access", string(hyperv1.GCPEndpointAccessPrivate), "From where the API can be reached: PublicAndPrivate or Private")
	p.machines.addFlags(fs)
}

func (p *gcp) load(_ *pflag.FlagSet, o *Options) error {
	errs := []error{required(map[string]string{
		"project": p.project, "region": p.region, "network": p.network, "private-service-connect-subnet": p.pscSubnet,
		"workload-identity-project-number": p.poolProject, "workload-identity-pool-id": p.poolID, "workload-identity-provider-id": p.providerID,
		"node-pool-service-account": p.nodePool, "control-plane-service-account": p.plane, "cloud-controller-service-account": p.controller,
		"storage-service-account": p.storage, "image-registry-service-account": p.imageRegistry, "network-service-account": p.networkServiceAcct,
	}, "project", "region", "network", "private-service-connect-subnet", "workload-identity-project-number", "workload-identity-pool-id",
		"workload-identity-provider-id", "node-pool-service-account", "control-plane-service-account", "cloud-controller-service-account",
		"storage-service-account", "image-registry-service-account", "network-service-account")}
	if o.infraJSON != "" {
		errs = append(errs, errors.New("--infra-json: platform GCP is described by flags; leave it out"))
	}
	access := []hyperv1.GCPEndpointAccessType{hyperv1.GCPEndpointAccessPublicAndPrivate, hyperv1.GCPEndpointAccessPrivate}
	if !slices.Contains(access, hyperv1.GCPEndpointAccessType(p.endpointAccess)) {
		errs = append(errs, fmt.Errorf("--endpoint-access %q: must be one of %v", p.endpointAccess, access))
	}
	var err error
	if o.SigningKey, err = readSigningKey(p.signingKeyPath); err != nil {
		errs = append(errs, err)
	}
	if len(o.SigningKey) > 0 && p.issuer == "" {
		errs = append(errs, errors.New("--service-account-signing-key-path needs --oidc-issuer-url"))
	}
	p.machines.inRegion(p.region, p.pscSubnet)
	o.IssuerURL = p.issuer
	return errors.Join(errs...)
}

func (p *gcp) cluster(_ Options, _ Generated, hc *hyperv1.HostedCluster) {
	name := func(s string) hyperv1.GCPResourceReference {
		return hyperv1.GCPResourceReference{Name: hyperv1.GCPResourceName(s)}
	}
	hc.Spec.Platform.GCP = &hyperv1.GCPPlatformSpec{
		Project:        p.project,
		Region:         p.region,
		NetworkConfig:  hyperv1.GCPNetworkConfig{Network: name(p.network), PrivateServiceConnectSubnet: name(p.pscSubnet)},
		EndpointAccess: hyperv1.GCPEndpointAccessType(p.endpointAccess),
		WorkloadIdentity: hyperv1.GCPWorkloadIdentityConfig{
			ProjectNumber: p.poolProject,
			PoolID:        hyperv1.GCPWorkloadIdentityID(p.poolID),
			ProviderID:    hyperv1.GCPWorkloadIdentityID(p.providerID),
			ServiceAccountsEmails: hyperv1.GCPServiceAccountsEmails{
				NodePool:        hyperv1.GCPServiceAccountEmail(p.nodePool),
				ControlPlane:    hyperv1.GCPServiceAccountEmail(p.plane),
				CloudController: hyperv1.GCPServiceAccountEmail(p.controller),
				Storage:         hyperv1.GCPServiceAccountEmail(p.storage),
				ImageRegistry:   hyperv1.GCPServiceAccountEmail(p.imageRegistry),
				Network:         hyperv1.GCPServiceAccountEmail(p.networkServiceAcct),
			},
		},
	}
}

func (p *gcp) objects(Options, Generated) []client.Object { return nil }

func (p *gcp) pools(_ Options, _ Generated, shared *hyperv1.NodePool) []*hyperv1.NodePool {
	p.machines.fill(shared)
	return []*hyperv1.NodePool{shared}
}

const gcpMachineType = "n2-standard-4"

// gcpMachines are machines of Google Cloud.
type gcpMachines struct{ machineType, zone, subnet, image string }

func (m *gcpMachines) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&m.machineType, "machine-type", gcpMachineType, "Machine type of workers")
	fs.StringVar(&m.zone, "zone", "", "Zone of workers (default: zone a of the region)")
	fs.StringVar(&m.subnet, "subnet", "", "Subnet of workers (default: that of private access)")
	fs.StringVar(&m.image, "boot-image", "", "Boot image of workers (default: that of the release)")
}

func (m *gcpMachines) load(*pflag.FlagSet, *NodePoolOptions) error { return nil }

func (m *gcpMachines) leftOpen() []string {
	var flags []string
	if m.zone == "" {
		flags = append(flags, "--zone")
	}
	if m.subnet == "" {
		flags = append(flags, "--subnet")
	}
	return flags
}

func (m *gcpMachines) complete(hc *hyperv1.HostedCluster) error {
	if spec := hc.Spec.Platform.GCP; spec != nil {
		m.inRegion(spec.Region, string(spec.NetworkConfig.PrivateServiceConnectSubnet.Name))
	}
	return required(map[string]string{"zone": m.zone, "subnet": m.subnet}, "zone", "subnet")
}

// inRegion takes the defaults of a cluster.
func (m *gcpMachines) inRegion(region, subnet string) {
	if m.zone == "" && region != "" {
		m.zone = region + "-a"
	}
	if m.subnet == "" {
		m.subnet = subnet
	}
}

func (m *gcpMachines) fill(np *hyperv1.NodePool) {
	np.Spec.Platform.GCP = &hyperv1.GCPNodePoolPlatform{
		MachineType: cmp.Or(m.machineType, gcpMachineType),
		Zone:        m.zone,
		Subnet:      hyperv1.GCPResourceName(m.subnet),
		Image:       m.image,
	}
}
