package platform_test

import (
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/platform/platformtest"
	"hcp.internal/platform/internal/release/bootimages"
)

// examples complete the cluster and the pool of a platform that needs more than its type.
var examples = map[hyperv1.PlatformType]func(*platformtest.Example){
	hyperv1.AWSPlatform: func(e *platformtest.Example) {
		aws := &hyperv1.AWSPlatformSpec{Region: "us-east-1", CloudProviderConfig: &hyperv1.AWSCloudProviderConfig{VPC: "vpc-1"}}
		arn := "arn:aws:iam::123456789012:role/demo"
		aws.RolesRef = hyperv1.AWSRolesRef{IngressARN: arn, ImageRegistryARN: arn, StorageARN: arn, NetworkARN: arn, KubeCloudControllerARN: arn,
			NodePoolManagementARN: arn, ControlPlaneOperatorARN: arn}
		e.HostedCluster.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: aws}
		e.HostedCluster.Status.Platform = &hyperv1.PlatformStatus{AWS: &hyperv1.AWSPlatformStatus{DefaultWorkerSecurityGroupID: "sg-1"}}
		e.NodePool.Spec.Platform = hyperv1.NodePoolPlatform{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSNodePoolPlatform{
			InstanceType: "m5.large", Subnet: hyperv1.AWSResourceReference{ID: ptr.To("subnet-1")},
		}}
		e.Release.Version, e.Release.Kubernetes = "4.20.3", false
		e.Release.BootImages = &bootimages.Streams{Default: bootimages.Stream{"amd64": &bootimages.Images{AWS: map[string]string{"us-east-1": "ami-1"}}}}
	},
}

func TestPlatforms(t *testing.T) {
	for _, name := range platform.Supported() {
		if slices.Contains(slices.Collect(maps.Values(folders)), hyperv1.PlatformType(name)) {
			continue // TestGolden has what these need
		}
		t.Run(name, func(t *testing.T) {
			example := platformtest.NewExample()
			if prepare := examples[hyperv1.PlatformType(name)]; prepare != nil {
				prepare(&example)
			}
			platformtest.RunOn(t, func() platform.Platform {
				p, err := platform.For(hyperv1.PlatformType(name))
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return p
			}, example)
		})
	}
	t.Run("When a platform has no implementation it should name those that have", func(t *testing.T) {
		_, err := platform.For("Moon")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`platform type "Moon" is not supported by this operator: set spec.platform.type to one of`)))
	})
}
