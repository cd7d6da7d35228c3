package payload

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/release/releasetest"
	"hcp.internal/platform/test/standin/programs"
)

// settings are of programs that are no programs, which is enough to build images.
func settings(t *testing.T, registry *releasetest.Registry) Settings {
	t.Helper()
	dir := t.TempDir()
	program := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return Settings{
		Repository: registry.Host + "/standin", Version: "4.22.0", Kubernetes: "1.36.3", Standin: program("standin"), Kube: program("kube"), Kubectl: program("kubectl"),
		CABundle: []byte("ca"), Own: map[string]string{"hypershift": registry.Host + "/ours@sha256:" + strings.Repeat("1", 64)},
	}
}

func TestPush(t *testing.T) {
	registry := releasetest.New(t)
	t.Run("When a payload is pushed it should be read as one of OpenShift", func(t *testing.T) {
		g := NewWithT(t)
		s := settings(t, registry)
		ref, err := Push(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(ref).To(Equal(registry.Host + "/standin/release:4.22.0"))
		got, err := release.NewRegistryProvider(release.Options{}).Lookup(t.Context(), ref, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Kubernetes).To(BeFalse())
		g.Expect(got.Version).To(Equal("4.22.0"))
		g.Expect(got.Images).To(HaveKeyWithValue("hypershift", s.Own["hypershift"]))
		for _, tag := range Tags() {
			g.Expect(got.Images[tag]).To(HavePrefix(registry.Host + "/standin/" + tag + "@sha256:"))
		}
	})
	t.Run("When a tag is left out the payload should lack it", func(t *testing.T) {
		g := NewWithT(t)
		s := settings(t, registry)
		s.Version, s.Without = "4.22.1", []string{"oauth-server"}
		ref, err := Push(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		got, err := release.NewRegistryProvider(release.Options{}).Lookup(t.Context(), ref, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Images).NotTo(HaveKey("oauth-server"))
	})
}

func TestTags(t *testing.T) {
	g := NewWithT(t)
	for _, p := range programs.Table {
		g.Expect(Tags()).To(ContainElement(p.Image), "When a program is in the table its image should be in the payload")
	}
	g.Expect(slices.IsSorted(Tags())).To(BeTrue())
}

func TestManifests(t *testing.T) {
	g := NewWithT(t)
	files, err := releaseFiles("4.22.0")
	g.Expect(err).NotTo(HaveOccurred())
	seen := map[string]bool{}
	for _, f := range files {
		g.Expect(seen).NotTo(HaveKey(f.Path), "When manifests are written each should have a file of its own")
		seen[f.Path] = true
	}
}
