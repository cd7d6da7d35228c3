package image

import (
	"archive/tar"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
)

func write(t *testing.T, path, content string, at time.Time) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	g.Expect(os.Chtimes(path, at, at)).To(Succeed())
}

func programs(t *testing.T, at time.Time) Binaries {
	t.Helper()
	dir := t.TempDir()
	b := Binaries{CABundle: []byte("ca")}
	for n, p := range map[string]*string{"hypershift": &b.Hypershift, "hcp-operators": &b.Operators, "hcp-cloud": &b.Cloud, "hcp-sidecar": &b.Sidecar, "pause": &b.Pause, "coredns": &b.CoreDNS} {
		*p = filepath.Join(dir, n)
		write(t, *p, "program "+n, at)
	}
	return b
}

func digest(t *testing.T, img v1.Image, err error) string {
	t.Helper()
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	d, err := img.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	return d.String()
}

func TestDeterminism(t *testing.T) {
	for what, build := range map[string]func(Binaries) (v1.Image, error){
		"our image":  Platform,
		"CoreDNS":    CoreDNS,
		"pause":      Pause,
		"Kubernetes": func(b Binaries) (v1.Image, error) { return Kubernetes(b.Pause, b.CABundle) },
		"a release": func(Binaries) (v1.Image, error) {
			return Release("1.36.3", map[string]string{"etcd": "r/a@sha256:1", "pause": "r/b@sha256:2", "kubelet": "r/c@sha256:3"})
		},
	} {
		t.Run("When "+what+" is built twice from files of other times and folders it should have the same digest", func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			first, err1 := build(programs(t, time.Unix(1, 0)))
			second, err2 := build(programs(t, time.Unix(2e9, 0)))
			g.Expect(digest(t, first, err1)).To(Equal(digest(t, second, err2)))
		})
	}
}

func TestLayer(t *testing.T) {
	g := NewWithT(t)
	l, err := NewLayer(File{Path: "/usr/bin/b", Mode: 0o755, Data: []byte("x")}, File{Path: "/usr/bin/a", Link: "b"}, File{Path: "/tmp", Dir: true, Mode: stickyTmp})
	g.Expect(err).NotTo(HaveOccurred())
	r, err := l.Uncompressed()
	g.Expect(err).NotTo(HaveOccurred())
	var got []string
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		g.Expect(err).NotTo(HaveOccurred())
		got = append(got, h.FileInfo().Mode().String()+" "+h.Name+" "+h.Linkname)
	}
	g.Expect(got).To(Equal([]string{"dtrwxrwxrwx tmp/ ", "drwxr-xr-x usr/ ", "drwxr-xr-x usr/bin/ ", "Lrwxrwxrwx usr/bin/a b", "-rwxr-xr-x usr/bin/b "}),
		"When files are given in any order it should sort them and add their folders")
}

func TestLayerErrors(t *testing.T) {
	for what, f := range map[string]File{
		"is not there":  {Path: "/a", Source: "/does/not/exist"},
		"is a folder":   {Path: "/a", Source: os.TempDir()},
		"is no regular": {Path: "/a", Source: os.DevNull},
	} {
		t.Run("When a file "+what+" it should say which", func(t *testing.T) {
			_, err := NewLayer(f)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("adding /a to a layer")))
		})
	}
}

func TestRelease(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	ref := host + "/hypershift/release:1.36.3"

	t.Run("When nothing is published it should have no tags and no error", func(t *testing.T) {
		g := NewWithT(t)
		tags, err := PublishedRelease(t.Context(), ref)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(tags).To(BeNil())
	})
	t.Run("When a release is pushed it should be read back with the same tags", func(t *testing.T) {
		g := NewWithT(t)
		want := map[string]string{"etcd": "r/a@sha256:1", "kubelet": "r/a@sha256:1"}
		img, err := Release("1.36.3", want)
		g.Expect(err).NotTo(HaveOccurred())
		byDigest, err := Push(t.Context(), ref, img)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(byDigest).To(HavePrefix(host + "/hypershift/release@sha256:"))
		g.Expect(PublishedRelease(t.Context(), ref)).To(Equal(want))
	})
	t.Run("When an image is named by tag it should refuse, as a tag may move", func(t *testing.T) {
		_, err := Release("1.36.3", map[string]string{"etcd": "r/a:1"})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("want a reference by digest")))
	})
	t.Run("When an image is no release it should say so", func(t *testing.T) {
		g := NewWithT(t)
		img, err := Pause(programs(t, time.Unix(1, 0)))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = Push(t.Context(), host+"/no/release:1", img)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = PublishedRelease(t.Context(), host+"/no/release:1")
		g.Expect(err).To(MatchError(ContainSubstring("looking for release-manifests/image-references")))
	})
}

func TestPush(t *testing.T) {
	t.Run("When an image is pushed it should run with the given entry point and come back whole", func(t *testing.T) {
		g := NewWithT(t)
		server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
		t.Cleanup(server.Close)
		img, err := Platform(programs(t, time.Unix(1, 0)))
		g.Expect(err).NotTo(HaveOccurred())
		ref, err := Push(t.Context(), strings.TrimPrefix(server.URL, "http://")+"/a/b:1", img)
		g.Expect(err).NotTo(HaveOccurred())
		parsed, err := name.ParseReference(ref)
		g.Expect(err).NotTo(HaveOccurred())
		got, err := remote.Image(parsed)
		g.Expect(err).NotTo(HaveOccurred())
		content := mutate.Extract(got)
		defer content.Close()
		_, err = io.Copy(io.Discard, content)
		g.Expect(err).NotTo(HaveOccurred())
		cfg, err := got.ConfigFile()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cfg.Config.Entrypoint).To(Equal([]string{"/usr/bin/hypershift"}))
		g.Expect(cfg.OS).To(Equal("linux"))
	})
}
