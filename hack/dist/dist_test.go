package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/contract/images"
	"hcp.internal/platform/internal/image"
	"hcp.internal/platform/internal/image/bundle"
	"hcp.internal/platform/internal/local/builds"
)

// cheap makes the parts that need no compiler, and archives of stand-ins, in a checkout at another place.
func cheap(t *testing.T, names string) string {
	t.Helper()
	g := NewWithT(t)
	root, out := t.TempDir(), filepath.Join(t.TempDir(), "dist")
	for _, name := range []string{"LICENSE", "NOTICE"} {
		data, err := os.ReadFile(filepath.Join("..", "..", name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(filepath.Join(root, name), data, 0o600)).To(Succeed())
	}
	d := &distribution{
		root: root, out: out, version: "1.2.3", url: "https://downloads.example.com/v1.2.3", operatorImage: "registry.example.com/hypershift/hypershift:1.2.3",
		created:  time.Unix(1_700_000_000, 0).UTC(),
		systems:  systems,
		licences: func(context.Context, ...string) ([]byte, error) { return []byte("licences"), nil },
	}
	g.Expect(os.MkdirAll(out, 0o755)).To(Succeed())
	for _, s := range systems {
		program, launcher := cli(root, s), plugin(root, s)
		for _, t := range []builds.Target{program, launcher} {
			g.Expect(os.MkdirAll(filepath.Join(root, buildFolder(s)), 0o755)).To(Succeed())
			g.Expect(os.WriteFile(filepath.Join(root, t.Out), []byte(t.Name), 0o755)).To(Succeed())
		}
		legal, err := d.legal(t.Context(), "cli")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.pack(d.archive(s), s, append(legal, d.programs(s, program, launcher)...))).To(Succeed())
	}
	chosen, err := choose(names)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(d.make(t.Context(), chosen, progress.NewDisplay(io.Discard, false, clock.RealClock{}))).To(Succeed())
	return out
}

// files are all of a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDistribution(t *testing.T) {
	const names = "chart,manifests,krew,checksums"
	dist := files(t, cheap(t, names))

	t.Run("When it is made twice in two folders it should be the same, byte by byte", func(t *testing.T) {
		NewWithT(t).Expect(files(t, cheap(t, names))).To(Equal(dist))
	})
	t.Run("When it is there it should have what users look for", func(t *testing.T) {
		g := NewWithT(t)
		for _, name := range []string{"hypershift-1.2.3-darwin-arm64.tar.gz", "hypershift-1.2.3-windows-amd64.zip", "hypershift-operator-1.2.3.tgz", "manifests/crds.yaml",
			"kustomize/kustomization.yaml", "krew/hypershift.yaml", "krew/package.yaml"} {
			g.Expect(dist).To(HaveKey(name))
			g.Expect(dist[sums]).To(ContainSubstring("  " + name + "\n"))
		}
		g.Expect(dist[sums]).NotTo(ContainSubstring(sums))
	})
	t.Run("When an archive is unpacked it should have the program, its other names and all licences, as files alone: krew refuses links", func(t *testing.T) {
		g := NewWithT(t)
		for _, s := range systems {
			want := []string{"-rw-r--r-- LICENSE", "-rw-r--r-- NOTICE", "-rw-r--r-- THIRD_PARTY_LICENSES"}
			for _, name := range []string{"hypershift", "kubectl-hypershift", "kubectl-package", "kubectl_complete-package"} {
				want = append(want, "-rwxr-xr-x "+name+s.exe())
			}
			archive := "hypershift-1.2.3-" + s.os + "-" + s.arch + s.suffix()
			g.Expect(unpacked(t, dist[archive])).To(Equal(want), archive)
		}
	})
	t.Run("When krew installs a plugin it should find the archive that the checksums list", func(t *testing.T) {
		g := NewWithT(t)
		var plugin struct {
			Spec struct {
				Platforms []struct{ URI, SHA256, Bin string }
			}
		}
		g.Expect(yaml.Unmarshal([]byte(dist["krew/package.yaml"]), &plugin)).To(Succeed())
		g.Expect(plugin.Spec.Platforms).To(HaveLen(len(systems)))
		for _, p := range plugin.Spec.Platforms {
			name := strings.TrimPrefix(p.URI, "https://downloads.example.com/v1.2.3/")
			g.Expect(dist).To(HaveKey(name))
			g.Expect(dist[sums]).To(ContainSubstring(p.SHA256 + "  " + name + "\n"))
			g.Expect(p.Bin).To(HavePrefix("kubectl-package"))
		}
	})
	t.Run("When the chart is carried to a registry its values should name that one", func(t *testing.T) {
		g := NewWithT(t)
		d := &distribution{root: filepath.Join("..", ".."), version: "1.2.3"}
		_, content, err := d.chart(d.placeholder())
		g.Expect(err).NotTo(HaveOccurred())
		carried, err := bundle.RewriteChart(bytes.NewReader(content), "registry.example.com/team")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(fileOf(t, carried, "hypershift-operator/values.yaml")).To(ContainSubstring(`image: "registry.example.com/team/hypershift/hypershift:1.2.3"`))
	})
}

