package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"hcp.internal/platform/internal/cli/install"
	"hcp.internal/platform/internal/contract/images"
	"hcp.internal/platform/internal/image"
	"hcp.internal/platform/internal/image/bundle"
	"hcp.internal/platform/internal/local/builds"
	"hcp.internal/platform/internal/local/debian"
)

// caBundle is where Debian keeps the public certificate authorities.
const caBundle = "/etc/ssl/certs/ca-certificates.crt"

// docs is where images have the licences of what they hold.
const docs = "/usr/share/doc/hypershift/"

// onArch is what images of one architecture are made of.
type onArch struct {
	arch          string
	dir           string // of the programs
	binaries      image.Binaries
	network, node []image.File // of Debian's packages
}

// repositories, and what is in them: images that releases name, but those of each Kubernetes version.
type repository struct {
	name, tag string
	kind      bundle.Kind
	programs  []string // whose licences it holds
	build     func(a onArch) (v1.Image, error)
	set       func(r *image.ReleaseImages, ref string)
}

func (d *distribution) repositories() []repository {
	return []repository{
		{operatorRepository, d.version, bundle.Operator, []string{"operators"}, func(a onArch) (v1.Image, error) { return image.Platform(a.binaries) },
			func(r *image.ReleaseImages, ref string) { r.Platform = ref }},
		{"hypershift/sidecar", d.version, bundle.Part, []string{"sidecar"}, func(a onArch) (v1.Image, error) { return image.Sidecar(a.binaries) },
			func(r *image.ReleaseImages, ref string) { r.Sidecar = ref }},
		{"hypershift/pause", d.version, bundle.Part, []string{"pause"}, func(a onArch) (v1.Image, error) { return image.Pause(a.binaries) },
			func(r *image.ReleaseImages, ref string) { r.Pause = ref }},
		{"hypershift/coredns", d.version, bundle.Part, []string{"coredns"}, func(a onArch) (v1.Image, error) { return image.CoreDNS(a.binaries) },
			func(r *image.ReleaseImages, ref string) { r.CoreDNS = ref }},
		{"hypershift/local-storage", d.version, bundle.Part, []string{"local-storage"}, func(a onArch) (v1.Image, error) { return image.LocalStorage(a.binaries) },
			func(r *image.ReleaseImages, ref string) { r.LocalStorage = ref }},
		{"hypershift/flannel", d.version, bundle.Part, []string{"flannel"}, func(a onArch) (v1.Image, error) { return image.Flannel(a.binaries, a.network) },
			func(r *image.ReleaseImages, ref string) { r.Flannel = ref }},
		{"hypershift/cluster-api", builds.ClusterAPIVersion, bundle.Part, []string{"cluster-api"}, func(a onArch) (v1.Image, error) {
			return image.ClusterAPI(filepath.Join(a.dir, "capi-manager"), a.binaries.CABundle)
		}, func(r *image.ReleaseImages, ref string) { r.ClusterAPI = ref }},
		{"hypershift/karpenter", d.version, bundle.Part, []string{"karpenter"}, func(a onArch) (v1.Image, error) {
			return image.Karpenter(filepath.Join(a.dir, path.Base(builds.KarpenterBinary)), a.binaries.CABundle)
		}, func(r *image.ReleaseImages, ref string) { r.Karpenter = ref }},
	}
}

// imageTargets are the programs of all images.
func (d *distribution) imageTargets() []builds.Target {
	var list []builds.Target
	for _, arch := range d.architectures {
		list = append(list, d.targets(system{"linux", arch})...)
	}
	return list
}

// makeImages packs images into a folder beside, which takes the place of the images of before when it is complete.
func (d *distribution) makeImages(ctx context.Context, say func(string, ...any)) (err error) {
	var all []onArch
	for _, arch := range d.architectures {
		a, err := d.prepare(ctx, say, arch)
		if err != nil {
			return err
		}
		all = append(all, a)
	}
	folder, unfinished := filepath.Join(d.out, "images"), filepath.Join(d.out, "images.unfinished")
	if err := os.RemoveAll(unfinished); err != nil { // of a run that was killed
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(unfinished))
		}
	}()
	if err := d.packImages(ctx, say, unfinished, all); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(folder), os.Rename(unfinished, folder))
}

// imagesOfRelease is how many images each release has of its own.
const imagesOfRelease = 4

