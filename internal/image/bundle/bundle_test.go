package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/image"
)

// make2 writes a bundle with two releases of two platforms, whose parts are small. Another edition has other programs.
func make2(t *testing.T, dir string, edition ...string) {
	t.Helper()
	g := NewWithT(t)
	w, err := NewWriter(dir)
	g.Expect(err).NotTo(HaveOccurred())
	both := func(build func(arch string) (v1.Image, error)) v1.Descriptor {
		var images []v1.Descriptor
		for _, arch := range []string{"arm64", "amd64"} {
			img, err := build(arch)
			g.Expect(err).NotTo(HaveOccurred())
			img, err = image.ForArchitecture(img, arch)
			g.Expect(err).NotTo(HaveOccurred())
			d, err := w.Image(img)
			g.Expect(err).NotTo(HaveOccurred())
			images = append(images, d)
		}
		d, err := w.Index(images...)
		g.Expect(err).NotTo(HaveOccurred())
		return d
	}
	program := func(name, repository, tag string, kind Kind) v1.Descriptor {
		d := both(func(arch string) (v1.Image, error) {
			l, err := image.NewLayer(image.File{Path: "/" + name, Data: []byte(strings.Repeat(name+arch+strings.Join(edition, ""), 1000))})
			g.Expect(err).NotTo(HaveOccurred())
			return image.New(image.Config{Entrypoint: []string{"/" + name}}, l)
		})
		w.Add(Entry{Repository: repository, Tag: tag, Kind: kind}, d)
		return d
	}
	at := func(repository string, d v1.Descriptor) string {
		return Placeholder + "/" + repository + "@" + d.Digest.String()
	}
	operators := program("hypershift", "hypershift/hypershift", "1.0.0", Operator)
	dns := program("coredns", "hypershift/coredns", "1.0.0", Part)
	for _, version := range []string{"1.35.4", "1.36.3"} {
		kube := program("kube"+version, "hypershift/kubernetes", version, Part)
		tags := image.ReleaseImages{Kubernetes: at("hypershift/kubernetes", kube), CoreDNS: at("hypershift/coredns", dns), Platform: at("hypershift/hypershift", operators)}.Tags()
		d := both(func(string) (v1.Image, error) { return image.Release(version, tags) })
		w.Add(Entry{Repository: "hypershift/release", Tag: version, Kind: Release, Release: version, Needs: []v1.Hash{kube.Digest, dns.Digest, operators.Digest}}, d)
	}
	d, err := w.Chart([]byte(`{"name":"x","version":"1.0.0"}`), chart(t, "image: "+Placeholder+"/hypershift/hypershift:1.0.0\n"))
	g.Expect(err).NotTo(HaveOccurred())
	w.Add(Entry{Repository: "hypershift/charts/x", Tag: "1.0.0", Kind: Chart}, d)
	g.Expect(w.Close()).To(Succeed())
}

func chart(t *testing.T, values string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	tw := tar.NewWriter(z)
	for _, f := range []struct{ name, content string }{{"x/Chart.yaml", "name: x\n"}, {"x/values.yaml", values}} {
		if err := tw.WriteHeader(header(f.name, int64(len(f.content)))); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tw, f.content); err != nil {
			t.Fatal(err)
		}
	}
	if tw.Close() != nil || z.Close() != nil {
		t.Fatal("closing")
	}
	return out.Bytes()
}

