package azure

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/cloud"
	"hcp.internal/platform/internal/platform/machine"
)

type machineSpec struct {
	VMSize                 string             `json:"vmSize"`
	FailureDomain          *string            `json:"failureDomain,omitempty"`
	Image                  image              `json:"image"`
	OSDisk                 osDisk             `json:"osDisk"`
	SSHPublicKey           string             `json:"sshPublicKey"`
	NetworkInterfaces      []networkInterface `json:"networkInterfaces"`
	SecurityProfile        *securityProfile   `json:"securityProfile,omitempty"`
	Diagnostics            *diagnostics       `json:"diagnostics,omitempty"`
	Identity               string             `json:"identity,omitempty"`
	UserAssignedIdentities []assignedIdentity `json:"userAssignedIdentities,omitempty"`
}

// image is one of these.
type image struct {
	ID          *string      `json:"id,omitempty"`
	Marketplace *marketplace `json:"marketplace,omitempty"`
}

type marketplace struct {
	Publisher string `json:"publisher"`
	Offer     string `json:"offer"`
	SKU       string `json:"sku"`
	Version   string `json:"version"`
}

type osDisk struct {
	OSType           string            `json:"osType"`
	DiskSizeGB       int32             `json:"diskSizeGB"`
	ManagedDisk      managedDisk       `json:"managedDisk"`
	CachingType      string            `json:"cachingType,omitempty"`
	DiffDiskSettings *diffDiskSettings `json:"diffDiskSettings,omitempty"`
}

type managedDisk struct {
	StorageAccountType string         `json:"storageAccountType"`
	DiskEncryptionSet  *encryptionSet `json:"diskEncryptionSet,omitempty"`
}

type encryptionSet struct {
	ID string `json:"id"`
}

type diffDiskSettings struct {
	Option string `json:"option"`
}

type networkInterface struct {
	SubnetName string `json:"subnetName"`
}

type securityProfile struct {
	EncryptionAtHost bool `json:"encryptionAtHost"`
}

type diagnostics struct {
	Boot bootDiagnostics `json:"boot"`
}

type bootDiagnostics struct {
	StorageAccountType string       `json:"storageAccountType"`
	UserManaged        *userManaged `json:"userManaged,omitempty"`
}

type userManaged struct {
	StorageAccountURI string `json:"storageAccountURI"`
}

type assignedIdentity struct {
	ProviderID string `json:"providerID"`
}

// Defaults of what pools leave out.
const (
	diskSizeGiB = 30
	diskType    = "Premium_LRS"
	generation  = "Gen2"
)

// nobodysKey is a key of SSH, in base64, whose private half nobody has: the provider demands one, and those of users come with the configuration of
// machines. It is always the same, so that a template is.
const nobodysKey = "c3NoLXJzYSBBQUFBQjNOemFDMXljMkVBQUFBREFRQUJBQUFCQVFDOHJQYXk2OEd2R3BTVHpQK2o1RHd4TncreVF1ck55RHVtMkEzMkpaMyszM2o4d0x2SlEyWlFIbVRYUE5xWDhubEFlRGZBME13cmZaUDZINC95ZmZYUHh0d1ZXMXVwcnA2UzUyZWZQa0pMME5rb0k1Qy8zTitmNUREYlVrSm5lSUN0YkVJZ0w4ak1EeTYxaVdERGp4UERURjVnSW5iVXR2NVVNWSs4NkJ3dHNLd2xBY2QvUTVnK1BZMVI4Y1BadFJzNjYyU3ZlRlVWMytNZmlOTGxEdjRoc3RkQUJWZFV5SVlCS2dVZHB0ZmZDcXozRmFzaUc1OVgxSnhvSGNVVzFiL096SjFXQ1U2N1J1WTNvUWVRZEZ5NDEzaVZBMmRTSTdzWUkrUklvUDFCamQ1SzBRRkVLODJTV2pQS0xiRFJKVzZmcDFJYndXRnV5cXBYN3l3Ni8wWDkgCg=="

// MachineTemplate implements platform.Platform. It changes nothing in the NodePool: what is filled in here stays out of it.
func (Platform) MachineTemplate(in machine.Input) (*machine.Template, error) {
	p := in.NodePool.Spec.Platform.Azure
	switch {
	case p == nil:
		return nil, errors.New("spec.platform.azure is missing: describe the virtual machines there")
	case p.VMSize == "":
		return nil, errors.New("spec.platform.azure.vmSize is missing: name a size such as Standard_D4s_v5")
	}
	subnet, err := parseResource("spec.platform.azure.subnetID", p.SubnetID)
	if err == nil && subnet.child == "" {
		err = fmt.Errorf("spec.platform.azure.subnetID is %q, which is no subnet: write …/virtualNetworks/⟨network⟩/subnets/⟨subnet⟩", p.SubnetID)
	}
	if err != nil {
		return nil, err
	}
	boot, err := imageOf(in)
	if err != nil {
		return nil, err
	}
	disk, err := diskOf(p.OSDisk)
	if err != nil {
		return nil, err
	}
	spec := &machineSpec{
		VMSize: p.VMSize, Image: boot, OSDisk: disk, SSHPublicKey: nobodysKey, NetworkInterfaces: []networkInterface{{SubnetName: subnet.child}},
		Diagnostics: diagnosticsOf(p.Diagnostics),
	}
	if p.AvailabilityZone != "" {
		spec.FailureDomain = &p.AvailabilityZone
	}
	if p.EncryptionAtHost != "Disabled" {
		spec.SecurityProfile = &securityProfile{EncryptionAtHost: true}
	}
	if a := in.HostedCluster.Spec.Platform.Azure; a != nil && a.ContainerRegistry != nil && a.ContainerRegistry.Credentials.ManagedIdentity != nil {
		spec.Identity = "UserAssigned"
		spec.UserAssignedIdentities = []assignedIdentity{{ProviderID: "azure:///" + a.ContainerRegistry.Credentials.ManagedIdentity.ResourceID}}
	}
	object, err := cloud.Template(templateKind, spec)
	if err != nil {
		return nil, err
	}
	return &machine.Template{Object: object}, nil
}

