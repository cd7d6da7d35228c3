package release

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// payload is an image-references file of tags, each "name version,…" or "name version,… | name to show,…".
func payload(tags ...string) []byte {
	var list []string
	for _, tag := range tags {
		name, declared, _ := strings.Cut(tag, " ")
		versions, display, _ := strings.Cut(declared, " | ")
		list = append(list, fmt.Sprintf(`{"name": %q, "annotations": {%q: %q, %q: %q}, "from": {"kind": "DockerImage", "name": "quay.io/a/b@sha256:%s"}}`,
			name, buildVersionsAnnotation, versions, displayNamesAnnotation, display, name))
	}
	return fmt.Appendf(nil, `{"kind": "ImageStream", "metadata": {"name": "4.22.1"}, "spec": {"tags": [%s]}}`, strings.Join(list, ","))
}

func TestReferences(t *testing.T) {
	for name, tc := range map[string]struct {
		tags []string
		want map[string]string
		err  string
	}{
		"When tags declare versions they should be kept, and that of the release": {
			tags: []string{"hyperkube kubernetes=1.35.2+abc", "etcd etcd=3.6.8"},
			want: map[string]string{"kubernetes": "1.35.2", "etcd": "3.6.8", "release": "4.22.1"},
		},
		"When two tags agree it should be fine": {
			tags: []string{"a kubernetes=1.35.2", "b kubernetes=1.35.2 | kubernetes=Kubernetes"}, want: map[string]string{"kubernetes": "1.35.2", "release": "4.22.1"},
		},
		"When two tags differ it should name both": {
			tags: []string{"a kubernetes=1.35.2", "b kubernetes=1.35.3"}, err: "tags a and b declare different versions of kubernetes: 1.35.2 and 1.35.3",
		},
		"When the operating system differs the lowest should count": {
			tags: []string{"a machine-os=9.6.2", "b machine-os=10.0.1"}, want: map[string]string{"machine-os": "10.0.1", "release": "4.22.1"},
		},
		"When kubectl is in an image that isn't for users it should not count": {
			tags: []string{"tools kubectl=1.34.0", "cli kubectl=1.35.2"}, want: map[string]string{"kubectl": "1.35.2", "release": "4.22.1"},
		},
		"When a version is none it should say of what":           {tags: []string{"a kubernetes=new"}, err: "tag a declares a version of kubernetes that is none"},
		"When a name is none it should say so":                   {tags: []string{"a Kube=1.2.3"}, err: `a version of "Kube"`},
		"When a name to show has other letters it should refuse": {tags: []string{"a etcd=3.6.8 | kubernetes=<b>"}, err: "a name to show"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, err := parseReferences(payload(tc.tags...))
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				g.Expect(err).To(MatchError(ErrNotARelease))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(r.ComponentVersions).To(Equal(tc.want))
		})
	}
	t.Run("When a tag comes twice the later should win, as overrides rely on it", func(t *testing.T) {
		g := NewWithT(t)
		r, err := parseReferences([]byte(`{"kind":"ImageStream","metadata":{"name":"4.22.1"},"spec":{"tags":[
			{"name":"etcd","from":{"name":"quay.io/a:1"}},{"name":"etcd","from":{"name":"quay.io/a:2"}}]}}`))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(r.Images).To(Equal(map[string]string{"etcd": "quay.io/a:2"}))
	})
}