func names(entries []Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestBundle(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "images")
	make2(t, dir)
	b, err := Open(dir)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = b.Close() })

	t.Run("When a bundle is made twice it should be the same, byte by byte", func(t *testing.T) {
		g := NewWithT(t)
		again := filepath.Join(t.TempDir(), "images")
		make2(t, again)
		g.Expect(content(t, again)).To(Equal(content(t, dir)))
	})
	t.Run("When a release is selected it should come with what it needs, and behind it", func(t *testing.T) {
		g := NewWithT(t)
		got, err := Select(b.Entries, "1.36")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(names(got)).To(Equal([]string{"hypershift/coredns:1.0.0", "hypershift/kubernetes:1.36.3", "hypershift/hypershift:1.0.0", "hypershift/release:1.36.3", "hypershift/charts/x:1.0.0"}))
		all, err := Select(b.Entries)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(all).To(HaveLen(len(b.Entries)))
		_, err = Select(b.Entries, "1.3")
		g.Expect(err).To(MatchError(ContainSubstring("it has 1.35.4, 1.36.3")))
	})
	t.Run("When a selection is saved the file should be a bundle of just that, the same each time", func(t *testing.T) {
		g := NewWithT(t)
		selected, err := Select(b.Entries, "1.35.4")
		g.Expect(err).NotTo(HaveOccurred())
		var first, second bytes.Buffer
		g.Expect(b.Save(&first, selected)).To(Succeed())
		g.Expect(b.Save(&second, selected)).To(Succeed())
		g.Expect(first.Bytes()).To(Equal(second.Bytes()))
		file := filepath.Join(t.TempDir(), "bundle.tar")
		g.Expect(os.WriteFile(file, first.Bytes(), 0o600)).To(Succeed())
		saved, err := Open(file)
		g.Expect(err).NotTo(HaveOccurred())
		defer saved.Close()
		g.Expect(names(saved.Entries)).To(ConsistOf(names(selected)))
		g.Expect(saved.Entries[0].Bytes).To(BeNumerically(">", 0))
	})
	t.Run("When a blob is damaged it should say so and not pass it on", func(t *testing.T) {
		g := NewWithT(t)
		broken := filepath.Join(t.TempDir(), "images")
		make2(t, broken)
		bad, err := Open(broken)
		g.Expect(err).NotTo(HaveOccurred())
		defer bad.Close()
		d := bad.Entries[slices.IndexFunc(bad.Entries, func(e Entry) bool { return e.Kind == Operator })].descriptor
		idx, err := bad.index(d)
		g.Expect(err).NotTo(HaveOccurred())
		m, err := bad.manifest(idx.parsed.Manifests[0])
		g.Expect(err).NotTo(HaveOccurred())
		layer := m.parsed.Layers[0]
		g.Expect(os.WriteFile(filepath.Join(broken, blobPath(layer.Digest)), bytes.Repeat([]byte("x"), int(layer.Size)), 0o600)).To(Succeed())
		g.Expect(bad.Save(io.Discard, bad.Entries)).To(MatchError(ContainSubstring("is damaged")))
	})
	t.Run("When something else is opened it should say what to name", func(t *testing.T) {
		g := NewWithT(t)
		_, err := Open(t.TempDir())
		g.Expect(err).To(MatchError(ContainSubstring("hypershift images save")))
		file := filepath.Join(t.TempDir(), "x")
		g.Expect(os.WriteFile(file, []byte("no tar file"), 0o600)).To(Succeed())
		_, err = Open(file)
		g.Expect(err).To(HaveOccurred())
	})
}

