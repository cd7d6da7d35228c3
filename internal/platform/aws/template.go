package aws

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/machine"
)

const (
	// defaultVolumeSize is that of a boot volume in GiB when nobody says, and defaultVolumeType its type when only a size is said.
	defaultVolumeSize = 16
	defaultVolumeType = "gp3"
	// metadataHops lets pods reach the instance's metadata through one bridge.
	metadataHops                   = 2
	tokensOptional, tokensRequired = "optional", "required"
)

// poolSpec is the platform's part of a NodePool; an empty one while it has none, of which MachineTemplate tells.
func poolSpec(pool *hyperv1.NodePool) *hyperv1.AWSNodePoolPlatform {
	if pool.Spec.Platform.AWS == nil {
		return &hyperv1.AWSNodePoolPlatform{}
	}
	return pool.Spec.Platform.AWS
}

// isSpot tells whether machines may be taken away at any time.
func isSpot(pool *hyperv1.NodePool) bool {
	if p := poolSpec(pool).Placement; p != nil && p.MarketType == hyperv1.PlacementMarketTypeSpot {
		return true
	}
	_, asked := pool.Annotations[hyperv1.EnableSpotAnnotation]
	return asked
}

// defaultSecurityGroup is the one that the control plane makes for workers; empty: not yet.
func defaultSecurityGroup(hc *hyperv1.HostedCluster) string {
	if p := hc.Status.Platform; p != nil && p.AWS != nil {
		return p.AWS.DefaultWorkerSecurityGroupID
	}
	return ""
}

// MachineTemplate implements platform.Platform. Tags are no part of what it is named after: the provider changes them on instances that run.
func (Platform) MachineTemplate(in machine.Input) (*machine.Template, error) {
	aws := in.NodePool.Spec.Platform.AWS
	if aws == nil {
		return nil, errors.New("spec.platform.aws: is missing: name instanceType and subnet")
	}
	if err := usable(in, aws); err != nil {
		return nil, err
	}
	ami, err := imageOf(in)
	if err != nil {
		return nil, err
	}
	group := defaultSecurityGroup(in.HostedCluster)
	if group == "" {
		return nil, &machine.NotReadyError{Waiting: waitingForGroup}
	}
	spec := machineSpec(in, aws, ami, group)
	identity := map[string]any{}
	for k, v := range spec {
		identity[k] = v
	}
	tags := tagsOf(in.HostedCluster, in.NodePool).all
	spec["additionalTags"] = tags
	return &machine.Template{
		Object:        object("AWSMachineTemplate", map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}}),
		Identity:      identity,
		UpdateInPlace: true,
		Interruptible: isSpot(in.NodePool),
		Retag:         &machine.Retag{Kind: kind("AWSMachine"), Field: "additionalTags", Value: tags},
	}, nil
}

// reservationsSince is the first version of OpenShift whose machines can use capacity reservations.
const reservationsSince = "4.19.0"

// usable finds what the schema lets through, and AWS or the provider would refuse.
func usable(in machine.Input, aws *hyperv1.AWSNodePoolPlatform) error {
	var errs []error
	if aws.InstanceType == "" {
		errs = append(errs, errors.New("spec.platform.aws.instanceType: is empty: name one, such as m5.large"))
	}
	if ptr.Deref(aws.Subnet.ID, "") == "" && len(aws.Subnet.Filters) == 0 {
		errs = append(errs, errors.New("spec.platform.aws.subnet: is empty: name a subnet by id, or by filters"))
	}
	if v := aws.RootVolume; v != nil && v.Size < 0 {
		errs = append(errs, errors.New("spec.platform.aws.rootVolume.size: is negative: write GiB"))
	}
	if p := aws.Placement; p != nil && p.CapacityReservation != nil && !in.Release.Kubernetes {
		v, err := version.ParseSemantic(in.Release.Version)
		if err == nil && v.WithPreRelease("").LessThan(version.MustParseSemantic(reservationsSince)) {
			errs = append(errs, fmt.Errorf("spec.platform.aws.placement.capacityReservation: needs release 4.19 or later, and this is %s: upgrade, or take it out", in.Release.Version))
		}
	}
	return errors.Join(errs...)
}

// imageOf is the AMI that machines boot.
func imageOf(in machine.Input) (string, error) {
	aws, region := poolSpec(in.NodePool), specOf(in.HostedCluster).Region
	const remedy = "name one of the region by spec.platform.aws.ami"
	if aws.AMI != "" {
		return aws.AMI, nil
	}
	if in.Release.Kubernetes {
		return "", fmt.Errorf("release %s brings no AMI: %s", in.Release.Version, remedy)
	}
	images, err := in.Release.BootImages.For(in.NodePool.Spec.OSImageStream.Name, in.NodePool.Spec.Arch)
	if err != nil {
		return "", fmt.Errorf("release %s: %w; or %s", in.Release.Version, err, remedy)
	}
	from, what := images.AWS, "AMI"
	if aws.ImageType == hyperv1.ImageTypeWindows {
		from, what = images.AWSWindows, "AMI of Windows"
	}
	if ami := from[region]; ami != "" {
		return ami, nil
	}
	return "", fmt.Errorf("release %s has no %s for region %s and %s: %s", in.Release.Version, what, region, in.NodePool.Spec.Arch, remedy)
}

