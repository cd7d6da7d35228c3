package platform_test

import (
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/platform/platformtest"
)

func TestPlatforms(t *testing.T) {
	for _, name := range platform.Supported() {
		t.Run(name, func(t *testing.T) {
			platformtest.Run(t, func() platform.Platform {
				p, err := platform.For(hyperv1.PlatformType(name))
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return p
			})
		})
	}
	t.Run("When a platform has no implementation it should name those that have", func(t *testing.T) {
		_, err := platform.For(hyperv1.AWSPlatform)
		NewWithT(t).Expect(err).To(MatchError(`platform type "AWS" is not supported by this operator: set spec.platform.type to one of None`))
	})
}
