package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/release"
)

func TestWithMirrorsOf(t *testing.T) {
	hc := &hyperv1.HostedCluster{}
	var provider releases = release.NewRegistryProvider(release.Options{})
	t.Run("When a provider knows no mirrors it should be the same", func(t *testing.T) {
		other := release.Provider(release.ProviderFunc(nil))
		NewWithT(t).Expect(operator.WithMirrorsOf(other, hc)).To(BeAssignableToTypeOf(other))
	})
	t.Run("When a cluster names mirrors it should be another one", func(t *testing.T) {
		mirrored := hc.DeepCopy()
		mirrored.Spec.ImageContentSources = []hyperv1.ImageContentSource{{Source: "quay.io/a", Mirrors: []string{"mirror.example.com/a"}}}
		NewWithT(t).Expect(operator.WithMirrorsOf(provider, mirrored)).NotTo(BeIdenticalTo(provider))
	})
}