func (d *distribution) packImages(ctx context.Context, say func(string, ...any), folder string, all []onArch) error {
	w, err := bundle.NewWriter(folder)
	if err != nil {
		return err
	}
	common := image.ReleaseImages{}
	var needs []v1.Hash
	number, total := 0, len(d.repositories())+imagesOfRelease*len(d.releases)
	packing := func(name string) {
		number++
		say("packing %s and its licences, image %d of %d", name, number, total)
	}
	for _, r := range d.repositories() {
		packing(r.name + ":" + r.tag)
		desc, err := d.add(ctx, w, r, all)
		if err != nil {
			return err
		}
		r.set(&common, reference(r.name, desc))
		needs = append(needs, desc.Digest)
	}
	for _, release := range d.releases {
		if err := d.addRelease(ctx, w, release, common, needs, all, packing); err != nil {
			return fmt.Errorf("release %s: %w", release, err)
		}
	}
	config, content, err := d.chart(d.placeholder())
	if err != nil {
		return err
	}
	desc, err := w.Chart(config, content)
	if err != nil {
		return err
	}
	w.Add(bundle.Entry{Repository: "hypershift/charts/" + install.ChartName, Tag: d.version, Kind: bundle.Chart}, desc)
	return w.Close()
}

func reference(repository string, d v1.Descriptor) string {
	return bundle.Placeholder + "/" + repository + "@" + d.Digest.String()
}

// prepare builds programs for an architecture, and unpacks what images need of Debian.
func (d *distribution) prepare(ctx context.Context, say func(string, ...any), arch string) (onArch, error) {
	s := system{"linux", arch}
	a := onArch{arch: arch, dir: filepath.Join(d.root, filepath.FromSlash(buildFolder(s)))}
	for _, t := range d.targets(s) {
		if err := d.build(ctx, say, t); err != nil {
			return a, err
		}
	}
	bin := func(name string) string { return filepath.Join(a.dir, name) }
	ca, err := os.ReadFile(caBundle)
	if err != nil {
		return a, fmt.Errorf("images hold the public certificate authorities of this machine: %w; install Debian's package ca-certificates", err)
	}
	a.binaries = image.Binaries{
		Hypershift: bin("hypershift"), Operators: bin("hcp-operators"), Cloud: bin("hcp-cloud"), Sidecar: bin("hcp-sidecar"),
		Pause: bin("pause"), CoreDNS: bin("coredns"), Flannel: bin("flannel"), LocalStorage: bin("local-storage"), CABundle: ca,
	}
	packages, err := d.debian(ctx, say, arch)
	if err != nil {
		return a, err
	}
	if a.network, err = debian.Files(packages["network"], skip); err != nil {
		return a, err
	}
	if a.node, err = debian.Files(packages["node"], skip); err != nil {
		return a, err
	}
	return a, nil
}

// debian are Debian's packages of images for an architecture, by what they are for.
func (d *distribution) debian(ctx context.Context, say func(string, ...any), arch string) (map[string][]debian.Package, error) {
	cache := &debian.Cache{Dir: filepath.Join(d.root, ".cache", "debian"), Arch: arch, Say: say}
	sets := map[string][]debian.Package{}
	for set, packages := range map[string][]string{"network": image.NetworkPackages, "node": image.NodePackages} {
		unpacked, err := cache.Get(ctx, set, packages)
		if err != nil {
			return nil, fmt.Errorf("fetching Debian's packages for %s: %w", arch, err)
		}
		sets[set] = unpacked
	}
	return sets, nil
}

// skip leaves out what images need not have. Under which terms others may have the rest is said in each package's copyright.
func skip(file string) bool {
	return image.Skip(file) && !(strings.HasPrefix(file, "/usr/share/doc/") && strings.HasSuffix(file, "/copyright"))
}

// targets are all programs of images, for an architecture.
func (d *distribution) targets(s system) []builds.Target {
	list := append(builds.Platform(d.root), builds.ClusterAPI(), builds.Karpenter())
	for _, release := range d.releases {
		for _, target := range []func(string) (builds.Target, error){builds.Kubernetes, builds.KubernetesNode} {
			t, err := target(release)
			if err != nil {
				t = builds.Target{Name: err.Error()} // which the build then says
			}
			list = append(list, t)
		}
	}
	for i := range list {
		t := &list[i]
		t.OS, t.Arch, t.Name = s.os, s.arch, t.Name+" for "+s.os+"/"+s.arch
		name := strings.TrimPrefix(strings.TrimPrefix(t.Out, "bin/"), "capi/"+builds.ClusterAPIVersion+"/")
		t.Out = buildFolder(s) + name
	}
	return list
}

