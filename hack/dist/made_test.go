package main

import (
	"archive/tar"
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/image"
	"hcp.internal/platform/internal/image/bundle"
)

// made names the folder of a distribution; make dist-check does. Without it there is nothing to look at.
const made = "DIST_MADE"

// TestMade looks at a distribution as those do who get it: by its checksums, its inventory, its archives, and its images, here and in a registry.
func TestMade(t *testing.T) {
	dir := os.Getenv(made)
	if dir == "" {
		t.Skip(made + " names no distribution; make dist-check does")
	}
	t.Run("When checksums are compared each file should have its own", func(t *testing.T) { compareSums(t, dir) })
	t.Run("When the inventory is read it should be of version 2.3 and have Debian's packages of images", func(t *testing.T) { readInventory(t, dir) })
	t.Run("When archives are unpacked their programs should be for their system, and be of this version", func(t *testing.T) { lookIntoArchives(t, dir) })
	t.Run("When krew reads its manifests they should name the archives that are there", func(t *testing.T) { readKrew(t, dir) })
	images := filepath.Join(dir, "images")
	if _, err := os.Stat(images); err != nil {
		t.Skip("there are no images: make dist DIST_PARTS=images")
	}
	t.Run("When images are unpacked their programs should be for their architecture, with licences", func(t *testing.T) { lookIntoImages(t, images) })
	t.Run("When images are pushed a registry should have them for each architecture", func(t *testing.T) { pushImages(t, images) })
}

func compareSums(t *testing.T, dir string) {
	t.Helper()
	g := NewWithT(t)
	raw, err := os.ReadFile(filepath.Join(dir, sums))
	g.Expect(err).NotTo(HaveOccurred())
	var have []string
	for line := range strings.Lines(string(raw)) {
		sum, file, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		g.Expect(sumOf(filepath.Join(dir, filepath.FromSlash(file)))).To(Equal(sum), file)
		have = append(have, file)
	}
	g.Expect(have).NotTo(BeEmpty())
	g.Expect(have).To(Equal(listed(dir)), "every file, and none that is gone")
	t.Logf("%d files", len(have))
}

func readInventory(t *testing.T, dir string) {
	t.Helper()
	g := NewWithT(t)
	raw, err := os.ReadFile(filepath.Join(dir, "sbom.spdx.json"))
	if err != nil {
		t.Skip("there is no inventory: make dist DIST_PARTS=sbom")
	}
	var doc struct {
		Version  string `json:"spdxVersion"`
		Packages []struct {
			Refs []struct {
				Locator string `json:"referenceLocator"`
			} `json:"externalRefs"`
		} `json:"packages"`
	}
	g.Expect(json.Unmarshal(raw, &doc)).To(Succeed())
	g.Expect(doc.Version).To(Equal("SPDX-2.3"))
	kinds := map[string]int{}
	for _, p := range doc.Packages {
		for _, ref := range p.Refs {
			kind, _, _ := strings.Cut(ref.Locator, "/")
			kinds[kind]++
		}
	}
	g.Expect(kinds).To(And(HaveKey("pkg:golang"), HaveKey("pkg:npm")))
	if _, err := os.Stat(filepath.Join(dir, "images")); err == nil {
		g.Expect(kinds).To(HaveKey("pkg:deb"))
	}
	t.Logf("%d packages: %v", len(doc.Packages), kinds)
}

// lookIntoImages opens every image of the layout, whose blobs it compares with their names.
func lookIntoImages(t *testing.T, dir string) {
	t.Helper()
	g := NewWithT(t)
	b, err := bundle.Open(dir)
	g.Expect(err).NotTo(HaveOccurred())
	defer b.Close()
	root, err := layout.ImageIndexFromPath(dir)
	g.Expect(err).NotTo(HaveOccurred())
	for _, e := range b.Entries {
		if e.Kind == bundle.Chart {
			continue
		}
		of, err := root.ImageIndex(e.Digest)
		g.Expect(err).NotTo(HaveOccurred(), e.Name())
		platforms, err := of.IndexManifest()
		g.Expect(err).NotTo(HaveOccurred(), e.Name())
		for _, m := range platforms.Manifests {
			img, err := of.Image(m.Digest)
			g.Expect(err).NotTo(HaveOccurred(), e.Name())
			config, err := img.ConfigFile()
			g.Expect(err).NotTo(HaveOccurred(), e.Name())
			g.Expect(config.OS+"/"+config.Architecture).To(Equal(m.Platform.String()), e.Name())
			g.Expect(image.CheckPrograms(img)).To(Succeed(), "%s for %s", e.Name(), m.Platform)
			files, bytes := filesOf(t, img)
			if e.Kind != bundle.Release { // which is a list alone
				g.Expect(files).To(ContainElements("/usr/share/doc/hypershift/LICENSE", "/usr/share/doc/hypershift/NOTICE", "/usr/share/doc/hypershift/THIRD_PARTY_LICENSES"), e.Name())
			}
			t.Logf("%s for %s: %d files, %d MB unpacked", e.Name(), m.Platform, len(files), bytes/1_000_000)
		}
		t.Logf("%s for %s: %d MB", e.Name(), strings.Join(e.Platforms, ", "), e.Bytes/1_000_000)
	}
}

// filesOf are the paths of an image's files, and how much they hold together.
func filesOf(t *testing.T, img v1.Image) (names []string, bytes int64) {
	t.Helper()
	r := mutate.Extract(img)
	defer r.Close()
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return names, bytes
		}
		if err != nil {
			t.Fatal(err)
		}
		names, bytes = append(names, path.Clean("/"+h.Name)), bytes+h.Size
	}
}

// pushImages brings everything to a registry on disk, and looks each image up for each architecture, as a node does that pulls it.
func pushImages(t *testing.T, dir string) {
	t.Helper()
	g := NewWithT(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithBlobHandler(registry.NewDiskBlobHandler(t.TempDir()))))
	t.Cleanup(server.Close)
	r := bundle.Registry{Prefix: strings.TrimPrefix(server.URL, "http://") + "/team", PlainHTTP: true}
	b, err := bundle.Open(dir)
	g.Expect(err).NotTo(HaveOccurred())
	defer b.Close()
	entries, err := bundle.Select(b.Entries)
	g.Expect(err).NotTo(HaveOccurred())
	for _, e := range entries {
		_, err := b.Push(t.Context(), r, e, func(int64) {})
		g.Expect(err).NotTo(HaveOccurred(), e.Name())
	}
	for _, e := range entries {
		g.Expect(b.Verify(t.Context(), r, e)).To(Succeed(), e.Name())
		for _, platform := range e.Platforms {
			want, err := v1.ParsePlatform(platform)
			g.Expect(err).NotTo(HaveOccurred())
			ref, err := name.ParseReference(r.Reference(e), name.Insecure)
			g.Expect(err).NotTo(HaveOccurred())
			img, err := remote.Image(ref, remote.WithPlatform(*want), remote.WithContext(t.Context()))
			g.Expect(err).NotTo(HaveOccurred(), "%s for %s", e.Name(), platform)
			config, err := img.ConfigFile()
			g.Expect(err).NotTo(HaveOccurred(), e.Name())
			g.Expect(config.Architecture).To(Equal(want.Architecture), e.Name())
		}
	}
	t.Logf("%d entries were pushed, verified, and found for each architecture", len(entries))
}
