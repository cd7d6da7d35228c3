// Package releasetest gives tests an image registry in the process, with release images in it.
package releasetest

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Registry is a registry on loopback. Its fields may be set before the first request that they should affect.
type Registry struct {
	*httptest.Server
	// Host is host:port, as image references begin.
	Host string
	// Intercept sees every request first; it answers itself and returns true, or leaves the request to the registry.
	Intercept func(w http.ResponseWriter, r *http.Request) bool
}

// New starts a registry that ends with the test.
func New(t testing.TB) *Registry {
	t.Helper()
	r := &Registry{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.Intercept != nil && r.Intercept(w, req) {
			return
		}
		inner.ServeHTTP(w, req)
	}))
	t.Cleanup(r.Server.Close)
	r.Host = strings.TrimPrefix(r.Server.URL, "http://")
	return r
}

// KubernetesTags are those of a Kubernetes release, all of one made-up image.
func (r *Registry) KubernetesTags() map[string]string {
	tags := map[string]string{}
	for _, tag := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "coredns", "pause", "controlplane-operator"} {
		tags[tag] = r.Host + "/bundle@sha256:" + strings.Repeat("0", 64)
	}
	return tags
}

// PushRelease publishes a release image and returns its reference.
func (r *Registry) PushRelease(t testing.TB, version string, tags map[string]string) string {
	t.Helper()
	return r.Push(t, "release:"+version, Image(t, map[string][]byte{"release-manifests/image-references": References(t, version, tags)}))
}

// Push publishes an image as repository:tag and returns its reference.
func (r *Registry) Push(t testing.TB, repositoryTag string, img v1.Image) string {
	t.Helper()
	image := r.Host + "/" + repositoryTag
	ref, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img, remote.WithContext(t.Context())); err != nil {
		t.Fatalf("pushing %s: %v", image, err)
	}
	return image
}

// References is the content of an image-references file.
func References(t testing.TB, version string, tags map[string]string) []byte {
	t.Helper()
	var list []any
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, map[string]any{
			"name":        tag,
			"annotations": map[string]string{"io.openshift.build.versions": "kubernetes=" + version},
			"from":        map[string]string{"kind": "DockerImage", "name": tags[tag]},
		})
	}
	data, err := json.Marshal(map[string]any{
		"kind": "ImageStream", "apiVersion": "image.openshift.io/v1", "metadata": map[string]string{"name": version}, "spec": map[string]any{"tags": list},
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Image has one layer for every set of files, lowest first. Those in usr/bin may be run.
func Image(t testing.TB, layers ...map[string][]byte) v1.Image {
	t.Helper()
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{Architecture: "amd64", OS: "linux", RootFS: v1.RootFS{Type: "layers"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, files := range layers {
		if img, err = mutate.AppendLayers(img, layer(t, files)); err != nil {
			t.Fatal(err)
		}
	}
	return img
}

// Labelled gives an image labels.
func Labelled(t testing.TB, img v1.Image, labels map[string]string) v1.Image {
	t.Helper()
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Config.Labels = labels
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	return img
}

func layer(t testing.TB, files map[string][]byte) v1.Layer {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		mode := int64(0o644)
		if strings.HasPrefix(path, "usr/bin/") {
			mode = 0o755
		}
		if err := w.WriteHeader(&tar.Header{Name: path, Mode: mode, Size: int64(len(files[path])), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(files[path]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}
