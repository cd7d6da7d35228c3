// Package nodeclass says what EC2NodeClass of Karpenter an OpenshiftEC2NodeClass of a hosted cluster stands for: what users may choose, and what follows from the cluster.
// It is pure: who writes it is an operator of Karpenter.
package nodeclass

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	karpenterv1 "hcp.internal/api/karpenter/v1"
)

// Cluster is what does not come from the class.
type Cluster struct {
	// InfraID is that of the HostedCluster.
	InfraID string
	// UserData is what instances boot with.
	UserData string
	// Images are the AMIs, one for each architecture that there is one for; at least one is needed.
	Images []string
	// InstanceProfile may be empty.
	InstanceProfile string
	// Tags are those of the HostedCluster.
	Tags []hyperv1.AWSClusterResourceTag
}

// Spec is that of an EC2NodeClass, karpenter.k8s.aws/v1. Fields that are not set are left out.
type Spec struct {
	AMIFamily                        string               `json:"amiFamily"`
	AMISelectorTerms                 []Term               `json:"amiSelectorTerms"`
	AssociatePublicIPAddress         *bool                `json:"associatePublicIPAddress,omitempty"`
	BlockDeviceMappings              []BlockDeviceMapping `json:"blockDeviceMappings,omitempty"`
	CapacityReservationSelectorTerms []Term               `json:"capacityReservationSelectorTerms,omitempty"`
	DetailedMonitoring               *bool                `json:"detailedMonitoring,omitempty"`
	InstanceProfile                  string               `json:"instanceProfile,omitempty"`
	InstanceStorePolicy              string               `json:"instanceStorePolicy,omitempty"`
	Kubelet                          map[string]any       `json:"kubelet,omitempty"`
	MetadataOptions                  *MetadataOptions     `json:"metadataOptions,omitempty"`
	SecurityGroupSelectorTerms       []Term               `json:"securityGroupSelectorTerms"`
	SubnetSelectorTerms              []Term               `json:"subnetSelectorTerms"`
	Tags                             map[string]string    `json:"tags,omitempty"`
	UserData                         string               `json:"userData"`
}

// Term selects AMIs, subnets, security groups or reservations.
type Term struct {
	Tags                  map[string]string `json:"tags,omitempty"`
	ID                    string            `json:"id,omitempty"`
	Name                  string            `json:"name,omitempty"`
	OwnerID               string            `json:"ownerID,omitempty"`
	InstanceMatchCriteria string            `json:"instanceMatchCriteria,omitempty"`
}

// BlockDeviceMapping is a volume.
type BlockDeviceMapping struct {
	DeviceName string       `json:"deviceName,omitempty"`
	EBS        *BlockDevice `json:"ebs,omitempty"`
	RootVolume bool         `json:"rootVolume,omitempty"`
}

// BlockDevice is an EBS volume.
type BlockDevice struct {
	DeleteOnTermination *bool  `json:"deleteOnTermination,omitempty"`
	Encrypted           *bool  `json:"encrypted,omitempty"`
	IOPS                *int64 `json:"iops,omitempty"`
	KMSKeyID            string `json:"kmsKeyID,omitempty"`
	SnapshotID          string `json:"snapshotID,omitempty"`
	Throughput          *int64 `json:"throughput,omitempty"`
	VolumeSize          string `json:"volumeSize,omitempty"`
	VolumeType          string `json:"volumeType,omitempty"`
}

// MetadataOptions say how instances reach their metadata.
type MetadataOptions struct {
	HTTPEndpoint            string `json:"httpEndpoint,omitempty"`
	HTTPProtocolIPv6        string `json:"httpProtocolIPv6,omitempty"`
	HTTPPutResponseHopLimit *int64 `json:"httpPutResponseHopLimit,omitempty"`
	HTTPTokens              string `json:"httpTokens,omitempty"`
}

// Of is the EC2NodeClass of a class. conflicts are tags of the class that the HostedCluster has with another value and does not let override, sorted: its own value stays.
func Of(class *karpenterv1.OpenshiftEC2NodeClassSpec, c Cluster) (spec Spec, conflicts []string, err error) {
	if len(c.Images) == 0 {
		return Spec{}, nil, errors.New("the release has no AMI for this region: name another release, or wait until its images are published")
	}
	spec = Spec{
		AMIFamily: "Custom", UserData: c.UserData, InstanceProfile: c.InstanceProfile, InstanceStorePolicy: class.InstanceStorePolicy,
		AssociatePublicIPAddress: either(class.IPAddressAssociation, "Public", "SubnetDefault"), DetailedMonitoring: either(class.Monitoring, "Detailed", "Basic"),
		BlockDeviceMappings: devices(class.BlockDeviceMappings), MetadataOptions: metadata(class.MetadataOptions),
		SubnetSelectorTerms: subnets(class, c.InfraID), SecurityGroupSelectorTerms: groups(class, c.InfraID),
	}
	for _, id := range c.Images {
		spec.AMISelectorTerms = append(spec.AMISelectorTerms, Term{ID: id})
	}
	for _, t := range class.CapacityReservationSelectorTerms {
		spec.CapacityReservationSelectorTerms = append(spec.CapacityReservationSelectorTerms,
			Term{Tags: t.Tags, ID: t.ID, OwnerID: t.OwnerID, InstanceMatchCriteria: strings.ToLower(t.InstanceMatchCriteria)})
	}
	spec.Tags, conflicts = tagsOf(class.Tags, c.Tags)
	spec.Kubelet, err = kubelet(class.Kubelet)
	return spec, conflicts, err
}