// content are all files of a folder.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestPush(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "images")
	make2(t, dir)
	b, err := Open(dir)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = b.Close() })
	var uploads, limit atomic.Int64
	limit.Store(1 << 30)
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch && uploads.Add(1) > limit.Load() {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	reg := Registry{Prefix: strings.TrimPrefix(server.URL, "http://") + "/team"}
	g.Expect(reg.Check()).To(Succeed())
	all, err := Select(b.Entries)
	g.Expect(err).NotTo(HaveOccurred())
	push := func(ctx context.Context) (sent int, err error) {
		for _, e := range all {
			p, err := b.Push(ctx, reg, e, nil)
			if err != nil {
				return sent, err
			}
			if !p.There {
				sent++
			}
		}
		return sent, nil
	}

	t.Run("When nothing was pushed verify should name what is missing", func(t *testing.T) {
		NewWithT(t).Expect(b.Verify(t.Context(), reg, all[0])).To(MatchError(ContainSubstring("is missing")))
	})
	t.Run("When a push is refused in the middle the next one should send what is left only", func(t *testing.T) {
		g := NewWithT(t)
		limit.Store(5)
		_, err := push(t.Context())
		g.Expect(err).To(MatchError(ContainSubstring("log in to the registry")))
		uploads.Store(0)
		limit.Store(1 << 30)
		_, err = push(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		blobs := map[v1.Hash]bool{}
		for _, e := range all {
			below, _, err := b.reach(e.descriptor)
			g.Expect(err).NotTo(HaveOccurred())
			for _, d := range below {
				blobs[d.Digest] = !d.MediaType.IsIndex() && !d.MediaType.IsImage()
			}
		}
		g.Expect(uploads.Load()).To(BeNumerically("<", len(blobs)+4), "of the blobs only those that were not there, and those of releases")
	})
	t.Run("When everything is there nothing should be sent", func(t *testing.T) {
		g := NewWithT(t)
		uploads.Store(0)
		sent, err := push(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(sent).To(BeZero())
		g.Expect(uploads.Load()).To(BeZero())
		for _, e := range all {
			g.Expect(b.Verify(t.Context(), reg, e)).To(Succeed(), e.Name())
		}
	})
	t.Run("When a release is read from the registry it should name images of that registry, which are there", func(t *testing.T) {
		g := NewWithT(t)
		tags, err := image.PublishedRelease(t.Context(), reg.Prefix+"/hypershift/release:1.36.3")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(tags).To(HaveKey("etcd"))
		for tag, ref := range tags {
			g.Expect(ref).To(HavePrefix(reg.Prefix+"/hypershift/"), tag)
			parsed, err := name.ParseReference(ref)
			g.Expect(err).NotTo(HaveOccurred())
			_, err = remote.Head(parsed)
			g.Expect(err).NotTo(HaveOccurred(), ref)
		}
	})
	t.Run("When the chart is read from the registry its values should name that registry", func(t *testing.T) {
		g := NewWithT(t)
		parsed, err := name.ParseReference(reg.Prefix + "/hypershift/charts/x:1.0.0")
		g.Expect(err).NotTo(HaveOccurred())
		img, err := remote.Image(parsed)
		g.Expect(err).NotTo(HaveOccurred())
		layers, err := img.Layers()
		g.Expect(err).NotTo(HaveOccurred())
		r, err := layers[0].Compressed()
		g.Expect(err).NotTo(HaveOccurred())
		defer r.Close()
		raw, err := io.ReadAll(r)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(raw).To(Equal(chart(t, "image: "+reg.Prefix+"/hypershift/hypershift:1.0.0\n")))
	})
	t.Run("When the registry has a release with other content that one should stay, and the new one be beside it", func(t *testing.T) {
		g := NewWithT(t)
		const released = "/hypershift/release:1.36.3"
		before, err := image.PublishedRelease(t.Context(), reg.Prefix+released)
		g.Expect(err).NotTo(HaveOccurred())
		next := filepath.Join(t.TempDir(), "images")
		make2(t, next, "next")
		b, err := Open(next)
		g.Expect(err).NotTo(HaveOccurred())
		defer b.Close()
		entries, err := Select(b.Entries, "1.36")
		g.Expect(err).NotTo(HaveOccurred())
		for _, again := range []bool{false, true} {
			for _, e := range entries {
				p, err := b.Push(t.Context(), reg, e, nil)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(p.Beside).To(Equal(e.Kind == Release), e.Name())
				if e.Kind == Release {
					g.Expect(p.There).To(Equal(again))
					digest, err := b.DigestIn(reg, e)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(p.Reference).To(Equal(digest))
					tags, err := image.PublishedRelease(t.Context(), reg.Reference(p.Entry))
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(tags).NotTo(Equal(before))
				}
				g.Expect(b.Verify(t.Context(), reg, e)).To(Succeed(), e.Name())
			}
			g.Expect(image.PublishedRelease(t.Context(), reg.Prefix+released)).To(Equal(before), "hosted clusters run it")
		}
		replacing := reg
		replacing.ReplaceReleases = true
		for _, e := range entries {
			_, err := b.Push(t.Context(), replacing, e, nil)
			g.Expect(err).NotTo(HaveOccurred())
		}
		g.Expect(image.PublishedRelease(t.Context(), reg.Prefix+released)).NotTo(Equal(before))
	})
	t.Run("When a tag was moved verify should say to what", func(t *testing.T) {
		g := NewWithT(t)
		other, err := name.ParseReference(reg.Prefix + "/" + all[0].Name())
		g.Expect(err).NotTo(HaveOccurred())
		img, err := image.New(image.Config{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(remote.Write(other, img)).To(Succeed())
		g.Expect(b.Verify(t.Context(), reg, all[0])).To(MatchError(ContainSubstring("want sha256:")))
	})
	for _, prefix := range []string{"", "https://registry.example.com", "registry.example.com/", "team", "registry.example.com/Team"} {
		t.Run("When the registry is "+prefix+" it should be refused", func(t *testing.T) {
			NewWithT(t).Expect(Registry{Prefix: prefix}.Check()).To(MatchError(ContainSubstring("no registry")))
		})
	}
}
