package nodeclass

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	karpenterv1 "hcp.internal/api/karpenter/v1"
)

func minimal() Spec {
	return Spec{
		AMIFamily: "Custom", AMISelectorTerms: []Term{{ID: "ami-1"}, {ID: "ami-2"}}, UserData: "data",
		BlockDeviceMappings:        []BlockDeviceMapping{{DeviceName: "/dev/xvda", EBS: &BlockDevice{VolumeSize: "120Gi", VolumeType: "gp3", Encrypted: ptr.To(true)}}},
		SubnetSelectorTerms:        []Term{{Tags: map[string]string{"kubernetes.io/role/internal-elb": "1", "kubernetes.io/cluster/demo": "*"}}},
		SecurityGroupSelectorTerms: []Term{{Tags: map[string]string{"karpenter.sh/discovery": "demo"}}},
	}
}

func tag(key, value string) hyperv1.AWSResourceTag {
	return hyperv1.AWSResourceTag{Key: key, Value: value}
}

func TestOf(t *testing.T) {
	cluster := Cluster{InfraID: "demo", UserData: "data", Images: []string{"ami-1", "ami-2"}}
	for name, tc := range map[string]struct {
		class     karpenterv1.OpenshiftEC2NodeClassSpec
		tags      []hyperv1.AWSClusterResourceTag
		profile   string
		want      func(*Spec)
		conflicts []string
	}{
		"When nothing is said it should be the cluster's own": {want: func(*Spec) {}},
		"When there is an instance profile it should be that": {profile: "workers", want: func(s *Spec) { s.InstanceProfile = "workers" }},
		"When subnets, groups and reservations are selected it should be by these": {
			class: karpenterv1.OpenshiftEC2NodeClassSpec{
				SubnetSelectorTerms:              []karpenterv1.SubnetSelectorTerm{{ID: "subnet-1"}, {Tags: karpenterv1.Tags{"a": "b"}}},
				SecurityGroupSelectorTerms:       []karpenterv1.SecurityGroupSelectorTerm{{Name: "web"}, {ID: "sg-1"}},
				CapacityReservationSelectorTerms: []karpenterv1.CapacityReservationSelectorTerm{{OwnerID: "123456789012", InstanceMatchCriteria: "Targeted"}},
			},
			want: func(s *Spec) {
				s.SubnetSelectorTerms = []Term{{ID: "subnet-1"}, {Tags: map[string]string{"a": "b"}}}
				s.SecurityGroupSelectorTerms = []Term{{Name: "web"}, {ID: "sg-1"}}
				s.CapacityReservationSelectorTerms = []Term{{OwnerID: "123456789012", InstanceMatchCriteria: "targeted"}}
			},
		},
		"When addresses are public and measured often it should say so": {
			class: karpenterv1.OpenshiftEC2NodeClassSpec{IPAddressAssociation: "Public", Monitoring: "Detailed", InstanceStorePolicy: "RAID0"},
			want: func(s *Spec) {
				s.AssociatePublicIPAddress, s.DetailedMonitoring, s.InstanceStorePolicy = ptr.To(true), ptr.To(true), "RAID0"
			},
		},
		"When addresses are the subnet's it should be no public one": {
			class: karpenterv1.OpenshiftEC2NodeClassSpec{IPAddressAssociation: "SubnetDefault", Monitoring: "Basic"},
			want:  func(s *Spec) { s.AssociatePublicIPAddress, s.DetailedMonitoring = ptr.To(false), ptr.To(false) },
		},
		"When metadata is restricted it should be in EC2's words": {
			class: karpenterv1.OpenshiftEC2NodeClassSpec{MetadataOptions: &karpenterv1.MetadataOptions{Access: "HTTPEndpoint", HTTPIPProtocol: "IPv4", HTTPTokens: "Required", HTTPPutResponseHopLimit: 2}},
			want: func(s *Spec) {
				s.MetadataOptions = &MetadataOptions{HTTPEndpoint: "enabled", HTTPProtocolIPv6: "disabled", HTTPTokens: "required", HTTPPutResponseHopLimit: ptr.To[int64](2)}
			},
		},
		"When metadata options are empty there should be none": {class: karpenterv1.OpenshiftEC2NodeClassSpec{MetadataOptions: &karpenterv1.MetadataOptions{}}, want: func(*Spec) {}},
		"When volumes are described it should be these alone": {
			class: karpenterv1.OpenshiftEC2NodeClassSpec{BlockDeviceMappings: []karpenterv1.BlockDeviceMapping{{DeviceName: "/dev/xvdb", RootVolume: "RootVolume", EBS: &karpenterv1.BlockDevice{
				DeleteOnTermination: "Retain", Encrypted: "Unencrypted", IOPS: ptr.To[int64](3000), Throughput: ptr.To[int64](125), VolumeSizeGiB: 7, VolumeType: "IO2", KMSKeyID: "k", SnapshotID: "s"}}}},
			want: func(s *Spec) {
				s.BlockDeviceMappings = []BlockDeviceMapping{{DeviceName: "/dev/xvdb", RootVolume: true, EBS: &BlockDevice{
					DeleteOnTermination: ptr.To(false), Encrypted: ptr.To(false), IOPS: ptr.To[int64](3000), Throughput: ptr.To[int64](125), VolumeSize: "7Gi", VolumeType: "io2", KMSKeyID: "k", SnapshotID: "s"}}}
			},
		},
		"When the class overrides tags it should only where the cluster lets it, and never Karpenter's own": {
			class: karpenterv1.OpenshiftEC2NodeClassSpec{Tags: map[string]string{"open": "class", "fixed": "class", "same": "x", "new": "class"}},
			tags: []hyperv1.AWSClusterResourceTag{{AWSResourceTag: tag("open", "cluster"), OverridePolicy: hyperv1.AWSTagOverrideAllow}, {AWSResourceTag: tag("fixed", "cluster")}, {AWSResourceTag: tag("same", "x")},
				{AWSResourceTag: tag("kubernetes.io/cluster/demo", "owned")}, {AWSResourceTag: tag("karpenter.sh/nodepool", "x")}},
			want: func(s *Spec) {
				s.Tags = map[string]string{"open": "class", "fixed": "cluster", "same": "x", "new": "class"}
			},
			conflicts: []string{"fixed"},
		},
		"When kubelets are configured Karpenter should know what it computes with, and no grace period that is none": {
			class: karpenterv1.OpenshiftEC2NodeClassSpec{Kubelet: &karpenterv1.KubeletConfiguration{
				MaxPods: 50, KubeReserved: karpenterv1.ResourceReservation{"cpu": "200m"},
				EvictionSoftGracePeriod: karpenterv1.EvictionGracePeriods{"memory.available": "1m30s", "nodefs.available": "soon"}}},
			want: func(s *Spec) {
				s.Kubelet = map[string]any{"maxPods": int64(50), "kubeReserved": map[string]any{"cpu": "200m"}, "evictionSoftGracePeriod": map[string]any{"memory.available": "1m30s"}}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, want := NewWithT(t), minimal()
			tc.want(&want)
			c := cluster
			c.Tags, c.InstanceProfile = tc.tags, tc.profile
			got, conflicts, err := Of(&tc.class, c)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(want))
			g.Expect(conflicts).To(Equal(tc.conflicts))
		})
	}
	t.Run("When there is no AMI it should be refused", func(t *testing.T) {
		_, _, err := Of(&karpenterv1.OpenshiftEC2NodeClassSpec{}, Cluster{})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("has no AMI")))
	})
}