// TestKustomize builds the base with the kustomize that kubectl has, as somebody does who keeps another registry's image in a repository.
func TestKustomize(t *testing.T) {
	t.Run("When the base is built with another image every Pod should have it, and no object be lost", func(t *testing.T) {
		g := NewWithT(t)
		out := cheap(t, "manifests")
		overlay := t.TempDir()
		base, err := filepath.Rel(overlay, filepath.Join(out, "kustomize"))
		g.Expect(err).NotTo(HaveOccurred())
		kustomization := "resources: [" + base + "]\nimages:\n- name: registry.example.com/hypershift/hypershift\n  newName: registry.test/team/hypershift\n  newTag: 4.5.6\n"
		g.Expect(os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(kustomization), 0o600)).To(Succeed())
		built, err := exec.CommandContext(t.Context(), filepath.Join("..", "..", "bin", "kubectl"), "kustomize", overlay).Output()
		g.Expect(err).NotTo(HaveOccurred(), "make kubernetes builds bin/kubectl")
		g.Expect(string(built)).To(ContainSubstring("image: registry.test/team/hypershift:4.5.6"))
		g.Expect(string(built)).NotTo(ContainSubstring("registry.example.com/hypershift/hypershift"))
		kinds := func(text string) int { return strings.Count("\n"+text, "\nkind: ") }
		all := files(t, filepath.Join(out, "manifests"))
		g.Expect(kinds(string(built))).To(Equal(kinds(all["crds.yaml"]) + kinds(all["operator.yaml"])))
	})
}

// unpacked are modes and names of what an archive has.
func unpacked(t *testing.T, archive string) []string {
	t.Helper()
	g := NewWithT(t)
	var found []string
	if z, err := zip.NewReader(strings.NewReader(archive), int64(len(archive))); err == nil {
		for _, f := range z.File {
			found = append(found, f.Mode().String()+" "+f.Name)
		}
		return found
	}
	z, err := gzip.NewReader(strings.NewReader(archive))
	g.Expect(err).NotTo(HaveOccurred())
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		g.Expect(err).NotTo(HaveOccurred())
		found = append(found, h.FileInfo().Mode().String()+" "+h.Name)
	}
}

func fileOf(t *testing.T, archive []byte, name string) string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if err != nil {
			t.Fatalf("looking for %s: %v", name, err)
		}
		if h.Name == name {
			data, err := io.ReadAll(tr)
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		}
	}
}

func TestChoose(t *testing.T) {
	g := NewWithT(t)
	g.Expect(choose("")).To(HaveLen(len(parts)))
	chosen, err := choose("checksums,chart")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(chosen[0].name).To(Equal("chart"), "in their order")
	some, err := chooseSystems("windows/arm64,linux/amd64")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(some).To(Equal([]system{{"windows", "arm64"}, {"linux", "amd64"}}))
	_, err = chooseSystems("plan9/amd64")
	g.Expect(err).To(MatchError(ContainSubstring("darwin/amd64, darwin/arm64, linux/amd64")))
	_, err = choose("charts")
	g.Expect(err).To(MatchError(ContainSubstring("archives, chart, manifests")))
}

func TestTargets(t *testing.T) {
	t.Run("When programs are built for an architecture each should have a place of its own", func(t *testing.T) {
		g := NewWithT(t)
		d := &distribution{root: filepath.Join("..", ".."), releases: builds.KnownReleases()}
		seen := map[string]bool{}
		for _, s := range []system{{"linux", "amd64"}, {"linux", "arm64"}} {
			for _, target := range d.targets(s) {
				g.Expect(target.Out).To(HavePrefix("bin/dist/linux_" + s.arch + "/"))
				g.Expect(target.Arch).To(Equal(s.arch))
				if !strings.HasSuffix(target.Out, "/") {
					g.Expect(seen).NotTo(HaveKey(target.Out))
				}
				seen[target.Out] = true
			}
		}
		g.Expect(seen).To(And(HaveKey("bin/dist/linux_arm64/capi-manager"), HaveKey("bin/dist/linux_amd64/kubernetes/v1.36.3/kube"), HaveKey("bin/dist/linux_amd64/coredns"), HaveKey("bin/dist/linux_arm64/hcp-karpenter")))
	})
}

