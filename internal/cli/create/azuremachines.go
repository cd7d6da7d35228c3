package create

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// azureMachines are machines of Microsoft Azure.
type azureMachines struct {
	size, zone, subnetID, encryptionSet, diskType string
	diskSize                                      int32 // GiB
	ephemeral                                     bool
	encryptionAtHost, generation                  string
	market                                        hyperv1.AzureMarketplaceImage
	imageID                                       string
	bootImageID                                   string // of the infrastructure, when flags name no other
	diagnostics, diagnosticsURI                   string
}

func newAzureMachines() *azureMachines { return &azureMachines{} }

// addMachineFlags declares what a cluster's first pools and a pool of its own have in common.
func (m *azureMachines) addMachineFlags(fs *pflag.FlagSet) {
	fs.StringVar(&m.size, "instance-type", "", "Size of workers (default: Standard_D4s_v5, and Standard_D4ps_v5 with --arch arm64)")
	fs.Int32Var(&m.diskSize, "root-disk-size", 120, "Size of workers' boot disks in GiB")
	fs.StringVar(&m.diskType, "disk-storage-account-type", "Premium_LRS", "Kind of workers' boot disks")
	fs.BoolVar(&m.ephemeral, "enable-ephemeral-disk", false, "Boot disks are local storage of the host")
	fs.StringVar(&m.encryptionSet, "disk-encryption-set-id", "", "Resource ID of the disk encryption set of boot disks")
	fs.StringVar(&m.encryptionAtHost, "encryption-at-host", "Enabled", "Hosts encrypt caches and temporary disks: Enabled or Disabled")
	fs.StringVar(&m.generation, "image-generation", "", "Hyper-V generation of the boot image: Gen1 or Gen2")
	fs.StringVar(&m.market.Publisher, "marketplace-publisher", "", "Publisher of a boot image of the marketplace (default: the release's image)")
	fs.StringVar(&m.market.Offer, "marketplace-offer", "", "Offer of a boot image of the marketplace")
	fs.StringVar(&m.market.SKU, "marketplace-sku", "", "SKU of a boot image of the marketplace")
	fs.StringVar(&m.market.Version, "marketplace-version", "", "Version of a boot image of the marketplace")
	fs.StringVar(&m.imageID, "image-id", "", "Resource ID of a boot image of your own")
	fs.StringVar(&m.diagnostics, "diagnostics-storage-account-type", "", "Where boot logs go: Managed, UserManaged or Disabled")
	fs.StringVar(&m.diagnosticsURI, "diagnostics-storage-account-uri", "", "URL of the account's blob endpoint with UserManaged")
}

func (m *azureMachines) addFlags(fs *pflag.FlagSet) {
	m.addMachineFlags(fs)
	fs.StringVar(&m.zone, "availability-zone", "", "Availability zone of workers: 1, 2 or 3")
	fs.StringVar(&m.subnetID, "nodepool-subnet-id", "", "Resource ID of the subnet of workers (default: that of the cluster)")
}

func (m *azureMachines) load(*pflag.FlagSet, *NodePoolOptions) error { return m.validate() }

func (m *azureMachines) leftOpen() []string {
	if m.subnetID == "" {
		return []string{"--nodepool-subnet-id"}
	}
	return nil
}

func (m *azureMachines) complete(hc *hyperv1.HostedCluster) error {
	if m.subnetID == "" && hc.Spec.Platform.Azure != nil {
		m.subnetID = hc.Spec.Platform.Azure.SubnetID
	}
	return required(map[string]string{"nodepool-subnet-id": m.subnetID}, "nodepool-subnet-id")
}

func (m *azureMachines) validate() error {
	var errs []error
	given := 0
	for _, part := range []string{m.market.Publisher, m.market.Offer, m.market.SKU, m.market.Version} {
		if part != "" {
			given++
		}
	}
	if given != 0 && given != 4 {
		errs = append(errs, errors.New("--marketplace-publisher, -offer, -sku and -version go together: give all of them or none"))
	}
	if m.imageID != "" && (given > 0 || m.generation != "") {
		errs = append(errs, errors.New("--image-id excludes --marketplace-… and --image-generation"))
	}
	if m.diskSize < 16 || m.diskSize > 32767 {
		errs = append(errs, fmt.Errorf("--root-disk-size %d: must be from 16 to 32767 GiB", m.diskSize))
	}
	if (m.diagnostics == string(hyperv1.AzureDiagnosticsStorageAccountTypeUserManaged)) != (m.diagnosticsURI != "") {
		errs = append(errs, errors.New("--diagnostics-storage-account-uri goes with --diagnostics-storage-account-type UserManaged, and with nothing else"))
	}
	return errors.Join(errs...)
}

func (m *azureMachines) fill(np *hyperv1.NodePool) {
	size := m.size
	switch {
	case size != "":
	case np.Spec.Arch == hyperv1.ArchitectureARM64:
		size = "Standard_D4ps_v5"
	default:
		size = "Standard_D4s_v5"
	}
	spec := &hyperv1.AzureNodePoolPlatform{
		VMSize:           size,
		Image:            hyperv1.AzureVMImage{Type: hyperv1.AzureMarketplace},
		AvailabilityZone: m.zone,
		EncryptionAtHost: m.encryptionAtHost,
		SubnetID:         m.subnetID,
		OSDisk: hyperv1.AzureNodePoolOSDisk{
			SizeGiB:                m.diskSize,
			DiskStorageAccountType: hyperv1.AzureDiskStorageAccountType(m.diskType),
			EncryptionSetID:        m.encryptionSet,
		},
	}
	if m.ephemeral {
		spec.OSDisk.Persistence = hyperv1.EphemeralAzureDiskPersistence
	}
	market := m.market
	market.ImageGeneration = hyperv1.AzureVMImageGeneration(m.generation)
	switch {
	case m.imageID != "":
		spec.Image = hyperv1.AzureVMImage{Type: hyperv1.ImageID, ImageID: &m.imageID}
	case market != (hyperv1.AzureMarketplaceImage{}):
		spec.Image.AzureMarketplace = &market
	case m.bootImageID != "":
		spec.Image = hyperv1.AzureVMImage{Type: hyperv1.ImageID, ImageID: &m.bootImageID}
	}
	if m.diagnostics != "" {
		spec.Diagnostics = &hyperv1.Diagnostics{StorageAccountType: hyperv1.AzureDiagnosticsStorageAccountType(m.diagnostics)}
		if m.diagnosticsURI != "" {
			spec.Diagnostics.UserManaged = &hyperv1.UserManagedDiagnostics{StorageAccountURI: m.diagnosticsURI}
		}
	}
	np.Spec.Platform.Azure = spec
}
