package hostedcontrolplane

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/release"
)

// shelf is a registry: digests by image, and errors. An image that is not there is not found.
type shelf struct {
	digests map[string]string
	errs    map[string]error
	asked   []string
}

func (s *shelf) Inspect(_ context.Context, image string, _ []byte) (*release.Info, error) {
	s.asked = append(s.asked, image)
	if err := s.errs[image]; err != nil {
		return nil, &release.LookupError{Image: image, Kind: err}
	}
	if digest := s.digests[image]; digest != "" {
		return &release.Info{Digest: digest}, nil
	}
	return nil, &release.LookupError{Image: image, Kind: release.ErrNotFound}
}

func TestFindCatalog(t *testing.T) {
	images := []string{"a:v4.20", "b:v4.20", "a:v4.19"}
	for name, tc := range map[string]struct {
		shelf shelf
		want  component.CatalogImage
		says  string
		asked int
	}{
		"When the first is there it should be taken":                  {shelf: shelf{digests: map[string]string{"a:v4.20": "sha256:1"}}, want: component.CatalogImage{Image: "a:v4.20", Digest: "sha256:1"}, asked: 1},
		"When it is not there or refused the next should be tried":    {shelf: shelf{digests: map[string]string{"a:v4.19": "sha256:2"}, errs: map[string]error{"b:v4.20": release.ErrUnauthorized}}, want: component.CatalogImage{Image: "a:v4.19", Digest: "sha256:2"}, asked: 3},
		"When none is there it should say so of the first":            {says: "a:v4.20", asked: 3},
		"When the registry is down no older one should be taken":      {shelf: shelf{digests: map[string]string{"a:v4.19": "sha256:2"}, errs: map[string]error{"a:v4.20": release.ErrUnreachable}}, says: "unreachable", asked: 1},
		"When it takes its time it should be asked again later":       {shelf: shelf{errs: map[string]error{"a:v4.20": release.ErrPending}}, asked: 1},
		"When the second takes its time no third one should be taken": {shelf: shelf{digests: map[string]string{"a:v4.19": "sha256:2"}, errs: map[string]error{"b:v4.20": release.ErrPending}}, asked: 2},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := findCatalog(t.Context(), &tc.shelf, images, nil)
			g.Expect(tc.shelf.asked).To(HaveLen(tc.asked))
			if tc.says != "" {
				g.Expect(got.Problem).To(MatchError(ContainSubstring(tc.says)))
				return
			}
			g.Expect(got).To(Equal(tc.want))
		})
	}
}
