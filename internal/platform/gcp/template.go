package gcp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/cloud"
	"hcp.internal/platform/internal/platform/machine"
)

type machineSpec struct {
	InstanceType          string            `json:"instanceType"`
	Image                 string            `json:"image"`
	Subnet                string            `json:"subnet"`
	RootDeviceSize        int64             `json:"rootDeviceSize"`
	RootDeviceType        string            `json:"rootDeviceType"`
	RootDiskEncryptionKey *encryptionKey    `json:"rootDiskEncryptionKey,omitempty"`
	ServiceAccount        *serviceAccount   `json:"serviceAccounts,omitempty"`
	AdditionalLabels      map[string]string `json:"additionalLabels,omitempty"`
	AdditionalNetworkTags []string          `json:"additionalNetworkTags,omitempty"`
	AdditionalMetadata    []metadataItem    `json:"additionalMetadata,omitempty"`
	Preemptible           bool              `json:"preemptible,omitempty"`
	ProvisioningModel     *string           `json:"provisioningModel,omitempty"`
	OnHostMaintenance     *string           `json:"onHostMaintenance,omitempty"`
}

type encryptionKey struct {
	KeyType    string     `json:"keyType"`
	ManagedKey managedKey `json:"managedKey"`
}

type managedKey struct {
	KMSKeyName string `json:"kmsKeyName"`
}

type serviceAccount struct {
	Email  string   `json:"email"`
	Scopes []string `json:"scopes,omitempty"`
}

type metadataItem struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Defaults of what pools leave out.
const (
	diskSizeGB    = 64
	diskType      = "pd-balanced"
	defaultSubnet = "default"
	computeEmail  = "default" // the project's account for instances
)

// defaultScopes are what machines may do with their account.
var defaultScopes = []string{
	"https://www.googleapis.com/auth/devstorage.read_only", "https://www.googleapis.com/auth/logging.write", "https://www.googleapis.com/auth/monitoring",
	"https://www.googleapis.com/auth/servicecontrol", "https://www.googleapis.com/auth/service.management.readonly", "https://www.googleapis.com/auth/trace.append",
}

// MachineTemplate implements platform.Platform. Labels are no part of a machine's identity: other labels replace no machine.
func (Platform) MachineTemplate(in machine.Input) (*machine.Template, error) {
	p := in.NodePool.Spec.Platform.GCP
	switch {
	case p == nil:
		return nil, errors.New("spec.platform.gcp is missing: describe the instances there")
	case p.MachineType == "":
		return nil, errors.New("spec.platform.gcp.machineType is missing: name a type such as n2-standard-4")
	case p.Zone == "":
		return nil, errors.New("spec.platform.gcp.zone is missing: name a zone of the region of the HostedCluster")
	}
	g, err := specOf(in.HostedCluster)
	if err != nil {
		return nil, fmt.Errorf("the HostedCluster's %w", err)
	}
	if !strings.HasPrefix(p.Zone, g.Region+"-") {
		return nil, fmt.Errorf("spec.platform.gcp.zone is %s, which is not in region %s of the HostedCluster: name one that is", p.Zone, g.Region)
	}
	spec := describe(in, g, p)
	if spec.Image, err = imageOf(in); err != nil {
		return nil, err
	}
	identity := *spec
	identity.AdditionalLabels = nil
	object, err := cloud.Template(templateKind, spec)
	if err != nil {
		return nil, err
	}
	return &machine.Template{Object: object, Identity: identity, UpdateInPlace: true, FailureDomain: p.Zone}, nil
}

func describe(in machine.Input, g *hyperv1.GCPPlatformSpec, p *hyperv1.GCPNodePoolPlatform) *machineSpec {
	hc, pool := in.HostedCluster, in.NodePool
	worker := strings.ToLower(hc.Spec.InfraID) + "-worker"
	own := ownLabels(hc)
	own["hypershift-nodepool"] = labelText(pool.Name)
	spec := &machineSpec{
		InstanceType: p.MachineType, RootDeviceSize: diskSizeGB, RootDeviceType: diskType,
		AdditionalLabels: labelsOf(slices.Concat(g.ResourceLabels, p.ResourceLabels), own),
		AdditionalMetadata: []metadataItem{
			{"hypershift-cluster", hc.Name}, {"hypershift-infra-id", hc.Spec.InfraID}, {"hypershift-nodepool", pool.Name},
		},
		ServiceAccount: &serviceAccount{Email: computeEmail, Scopes: defaultScopes},
	}
	for _, name := range []string{string(p.Subnet), string(g.NetworkConfig.PrivateServiceConnectSubnet.Name), defaultSubnet} {
		if spec.Subnet == "" {
			spec.Subnet = name
		}
	}
	if d := p.BootDisk; d != nil {
		if d.DiskSizeGB != 0 {
			spec.RootDeviceSize = d.DiskSizeGB
		}
		if d.DiskType != "" {
			spec.RootDeviceType = d.DiskType
		}
		if d.EncryptionKey != nil {
			spec.RootDiskEncryptionKey = &encryptionKey{KeyType: "Managed", ManagedKey: managedKey{KMSKeyName: d.EncryptionKey.KMSKeyName}}
		}
	}
	if a := p.ServiceAccount; a != nil {
		if a.Email != "" {
			spec.ServiceAccount.Email = string(a.Email)
		}
		if len(a.Scopes) > 0 {
			spec.ServiceAccount.Scopes = a.Scopes
		}
	}
	for _, tag := range p.NetworkTags {
		spec.AdditionalNetworkTags = append(spec.AdditionalNetworkTags, string(tag))
	}
	if !slices.Contains(spec.AdditionalNetworkTags, worker) {
		spec.AdditionalNetworkTags = append(spec.AdditionalNetworkTags, worker)
	}
	spec.market(p)
	return spec
}

// market says whether instances may be taken away, and what becomes of them when their host is worked on: such can't be moved.
func (s *machineSpec) market(p *hyperv1.GCPNodePoolPlatform) {
	maintenance := "Migrate"
	switch p.ProvisioningModel {
	case "Spot":
		s.ProvisioningModel, maintenance = ptr.To("Spot"), "Terminate"
	case "Preemptible":
		s.Preemptible, maintenance = true, "Terminate"
	}
	switch strings.ToUpper(p.OnHostMaintenance) {
	case "":
	case "TERMINATE":
		maintenance = "Terminate"
	case "MIGRATE":
		maintenance = "Migrate"
	default:
		maintenance = p.OnHostMaintenance
	}
	s.OnHostMaintenance = &maintenance
}

const imageField = "spec.platform.gcp.image"

// imageOf is the user's image, or else that of the release.
func imageOf(in machine.Input) (string, error) {
	if given := in.NodePool.Spec.Platform.GCP.Image; given != "" {
		return given, nil
	}
	images, err := cloud.Images(in, imageField)
	if err != nil {
		return "", err
	}
	if images.GCP.Name == "" || images.GCP.Project == "" {
		return "", cloud.Missing(in, "image for GCP", imageField)
	}
	return "projects/" + images.GCP.Project + "/global/images/" + images.GCP.Name, nil
}

// PoolConditions implements platform.PoolReporter.
func (Platform) PoolConditions(in machine.Input) (set []hyperv1.NodePoolCondition, absent []string) {
	if in.NodePool.Spec.Platform.GCP == nil {
		return nil, []string{hyperv1.NodePoolValidPlatformImageType}
	}
	image, err := imageOf(in)
	return []hyperv1.NodePoolCondition{cloud.ImageCondition(fmt.Sprintf("Bootstrap GCP image is %q", image), err)}, nil
}
