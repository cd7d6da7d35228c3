package packagecontroller_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/oci/rewrite"
	"hcp.internal/platform/internal/packages/control/manager"
	"hcp.internal/platform/internal/packages/control/packagecontroller"
)

func TestRewrite(t *testing.T) {
	t.Run("When overrides are written in any order it should keep one, which the hash of a package goes through", func(t *testing.T) {
		g := NewWithT(t)
		got, err := packagecontroller.Rewrite(manager.Options{ImagePrefixOverrides: "a=1,aaa=3,bb=2,aa=2"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Prefixes).To(Equal([]rewrite.Override{{Source: "aaa", To: "3"}, {Source: "bb", To: "2"}, {Source: "aa", To: "2"}, {Source: "a", To: "1"}}))
	})
	t.Run("When a flag can't be read it should name it", func(t *testing.T) {
		g := NewWithT(t)
		_, err := packagecontroller.Rewrite(manager.Options{ImagePrefixOverrides: "a"})
		g.Expect(err).To(MatchError(HavePrefix("--image-prefix-overrides: ")))
		_, err = packagecontroller.Rewrite(manager.Options{RegistryHostOverrides: "a"})
		g.Expect(err).To(MatchError(HavePrefix("--registry-host-overrides: ")))
	})
}