// add puts an image for all architectures into the bundle.
func (d *distribution) add(ctx context.Context, w *bundle.Writer, r repository, all []onArch) (v1.Descriptor, error) {
	legal, err := d.legal(ctx, r.programs...)
	if err != nil {
		return v1.Descriptor{}, err
	}
	var files []image.File
	for _, f := range legal {
		files = append(files, image.File{Path: docs + f.name, Data: f.data, Source: f.source})
	}
	labels := map[string]string{
		images.LabelVersion: r.tag, "org.opencontainers.image.revision": builds.Commit(d.root), "org.opencontainers.image.title": r.name,
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
	return index(w, bundle.Entry{Repository: r.name, Tag: r.tag, Kind: r.kind}, all, func(a onArch) (v1.Image, error) {
		img, err := r.build(a)
		if err != nil {
			return nil, err
		}
		if img, err = image.WithFiles(img, files...); err != nil {
			return nil, err
		}
		return image.WithLabels(img, labels)
	})
}

// index puts an image of each architecture, and their index, into the bundle.
func index(w *bundle.Writer, e bundle.Entry, all []onArch, build func(onArch) (v1.Image, error)) (v1.Descriptor, error) {
	var images []v1.Descriptor
	for _, a := range all {
		img, err := build(a)
		if err == nil {
			img, err = image.ForArchitecture(img, a.arch)
		}
		if err == nil {
			err = image.CheckPrograms(img)
		}
		if err != nil {
			return v1.Descriptor{}, fmt.Errorf("building %s for %s: %w", e.Name(), a.arch, err)
		}
		d, err := w.Image(img)
		if err != nil {
			return v1.Descriptor{}, fmt.Errorf("packing %s for %s: %w", e.Name(), a.arch, err)
		}
		images = append(images, d)
	}
	d, err := w.Index(images...)
	if err == nil {
		w.Add(e, d)
	}
	return d, err
}

// addRelease puts the images of a Kubernetes version into the bundle, and the release image that names all.
func (d *distribution) addRelease(ctx context.Context, w *bundle.Writer, release string, tags image.ReleaseImages, needs []v1.Hash, all []onArch, packing func(name string)) error {
	licences := []string{"kubernetes"}
	if strings.HasPrefix(release, "1.35.") {
		licences = []string{"kubernetes-1.35"}
	}
	kube := func(a onArch) string { return filepath.Join(a.dir, "kubernetes", "v"+release, "kube") }
	node := func(a onArch) string { return filepath.Join(a.dir, "kubernetes", "v"+release, "node") }
	for _, r := range []repository{
		{"hypershift/kubernetes", release, bundle.Part, licences, func(a onArch) (v1.Image, error) { return image.Kubernetes(kube(a), a.binaries.CABundle) },
			func(r *image.ReleaseImages, ref string) { r.Kubernetes = ref }},
		{"hypershift/kubernetes-node", release, bundle.Part, licences, func(a onArch) (v1.Image, error) {
			return image.KubernetesNode(node(a), a.network, a.binaries.CABundle)
		}, func(r *image.ReleaseImages, ref string) { r.KubernetesNode = ref }},
		{"hypershift/node", release, bundle.Part, append([]string{"sidecar"}, licences...), func(a onArch) (v1.Image, error) {
			// No registry has plain HTTP here; the place is never asked.
			return image.Node(a.node, a.binaries.Sidecar, bundle.Placeholder, a.binaries.CABundle, image.Kubelet{Binary: node(a), Image: tags.KubernetesNode})
		}, func(r *image.ReleaseImages, ref string) { r.LocalNode = ref }},
	} {
		packing(r.name + ":" + r.tag)
		desc, err := d.add(ctx, w, r, all)
		if err != nil {
			return err
		}
		r.set(&tags, reference(r.name, desc))
		needs = append(needs[:len(needs):len(needs)], desc.Digest)
	}
	e := bundle.Entry{Repository: "hypershift/release", Tag: release, Kind: bundle.Release, Release: release, Needs: needs}
	packing(e.Name())
	_, err := index(w, e, all, func(onArch) (v1.Image, error) { return image.Release(release, tags.Tags()) })
	return err
}
