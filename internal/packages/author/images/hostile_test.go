package images_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/oci/rewrite"
	"hcp.internal/platform/internal/packages/author/images"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/author/violation"
	"hcp.internal/platform/internal/packages/packagestest"
)

// layer makes a compressed layer of what write puts into an archive.
func layer(t *testing.T, write func(*tar.Writer) error) v1.Layer {
	t.Helper()
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	archive := tar.NewWriter(zip)
	if err := errors.Join(write(archive), archive.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	out, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func image(t *testing.T, layers ...v1.Layer) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func entry(header tar.Header) func(*tar.Writer) error {
	return func(w *tar.Writer) error { return w.WriteHeader(&header) }
}

func text(file, content string) func(*tar.Writer) error {
	return func(w *tar.Writer) error {
		if err := w.WriteHeader(&tar.Header{Name: file, Typeflag: tar.TypeReg, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err := io.WriteString(w, content)
		return err
	}
}

func both(list ...func(*tar.Writer) error) func(*tar.Writer) error {
	return func(w *tar.Writer) error {
		for _, f := range list {
			if err := f(w); err != nil {
				return err
			}
		}
		return nil
	}
}

// endless is a file of zeros, which compress well.
func endless(file string, size int64) func(*tar.Writer) error {
	return func(w *tar.Writer) error {
		if err := w.WriteHeader(&tar.Header{Name: file, Typeflag: tar.TypeReg, Size: size}); err != nil {
			return err
		}
		_, err := io.CopyN(w, zeros{}, size)
		return err
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func many(folder string, count int) func(*tar.Writer) error {
	return func(w *tar.Writer) error {
		for i := range count {
			if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%s/%d", folder, i), Typeflag: tar.TypeReg}); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestHostileLayers(t *testing.T) {
	for name, tc := range map[string]struct {
		write func(*tar.Writer) error
		want  string
	}{
		"a path that leads out":       {text("package/../../etc/passwd", "x"), "File not allowed in package/../../etc/passwd: its path leads out of the image"},
		"an absolute path":            {text("/package/manifest.yaml", "x"), "File not allowed in /package/manifest.yaml: its path is absolute"},
		"a symbolic link":             {entry(tar.Header{Name: "package/a", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), "File not allowed in package/a: it is a link"},
		"the folder as a link":        {entry(tar.Header{Name: "package", Typeflag: tar.TypeSymlink, Linkname: "/etc"}), "File not allowed in package: it is a link"},
		"a hard link":                 {entry(tar.Header{Name: "package/a", Typeflag: tar.TypeLink, Linkname: "etc/passwd"}), "File not allowed in package/a: it is a link"},
		"a device":                    {entry(tar.Header{Name: "package/a", Typeflag: tar.TypeBlock}), "File not allowed in package/a: it is a device or pipe"},
		"a device beside the package": {entry(tar.Header{Name: "dev/null", Typeflag: tar.TypeChar}), "File not allowed in dev/null: it is a device or pipe"},
		"a pipe":                      {entry(tar.Header{Name: "package/a", Typeflag: tar.TypeFifo}), "it is a device or pipe"},
		"a file twice":                {both(text("package/a", "x"), text("package/./a", "y")), "File not allowed in a: it is in the same layer twice"},
		"no file":                     {text("other/a", "x"), "Package image contains no files. Might be corrupted."},
		"a large file":                {endless("package/a", 5<<20), "Package too large in a: more than 4194304 bytes"},
		"too many files":              {many("package", 6000), "Package too large: more than 5000 files"},
		"a bomb beside the package":   {endless("other/a", 300<<20), "Package too large: its layers unpack to more than 268435456 bytes"},
	} {
		t.Run("When a layer has "+name+" it should be refused", func(t *testing.T) {
			g := NewWithT(t)
			img := image(t, layer(t, tc.write))
			var err error
			packagestest.ExpectCheap(t, func() { _, err = images.Files(t.Context(), img) })
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			_, ok := errors.AsType[*violation.Error](err)
			g.Expect(ok).To(BeTrue(), "it is the package's fault, and stays so")
		})
	}
}

// TestBomb has layers that are made while they are read, so that the test needs no memory for them.
func TestBomb(t *testing.T) {
	for name, tc := range map[string]struct {
		write func(*tar.Writer) error
		want  string
	}{
		"a file of 10 GiB":                   {endless("package/a.bin", 10<<30), "Package too large in a.bin: more than 4194304 bytes"},
		"10 GiB beside the package":          {endless("other/a.bin", 10<<30), "its layers unpack to more than 268435456 bytes"},
		"a million files":                    {many("package", 1_000_000), "Package too large: more than 5000 files"},
		"a million files beside the package": {many("other", 1_000_000), "its layers have more than 20000 entries"},
	} {
		t.Run("When a layer has "+name+" it should be refused", func(t *testing.T) {
			g := NewWithT(t)
			// 64 MiB compressed would be 60 GiB. What counts is what is unpacked: it stops after 256 MiB.
			read, write := io.Pipe()
			go func() {
				zip, err := gzip.NewWriterLevel(write, gzip.BestSpeed) // making the bomb costs more than refusing it
				archive := tar.NewWriter(zip)
				err = errors.Join(err, tc.write(archive))
				_ = write.CloseWithError(errors.Join(err, archive.Close(), zip.Close()))
			}()
			defer func() { _ = read.Close() }()
			img := image(t, stream{layer(t, text("package/x", "")), read})
			var err error
			packagestest.ExpectCheap(t, func() { _, err = images.Files(t.Context(), img) })
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

type stream struct {
	v1.Layer
	from io.Reader
}

func (s stream) Uncompressed() (io.ReadCloser, error) { return gzip.NewReader(s.from) }

func TestHostileManifests(t *testing.T) {
	g := NewWithT(t)
	odd, err := mutate.Append(empty.Image, mutate.Addendum{Layer: static.NewLayer([]byte("x"), types.MediaType("application/vnd.example.text"))})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = images.Files(t.Context(), odd)
	g.Expect(err).To(MatchError(ContainSubstring(`layer 0 has media type "application/vnd.example.text", which is no archive of files`)))

	var layers []v1.Layer
	for i := range 130 {
		layers = append(layers, static.NewLayer(fmt.Appendf(nil, "%d", i), types.DockerLayer))
	}
	_, err = images.Files(t.Context(), image(t, layers...))
	g.Expect(err).To(MatchError(ContainSubstring("130 layers, at most 128 are read")))

	_, err = images.Files(t.Context(), image(t, static.NewLayer([]byte("no archive at all"), types.DockerLayer)))
	g.Expect(err).To(HaveOccurred())
}

// TestHostileRegistry changes what a registry answers.
func TestHostileRegistry(t *testing.T) {
	r := packagestest.NewRegistry(t)
	good := image(t, layer(t, text("package/manifest.yaml", strings.Repeat("a: b\n", 1000))))
	_, byDigest := r.Push(t, "web:v1", good)
	for name, change := range map[string]func(http.ResponseWriter, []byte){
		"truncated": func(w http.ResponseWriter, body []byte) { _, _ = w.Write(body[:len(body)/2]) },
		"altered":   func(w http.ResponseWriter, body []byte) { body[len(body)-3] ^= 1; _, _ = w.Write(body) },
		"replaced":  func(w http.ResponseWriter, _ []byte) { _, _ = io.WriteString(w, "something else") },
	} {
		t.Run("When blobs are "+name+" it should not take them", func(t *testing.T) {
			g := NewWithT(t)
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				recorder := httptest.NewRecorder()
				r.Config.Handler.ServeHTTP(recorder, req)
				w.Header().Set("Content-Type", recorder.Header().Get("Content-Type"))
				w.Header().Set("Docker-Content-Digest", recorder.Header().Get("Docker-Content-Digest"))
				w.WriteHeader(recorder.Code)
				if strings.Contains(req.URL.Path, "/blobs/") {
					change(w, recorder.Body.Bytes())
					return
				}
				_, _ = w.Write(recorder.Body.Bytes())
			}))
			defer proxy.Close()
			p := &images.Puller{Clock: clock.RealClock{}}
			_, err := p.Pull(t.Context(), strings.Replace(byDigest, r.Host, strings.TrimPrefix(proxy.URL, "http://"), 1))
			g.Expect(err).To(HaveOccurred())
			_, isViolation := errors.AsType[*violation.Error](err)
			g.Expect(isViolation).To(BeFalse(), "another attempt may go well: "+err.Error())
		})
	}
	t.Run("When the digest is another's it should not take it", func(t *testing.T) {
		g := NewWithT(t)
		other, _ := name.NewDigest(byDigest[:len(byDigest)-4] + "0000")
		_, err := (&images.Puller{Clock: clock.RealClock{}}).Pull(t.Context(), other.String())
		g.Expect(err).To(HaveOccurred())
	})
}

func TestRewrite(t *testing.T) {
	g := NewWithT(t)
	prefixes, err := rewrite.ParseOverrides("quay.io=mirror/quay, quay.io/org=mirror.example/org")
	g.Expect(err).NotTo(HaveOccurred())
	hosts, err := rewrite.ParseOverrides("docker.io=local:5000")
	g.Expect(err).NotTo(HaveOccurred())
	r := images.Rewrite{Prefixes: prefixes, Hosts: hosts}
	g.Expect(r.Prefix("quay.io/org/app:v1")).To(Equal("mirror.example/org/app:v1"), "the longest match wins")
	g.Expect(r.Prefix("quay.io/other:v1")).To(Equal("mirror/quay/other:v1"))
	ref, err := r.Pull("docker.io/nginx:1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ref.Name()).To(Equal("local:5000/library/nginx:1"))
	g.Expect(r.Pinned("nginx:1", "sha256:abc")).To(Equal("index.docker.io/library/nginx@sha256:abc"))
	_, err = rewrite.ParseOverrides("a")
	g.Expect(err).To(HaveOccurred())
}

func TestPull(t *testing.T) {
	g := NewWithT(t)
	r := packagestest.NewRegistry(t)
	img, err := images.Build(load.Files{"manifest.yaml": []byte("a"), ".hidden": []byte("b")}, map[string]string{"a": "b"})
	g.Expect(err).NotTo(HaveOccurred())
	_, digest := r.Push(t, "web:v1", img)
	p := &images.Puller{Clock: clock.RealClock{}}
	got, err := p.Pull(t.Context(), digest)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.Files).To(Equal(load.Files{"manifest.yaml": []byte("a")}), "hidden files are no part of a package")
	g.Expect(digest).To(HaveSuffix("@" + got.Digest))
	r.Close()
	_, err = p.Pull(t.Context(), digest)
	g.Expect(err).NotTo(HaveOccurred(), "what has a digest is kept for a while")
}

// FuzzFiles reads arbitrary layers.
func FuzzFiles(f *testing.F) {
	var buf bytes.Buffer
	archive := tar.NewWriter(&buf)
	_ = text("package/manifest.yaml", "a: b")(archive)
	_ = archive.Close()
	f.Add(buf.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		files, err := images.Files(t.Context(), image(t, static.NewLayer(data, types.DockerUncompressedLayer)))
		if err != nil {
			return
		}
		for file := range files {
			if file == "" || strings.HasPrefix(file, "/") || load.Hidden(file) {
				t.Errorf("took a file %q", file)
			}
		}
	})
}