// TestReleasesNameEverything looks at what releases of a distribution have that is no part of Kubernetes itself.
func TestReleasesNameEverything(t *testing.T) {
	t.Run("When images are packed a release should name Karpenter's, so that hosted clusters may have it", func(t *testing.T) {
		g := NewWithT(t)
		var all image.ReleaseImages
		d := &distribution{root: filepath.Join("..", ".."), version: "1.2.3"}
		for _, r := range d.repositories() {
			r.set(&all, r.name)
		}
		g.Expect(all.Tags()).To(HaveKeyWithValue(image.KarpenterTag, "hypershift/karpenter"))
		all.Kubernetes, all.KubernetesNode, all.LocalNode = "a", "b", "c" // which each release has of its own
		for i, fields := 0, reflect.ValueOf(all); i < fields.NumField(); i++ {
			g.Expect(fields.Field(i).String()).NotTo(BeEmpty(), fields.Type().Field(i).Name)
		}
	})
}

// TestImagesHaveLicences packs an image of a stand-in as makeImages does, and looks into what a registry would get.
func TestImagesHaveLicences(t *testing.T) {
	g := NewWithT(t)
	d := &distribution{
		root: filepath.Join("..", ".."), version: "1.2.3", created: time.Unix(1_700_000_000, 0).UTC(),
		licences: func(_ context.Context, programs ...string) ([]byte, error) {
			return []byte("licences of " + strings.Join(programs, " ")), nil
		},
	}
	dir := filepath.Join(t.TempDir(), "images")
	w, err := bundle.NewWriter(dir)
	g.Expect(err).NotTo(HaveOccurred())
	for _, r := range d.repositories() {
		r.build = func(onArch) (v1.Image, error) { return image.New(image.Config{Entrypoint: []string{"/program"}}) }
		_, err := d.add(t.Context(), w, r, []onArch{{arch: "amd64"}, {arch: "arm64"}})
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(w.Close()).To(Succeed())
	index, err := layout.ImageIndexFromPath(dir)
	g.Expect(err).NotTo(HaveOccurred())
	entries, err := index.IndexManifest()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(entries.Manifests).To(HaveLen(len(d.repositories())))
	for _, entry := range entries.Manifests {
		of, err := index.ImageIndex(entry.Digest)
		g.Expect(err).NotTo(HaveOccurred())
		platforms, err := of.IndexManifest()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(platforms.Manifests).To(HaveLen(2))
		for _, m := range platforms.Manifests {
			img, err := of.Image(m.Digest)
			g.Expect(err).NotTo(HaveOccurred())
			content := textsOf(t, img)
			g.Expect(content).To(HaveKeyWithValue("usr/share/doc/hypershift/LICENSE", ContainSubstring("Apache License")))
			g.Expect(content).To(HaveKey("usr/share/doc/hypershift/NOTICE"))
			g.Expect(content).To(HaveKeyWithValue("usr/share/doc/hypershift/THIRD_PARTY_LICENSES", HavePrefix("licences of ")))
			config, err := img.ConfigFile()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.Config.Labels).To(And(HaveKeyWithValue("org.opencontainers.image.licenses", "Apache-2.0"), HaveKey(images.LabelVersion)))
		}
	}
}

// TestImagesHavePrograms packs this test's own program for two architectures, of which it runs on one.
func TestImagesHavePrograms(t *testing.T) {
	t.Run("When a program is for another architecture than its image no image should be made", func(t *testing.T) {
		g := NewWithT(t)
		program, err := os.Executable()
		g.Expect(err).NotTo(HaveOccurred())
		pack := func(arch string) error {
			w, err := bundle.NewWriter(filepath.Join(t.TempDir(), "images"))
			g.Expect(err).NotTo(HaveOccurred())
			_, err = index(w, bundle.Entry{Repository: "program", Tag: "1"}, []onArch{{arch: arch}}, func(onArch) (v1.Image, error) {
				layer, err := image.NewLayer(image.File{Path: "/program", Source: program})
				if err != nil {
					return nil, err
				}
				return image.New(image.Config{Entrypoint: []string{"/program"}}, layer)
			})
			return err
		}
		other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
		g.Expect(pack(other)).To(MatchError(And(ContainSubstring("building program:1 for "+other), ContainSubstring("/program: the program is for EM_"))))
	})
}

// textsOf are the files of an image.
func textsOf(t *testing.T, img v1.Image) map[string]string {
	t.Helper()
	r := mutate.Extract(img)
	defer r.Close()
	out := map[string]string{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = string(data)
	}
}