// machineSpec is that of an AWSMachine without its tags.
func machineSpec(in machine.Input, aws *hyperv1.AWSNodePoolPlatform, ami, group string) map[string]any {
	profile := aws.InstanceProfile
	if profile == "" {
		profile = in.HostedCluster.Spec.InfraID + "-worker"
	}
	tokens := tokensOptional
	if in.NodePool.Annotations[hyperv1.EC2InstanceMetadataHTTPTokensAnnotation] == tokensRequired {
		tokens = tokensRequired
	}
	var groups []any
	for _, g := range aws.SecurityGroups {
		groups = append(groups, reference(g))
	}
	spec := map[string]any{
		"ami":                      map[string]any{"id": ami},
		"instanceType":             aws.InstanceType,
		"iamInstanceProfile":       profile,
		"subnet":                   reference(aws.Subnet),
		"additionalSecurityGroups": append(groups, map[string]any{"id": group}),
		"rootVolume":               rootVolume(aws.RootVolume),
		"uncompressedUserData":     true,
		"cloudInit":                map[string]any{"insecureSkipSecretsManager": true, "secureSecretsBackend": "secrets-manager"},
		"instanceMetadataOptions": map[string]any{
			"httpEndpoint": "enabled", "httpPutResponseHopLimit": int64(metadataHops), "httpTokens": tokens, "instanceMetadataTags": "disabled",
		},
	}
	if publicAddresses(in.HostedCluster) {
		spec["publicIP"] = true
	}
	place(spec, in.NodePool, aws.Placement)
	return spec
}

// reference is that of the provider: by ID, or by filters.
func reference(r hyperv1.AWSResourceReference) map[string]any {
	out := map[string]any{}
	if id := ptr.Deref(r.ID, ""); id != "" {
		out["id"] = id
	}
	var filters []any
	for _, f := range r.Filters {
		var values []any
		for _, v := range f.Values {
			values = append(values, v)
		}
		filters = append(filters, map[string]any{"name": f.Name, "values": values})
	}
	if len(filters) > 0 {
		out["filters"] = filters
	}
	return out
}

func rootVolume(v *hyperv1.Volume) map[string]any {
	out := map[string]any{"size": int64(defaultVolumeSize)}
	if v == nil {
		return out
	}
	out["type"] = defaultVolumeType
	if v.Type != "" {
		out["type"] = v.Type
	}
	if v.Size > 0 {
		out["size"] = v.Size
	}
	if v.IOPS > 0 {
		out["iops"] = v.IOPS
	}
	if v.Encrypted != nil {
		out["encrypted"] = *v.Encrypted
	}
	if v.EncryptionKey != "" {
		out["encryptionKey"] = v.EncryptionKey
	}
	return out
}

// Market types of the provider.
const (
	marketSpot, marketOnDemand, marketCapacityBlock = "Spot", "OnDemand", "CapacityBlock"
	tenancyHost                                     = "host"
)

// place says where and on which terms instances run.
func place(spec map[string]any, pool *hyperv1.NodePool, p *hyperv1.PlacementOptions) {
	if isSpot(pool) {
		spec["marketType"] = marketSpot
		options := map[string]any{}
		if p != nil && p.Spot != nil && p.Spot.MaxPrice != "" {
			options["maxPrice"] = p.Spot.MaxPrice
		}
		spec["spotMarketOptions"] = options
	}
	if p == nil {
		return
	}
	if p.Tenancy != "" {
		spec["tenancy"] = string(p.Tenancy)
	}
	reservation := p.CapacityReservation
	if reservation != nil {
		if id := ptr.Deref(reservation.ID, ""); id != "" {
			spec["capacityReservationId"] = id
		}
		if reservation.Preference != "" {
			spec["capacityReservationPreference"] = string(reservation.Preference)
		}
	}
	if market := marketType(p); market != "" && !isSpot(pool) {
		spec["marketType"] = market
	}
}

// marketType is that of the placement, or what a reservation in its older form means.
func marketType(p *hyperv1.PlacementOptions) string {
	switch p.MarketType {
	case hyperv1.PlacementMarketTypeCapacityBlocks:
		return marketCapacityBlock
	case hyperv1.PlacementMarketTypeOnDemand:
		return marketOnDemand
	}
	r := p.CapacityReservation
	if r == nil {
		return ""
	}
	switch r.MarketType {
	case hyperv1.MarketTypeCapacityBlock:
		return marketCapacityBlock
	case hyperv1.MarketTypeOnDemand:
		return marketOnDemand
	}
	if ptr.Deref(r.ID, "") != "" && !strings.EqualFold(string(p.Tenancy), tenancyHost) {
		return marketCapacityBlock
	}
	return ""
}
