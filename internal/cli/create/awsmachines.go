package create

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// leastRootVolume is the smallest boot volume in GiB that the API takes.
const leastRootVolume = 8

// awsMachines are machines of Amazon Web Services.
type awsMachines struct {
	instanceType, subnetID, profile string
	securityGroups                  []string
	volumeType, volumeKey           string
	volumeSize, volumeIOPS          int64
}

func newAWSMachines() *awsMachines { return &awsMachines{} }

// addMachineFlags declares what a cluster's first pools and a pool of its own have in common.
func (m *awsMachines) addMachineFlags(fs *pflag.FlagSet) {
	fs.StringVar(&m.instanceType, "instance-type", "", "Instance type of workers (default: m5.large, and m6g.large with --arch arm64)")
	fs.StringVar(&m.volumeType, "root-volume-type", "gp3", "Type of workers' boot volumes")
	fs.Int64Var(&m.volumeSize, "root-volume-size", 120, "Size of workers' boot volumes in GiB")
	fs.Int64Var(&m.volumeIOPS, "root-volume-iops", 0, "Provisioned operations per second of boot volumes, for volume types that support it")
	fs.StringVar(&m.volumeKey, "root-volume-kms-key", "", "KMS key that encrypts boot volumes, by ID or ARN")
}

func (m *awsMachines) addFlags(fs *pflag.FlagSet) {
	m.addMachineFlags(fs)
	fs.StringVar(&m.subnetID, "subnet-id", "", "Subnet of workers (default: that of the HostedCluster)")
	fs.StringSliceVar(&m.securityGroups, "securitygroup-id", nil, "Additional security groups of workers")
	fs.StringVar(&m.profile, "instance-profile", "", "Instance profile of workers (default: {infra ID}-worker)")
}

func (m *awsMachines) load(_ *pflag.FlagSet, _ *NodePoolOptions) error {
	return m.validate()
}

func (m *awsMachines) leftOpen() []string {
	var flags []string
	if m.subnetID == "" {
		flags = append(flags, "--subnet-id")
	}
	if m.profile == "" {
		flags = append(flags, "--instance-profile")
	}
	return flags
}

func (m *awsMachines) complete(hc *hyperv1.HostedCluster) error {
	if m.profile == "" {
		m.profile = hc.Spec.InfraID + "-worker"
	}
	if m.subnetID != "" {
		return nil
	}
	if spec := hc.Spec.Platform.AWS; spec != nil && spec.CloudProviderConfig != nil && spec.CloudProviderConfig.Subnet != nil {
		m.subnetID = ptr.Deref(spec.CloudProviderConfig.Subnet.ID, "")
	}
	if m.subnetID == "" {
		return fmt.Errorf("--subnet-id is required: HostedCluster %s/%s names no subnet by its ID in spec.platform.aws.cloudProviderConfig", hc.Namespace, hc.Name)
	}
	return nil
}

func (m *awsMachines) validate() error {
	var errs []error
	if m.volumeSize < leastRootVolume {
		errs = append(errs, fmt.Errorf("--root-volume-size %d: must be at least %d GiB", m.volumeSize, leastRootVolume))
	}
	if m.volumeIOPS < 0 {
		errs = append(errs, fmt.Errorf("--root-volume-iops %d: must not be negative", m.volumeIOPS))
	}
	return errors.Join(errs...)
}

func (m *awsMachines) fill(np *hyperv1.NodePool) {
	instanceType := m.instanceType
	switch {
	case instanceType != "":
	case np.Spec.Arch == hyperv1.ArchitectureARM64:
		instanceType = "m6g.large"
	default:
		instanceType = "m5.large"
	}
	volume := &hyperv1.Volume{Type: m.volumeType, Size: m.volumeSize, IOPS: m.volumeIOPS}
	if m.volumeKey != "" {
		volume.Encrypted, volume.EncryptionKey = ptr.To(true), m.volumeKey
	}
	spec := &hyperv1.AWSNodePoolPlatform{
		InstanceType:    instanceType,
		InstanceProfile: m.profile,
		Subnet:          hyperv1.AWSResourceReference{ID: ptr.To(m.subnetID)},
		RootVolume:      volume,
	}
	for _, id := range m.securityGroups {
		spec.SecurityGroups = append(spec.SecurityGroups, hyperv1.AWSResourceReference{ID: ptr.To(id)})
	}
	np.Spec.Platform.AWS = spec
}