// either is true or false for one of two words, and nil for neither.
func either(word, yes, no string) *bool {
	switch word {
	case yes:
		return new(true)
	case no:
		return new(false)
	default:
		return nil
	}
}

// subnets are those of the class, else the cluster's private ones.
func subnets(class *karpenterv1.OpenshiftEC2NodeClassSpec, infraID string) (terms []Term) {
	for _, t := range class.SubnetSelectorTerms {
		terms = append(terms, Term{Tags: t.Tags, ID: t.ID})
	}
	if len(terms) == 0 {
		terms = []Term{{Tags: map[string]string{"kubernetes.io/role/internal-elb": "1", clusterTag + infraID: "*"}}}
	}
	return terms
}

// groups are those of the class, else the cluster's default one.
func groups(class *karpenterv1.OpenshiftEC2NodeClassSpec, infraID string) (terms []Term) {
	for _, t := range class.SecurityGroupSelectorTerms {
		terms = append(terms, Term{Tags: t.Tags, ID: t.ID, Name: t.Name})
	}
	if len(terms) == 0 {
		terms = []Term{{Tags: map[string]string{"karpenter.sh/discovery": infraID}}}
	}
	return terms
}

// devices are those of the class, else one root volume.
func devices(list []karpenterv1.BlockDeviceMapping) (out []BlockDeviceMapping) {
	for _, m := range list {
		device := BlockDeviceMapping{DeviceName: m.DeviceName, RootVolume: m.RootVolume == "RootVolume"}
		if e := m.EBS; e != nil {
			device.EBS = &BlockDevice{
				DeleteOnTermination: either(e.DeleteOnTermination, "Delete", "Retain"), Encrypted: either(e.Encrypted, "Encrypted", "Unencrypted"),
				IOPS: e.IOPS, KMSKeyID: e.KMSKeyID, SnapshotID: e.SnapshotID, Throughput: e.Throughput, VolumeType: strings.ToLower(e.VolumeType),
			}
			if e.VolumeSizeGiB > 0 {
				device.EBS.VolumeSize = fmt.Sprintf("%dGi", e.VolumeSizeGiB)
			}
		}
		out = append(out, device)
	}
	if len(out) == 0 {
		out = []BlockDeviceMapping{{DeviceName: "/dev/xvda", EBS: &BlockDevice{VolumeSize: "120Gi", VolumeType: "gp3", Encrypted: new(true)}}}
	}
	return out
}

func metadata(o *karpenterv1.MetadataOptions) *MetadataOptions {
	if o == nil || *o == (karpenterv1.MetadataOptions{}) {
		return nil
	}
	word := func(value string, pairs map[string]string) string { return pairs[value] }
	out := &MetadataOptions{
		HTTPEndpoint:     word(o.Access, map[string]string{"HTTPEndpoint": "enabled", "None": "disabled"}),
		HTTPProtocolIPv6: word(o.HTTPIPProtocol, map[string]string{"IPv6": "enabled", "IPv4": "disabled"}),
		HTTPTokens:       strings.ToLower(o.HTTPTokens),
	}
	if o.HTTPPutResponseHopLimit > 0 {
		out.HTTPPutResponseHopLimit = &o.HTTPPutResponseHopLimit
	}
	return out
}

const clusterTag = "kubernetes.io/cluster/"

// restricted tags are Karpenter's own: it refuses a class that has one.
var restricted = []string{"eks:eks-cluster-name", "karpenter.sh/nodepool", "karpenter.sh/nodeclaim", "karpenter.k8s.aws/ec2nodeclass"}

func isRestricted(key string) bool {
	return strings.HasPrefix(key, "kubernetes.io/cluster") || slices.Contains(restricted, key)
}

// tagsOf are those of the HostedCluster, and of the class where the HostedCluster has none, or lets its own be overridden.
func tagsOf(class map[string]string, cluster []hyperv1.AWSClusterResourceTag) (tags map[string]string, conflicts []string) {
	tags, fixed := map[string]string{}, map[string]bool{}
	for _, t := range cluster {
		if !isRestricted(t.Key) {
			tags[t.Key], fixed[t.Key] = t.Value, t.OverridePolicy != hyperv1.AWSTagOverrideAllow
		}
	}
	for k, v := range class {
		switch {
		case isRestricted(k):
		case fixed[k]:
			if tags[k] != v {
				conflicts = append(conflicts, k)
			}
		default:
			tags[k] = v
		}
	}
	slices.Sort(conflicts)
	if len(tags) == 0 {
		tags = nil
	}
	return tags, conflicts
}

// kubelet are the settings by which Karpenter computes what fits on a node. Others reach the node alone, with its user data. Grace periods that are none are left out.
func kubelet(k *karpenterv1.KubeletConfiguration) (map[string]any, error) {
	if k == nil {
		return nil, nil
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(k)
	if err != nil {
		return nil, fmt.Errorf("spec.kubelet: %w", err)
	}
	periods := map[string]any{}
	for signal, text := range k.EvictionSoftGracePeriod {
		if d, err := time.ParseDuration(text); err == nil {
			periods[signal] = d.String()
		}
	}
	delete(out, "evictionSoftGracePeriod")
	if len(periods) > 0 {
		out["evictionSoftGracePeriod"] = periods
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}
