package olm

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

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

func TestPinned(t *testing.T) {
	const name = "redhat-operators-catalog"
	running := func(image string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "registry", Image: image}}
		return d
	}
	found := map[string]component.CatalogImage{"redhat-operators": {Image: "a.example.com:5000/redhat-operator-index:v4.20", Digest: "sha256:aa"}}
	for name, tc := range map[string]struct {
		known     map[string]component.CatalogImage
		live      *appsv1.Deployment
		want, err string
	}{
		"When nobody has looked it should be the tag":               {want: "registry.redhat.io/redhat/redhat-operator-index:v4.20"},
		"When the registry has answered it should be the digest":    {known: found, live: running("old@sha256:bb"), want: "a.example.com:5000/redhat-operator-index@sha256:aa"},
		"When it has not answered yet pods should keep their image": {known: map[string]component.CatalogImage{}, live: running("old@sha256:bb"), want: "old@sha256:bb"},
		"When there are no pods it should wait":                     {known: map[string]component.CatalogImage{}, err: "waiting for the registry"},
		"When pods run a tag it should wait for the digest":         {known: map[string]component.CatalogImage{}, live: running("old:v1"), err: "waiting for the registry"},
		"When the registry refuses it should say so":                {known: map[string]component.CatalogImage{"redhat-operators": {Problem: errors.New("access denied")}}, err: "looking for the image of catalog redhat-operators: access denied"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			builder := fake.NewClientBuilder()
			if tc.live != nil {
				builder = builder.WithObjects(tc.live)
			}
			ctx := component.WorkloadContext{Context: t.Context(), Reader: builder.Build(), HCP: &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}},
				UserRelease: &release.Release{Version: "4.20.3"}, Catalogs: tc.known}
			got, err := redhat.pinned(ctx, "redhat-operators-catalog")
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestWantedImages(t *testing.T) {
	hcp := func(placement hyperv1.OLMCatalogPlacement, annotations map[string]string) component.WorkloadContext {
		return component.WorkloadContext{HCP: &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Spec: hyperv1.HostedControlPlaneSpec{OLMCatalogPlacement: placement}},
			UserRelease: &release.Release{Version: "4.20.3"}}
	}
	t.Run("When catalogs run beside the control plane their images should be looked for, unless the user names them", func(t *testing.T) {
		g := NewWithT(t)
		images, err := Wanted(hcp(hyperv1.ManagementOLMCatalogPlacement, nil))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(images).To(HaveLen(3))
		g.Expect(images["certified-operators"]).To(HaveLen(4))
		g.Expect(Wanted(hcp(hyperv1.GuestOLMCatalogPlacement, nil))).To(BeEmpty())
		const image = "a@sha256:aa"
		g.Expect(Wanted(hcp(hyperv1.ManagementOLMCatalogPlacement, map[string]string{redhat.annotation: image, community.annotation: image, certified.annotation: image}))).To(BeEmpty())
	})
}
