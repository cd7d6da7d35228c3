package olm

import (
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/release"
)

func TestSchedule(t *testing.T) {
	t.Run("When it is the same namespace it should be the same time", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(schedule("a")).To(Equal("37 1 * * *"))   // 97
		g.Expect(schedule("ab")).To(Equal("30 18 * * *")) // 97*256+98 = 24930
	})
}

func TestOverride(t *testing.T) {
	const image = "registry.example.com/catalog@sha256:aa"
	for name, tc := range map[string]struct {
		annotations map[string]string
		want, err   string
	}{
		"When no image is given it should be none": {},
		"When all are given it should be its own": {want: image, annotations: map[string]string{
			redhat.annotation: image, community.annotation: image + "b", certified.annotation: image + "c"}},
		"When one is missing it should name it":         {err: certified.annotation, annotations: map[string]string{redhat.annotation: image, community.annotation: image}},
		"When one is by tag it should ask for a digest": {err: "by digest", annotations: map[string]string{redhat.annotation: "registry.example.com/catalog:v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hcp := &hyperv1.HostedControlPlane{}
			hcp.Annotations = tc.annotations
			got, err := redhat.override(hcp)
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestIndex(t *testing.T) {
	for name, tc := range map[string]struct{ version, overrides, want, err string }{
		"When the release is older it should be its index":    {version: "4.20.3", want: "registry.redhat.io/redhat/redhat-operator-index:v4.20"},
		"When the release is newer it should be the newest":   {version: "5.1.0-ec.1", want: "registry.redhat.io/redhat/redhat-operator-index:v4.22"},
		"When the registry is replaced it should be there":    {version: "4.20.3", overrides: "registry.redhat.io=mirror.example.com", want: "mirror.example.com/redhat/redhat-operator-index:v4.20"},
		"When the repository is replaced it should be that":   {version: "4.20.3", overrides: "quay.io=x, registry.redhat.io/redhat=mirror.example.com/olm", want: "mirror.example.com/olm/redhat-operator-index:v4.20"},
		"When a replacement is none it should show how":       {version: "4.20.3", overrides: "registry.redhat.io", err: "registry.redhat.io=registry.example.com"},
		"When the version is none it should name the release": {version: "next", err: "major.minor"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ctx := component.WorkloadContext{HCP: &hyperv1.HostedControlPlane{}, UserRelease: &release.Release{Version: tc.version}}
			ctx.HCP.Annotations = map[string]string{hyperv1.OLMCatalogsISRegistryOverridesAnnotation: tc.overrides}
			got, err := redhat.index(ctx)
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}
