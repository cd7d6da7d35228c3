package payload

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestCatalogImages(t *testing.T) {
	for name, tc := range map[string]struct {
		version, overrides string
		want               []string
		err                string
	}{
		"When nothing is replaced it should be Red Hat's, back to three minors before": {version: "4.20.3", want: []string{
			"registry.redhat.io/redhat/redhat-operator-index:v4.20", "registry.redhat.io/redhat/redhat-operator-index:v4.19",
			"registry.redhat.io/redhat/redhat-operator-index:v4.18", "registry.redhat.io/redhat/redhat-operator-index:v4.17"}},
		"When the release is newer than any catalog it should begin with the newest": {version: "5.3.0", overrides: "registry.redhat.io/redhat=a.example.com/x", want: []string{
			"a.example.com/x/redhat-operator-index:v4.22", "a.example.com/x/redhat-operator-index:v4.21", "a.example.com/x/redhat-operator-index:v4.20", "a.example.com/x/redhat-operator-index:v4.19"}},
		"When a registry is replaced it should be tried with and without the folder": {version: "4.0.1", overrides: "registry.redhat.io=a.example.com/", want: []string{
			"a.example.com/redhat/redhat-operator-index:v4.0", "a.example.com/redhat-operator-index:v4.0"}},
		"When the repository has several replacements they should be tried in turn": {version: "4.0.1", overrides: "registry.redhat.io/redhat=a,registry.redhat.io/redhat=b, registry.redhat.io=c", want: []string{
			"a/redhat-operator-index:v4.0", "b/redhat-operator-index:v4.0"}},
		"When a replacement is none it should show how": {version: "4.20.3", overrides: "registry.redhat.io", err: "registry.redhat.io=registry.example.com"},
		"When the version is none it should say so":     {version: "next", err: "major.minor"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := CatalogImages("redhat-operators", tc.version, tc.overrides, "note")
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}