func diskOf(d hyperv1.AzureNodePoolOSDisk) (osDisk, error) {
	out := osDisk{OSType: "Linux", DiskSizeGB: d.SizeGiB, ManagedDisk: managedDisk{StorageAccountType: string(d.DiskStorageAccountType)}}
	if out.DiskSizeGB == 0 {
		out.DiskSizeGB = diskSizeGiB
	}
	if out.ManagedDisk.StorageAccountType == "" {
		out.ManagedDisk.StorageAccountType = diskType
	}
	if d.EncryptionSetID != "" {
		out.ManagedDisk.DiskEncryptionSet = &encryptionSet{ID: d.EncryptionSetID}
	}
	switch d.Persistence {
	case hyperv1.EphemeralAzureDiskPersistence:
		out.CachingType, out.DiffDiskSettings = "ReadOnly", &diffDiskSettings{Option: "Local"}
	case hyperv1.PersistentAzureDiskPersistence, "":
	default:
		return out, fmt.Errorf("spec.platform.azure.osDisk.persistence is %q: write Persistent or Ephemeral", d.Persistence)
	}
	return out, nil
}

func diagnosticsOf(d *hyperv1.Diagnostics) *diagnostics {
	if d == nil || d.StorageAccountType == "" {
		return nil
	}
	out := &diagnostics{Boot: bootDiagnostics{StorageAccountType: string(d.StorageAccountType)}}
	if d.StorageAccountType == hyperv1.AzureDiagnosticsStorageAccountTypeUserManaged && d.UserManaged != nil {
		out.Boot.UserManaged = &userManaged{StorageAccountURI: d.UserManaged.StorageAccountURI}
	}
	return out
}

const imageField = "spec.platform.azure.image"

// imageOf is the user's image, or else that of the release in the marketplace: releases from 4.20 on name one.
func imageOf(in machine.Input) (image, error) {
	given := in.NodePool.Spec.Platform.Azure.Image
	switch {
	case given.Type == hyperv1.ImageID && (given.ImageID == nil || *given.ImageID == ""):
		return image{}, fmt.Errorf("%s.imageID is missing, which type ImageID asks for: write the ID of an image", imageField)
	case given.Type == hyperv1.ImageID:
		return image{ID: given.ImageID}, nil
	}
	wanted := generation
	if m := given.AzureMarketplace; m != nil {
		if m.Publisher != "" && m.Offer != "" && m.SKU != "" && m.Version != "" {
			return image{Marketplace: &marketplace{Publisher: m.Publisher, Offer: m.Offer, SKU: m.SKU, Version: m.Version}}, nil
		}
		if m.ImageGeneration != "" {
			wanted = string(m.ImageGeneration)
		}
	}
	if !namesImages(in) {
		return image{}, fmt.Errorf("%s names no image, and release %s none either: write imageID, or publisher, offer, sku and version in azureMarketplace", imageField, in.Release.Version)
	}
	images, err := cloud.Images(in, imageField)
	if err != nil {
		return image{}, err
	}
	found, ok := images.Azure[wanted]
	if !ok {
		return image{}, fmt.Errorf("release %s has no image of Azure's marketplace for generation %s, but for %q: set %s.azureMarketplace.imageGeneration, or name an image",
			in.Release.Version, wanted, strings.Join(slices.Sorted(maps.Keys(images.Azure)), ", "), imageField)
	}
	return image{Marketplace: &marketplace{Publisher: found.Publisher, Offer: found.Offer, SKU: found.SKU, Version: found.Version}}, nil
}

// namesImages tells whether a release is one of those that name images of the marketplace.
func namesImages(in machine.Input) bool {
	if in.Release == nil || in.Release.Kubernetes {
		return false
	}
	v, err := version.ParseSemantic(in.Release.Version)
	return err == nil && (v.Major() > 4 || v.Major() == 4 && v.Minor() >= 20)
}

// PoolConditions implements platform.PoolReporter.
func (Platform) PoolConditions(in machine.Input) (set []hyperv1.NodePoolCondition, absent []string) {
	if in.NodePool.Spec.Platform.Azure == nil {
		return nil, []string{hyperv1.NodePoolValidPlatformImageType}
	}
	boot, err := imageOf(in)
	message := ""
	switch {
	case err != nil:
	case boot.ID != nil:
		message = fmt.Sprintf("Bootstrap Azure image is %q", *boot.ID)
	default:
		m := boot.Marketplace
		message = fmt.Sprintf("Bootstrap Azure image is %q", strings.Join([]string{m.Publisher, m.Offer, m.SKU, m.Version}, ":"))
	}
	return []hyperv1.NodePoolCondition{cloud.ImageCondition(message, err)}, nil
}
