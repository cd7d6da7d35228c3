package registry

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/local/network"
)

// ask sends a request to a registry as if it came from an address.
func ask(h http.Handler, from, method, path, body string) int {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.RemoteAddr = from
	req.Header.Set("Content-Type", string(types.OCIManifestSchema1))
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec.Code
}

func TestWhoMayWrite(t *testing.T) {
	const pod = "10.244.0.7:40000"
	g := NewWithT(t)
	h, err := New(t.TempDir(), logr.Discard())
	g.Expect(err).NotTo(HaveOccurred())
	for _, from := range []string{"127.0.0.1:40000", "[::1]:40000", network.NodeIP + ":40000", "[::ffff:127.0.0.1]:40000"} {
		t.Run("When this machine pushes from "+from+" it should take it", func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(ask(h, from, http.MethodPut, "/v2/a/b/manifests/1", "{}")).To(Equal(http.StatusCreated))
			g.Expect(ask(h, from, http.MethodPost, "/v2/a/b/blobs/uploads/", "")).To(Equal(http.StatusAccepted))
		})
	}
	for method, path := range map[string]string{
		http.MethodPut: "/v2/a/b/manifests/1", http.MethodDelete: "/v2/a/b/manifests/1", http.MethodPost: "/v2/a/b/blobs/uploads/", http.MethodPatch: "/v2/a/b/blobs/uploads/upload-x",
	} {
		t.Run("When a pod sends "+method+" it should refuse it and change nothing", func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(ask(h, pod, method, path, `{"x": 1}`)).To(Equal(http.StatusForbidden))
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/v2/a/b/manifests/1", nil))
			g.Expect(rec.Body.String()).To(Equal("{}"))
		})
	}
	t.Run("When a pod pulls it should be served", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(ask(h, pod, http.MethodGet, "/v2/a/b/manifests/1", "")).To(Equal(http.StatusOK))
		g.Expect(ask(h, pod, http.MethodHead, "/v2/a/b/manifests/1", "")).To(Equal(http.StatusOK))
	})
}

func TestNames(t *testing.T) {
	const here = "127.0.0.1:1"
	t.Run("When a name is none it should refuse the manifest and keep nothing", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		h, err := New(dir, logr.Discard())
		g.Expect(err).NotTo(HaveOccurred())
		for _, path := range []string{
			"/v2/a%20b/manifests/x", "/v2/a/manifests/x%20y", "/v2/A/manifests/x", "/v2/a/../b/manifests/x", "/v2/a/manifests/%0Ax", "/v2/a/manifests/" + strings.Repeat("x", 129), "/v1/a/manifests/x",
			"/v2/a/manifests/sha256:" + strings.Repeat("0", 64), "/v2/" + strings.Repeat("a/", 300) + "a/manifests/x",
		} {
			g.Expect(ask(h, here, http.MethodPut, path, "{}")).To(Equal(http.StatusBadRequest), path)
		}
		entries, err := os.ReadDir(filepath.Join(dir, "manifests"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(entries).To(BeEmpty())
	})
	t.Run("When what is on disk makes no sense it should start with the rest", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		h, err := New(dir, logr.Discard())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(ask(h, here, http.MethodPut, "/v2/a/manifests/1", "{}")).To(Equal(http.StatusCreated))
		bad, err := json.Marshal(stored{Path: "/v2/a b/manifests/x", Body: []byte("{}")}) // as an older version stored it
		g.Expect(err).NotTo(HaveOccurred())
		for name, content := range map[string][]byte{"bad.json": bad, "cut.json": bad[:5], "empty.json": nil} {
			g.Expect(os.WriteFile(filepath.Join(dir, "manifests", name), content, 0o600)).To(Succeed())
		}
		h, err = New(dir, logr.Discard())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(ask(h, here, http.MethodGet, "/v2/a/manifests/1", "")).To(Equal(http.StatusOK))
	})
}

func TestLost(t *testing.T) {
	image := func(g *WithT) v1.Image {
		img, err := random.Image(1000, 2)
		g.Expect(err).NotTo(HaveOccurred())
		return img
	}
	forget := func(g *WithT, dir string, img v1.Image) {
		digest, err := img.Digest()
		g.Expect(err).NotTo(HaveOccurred())
		h := handler{dir: filepath.Join(dir, "manifests")}
		g.Expect(os.Remove(h.file("/v2/aa/manifests/" + digest.String()))).To(Succeed())
	}
	t.Run("When indexes hold indexes it should have all of them after a restart", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		var idx v1.ImageIndex = mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image(g)})
		for range 5 { // whatever the order of files is
			idx = mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: idx})
		}
		g.Expect(remote.WriteIndex(reference(t, serve(t, dir)+"/aa:1"), idx)).To(Succeed())
		_, err := remote.Index(reference(t, serve(t, dir)+"/aa:1"))
		g.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("When a manifest of an index is lost it should start with the rest, and take the index anew", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		img, other := image(g), image(g)
		idx := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: img})
		host := serve(t, dir)
		g.Expect(remote.WriteIndex(reference(t, host+"/aa:idx"), idx)).To(Succeed())
		g.Expect(remote.Write(reference(t, host+"/bb:1"), other)).To(Succeed())
		forget(g, dir, img)

		host = serve(t, dir)
		_, err := remote.Image(reference(t, host+"/bb:1"))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = remote.Index(reference(t, host+"/aa:idx"))
		g.Expect(err).To(HaveOccurred())
		g.Expect(remote.WriteIndex(reference(t, host+"/aa:idx"), idx)).To(Succeed())
		_, err = remote.Index(reference(t, serve(t, dir)+"/aa:idx"))
		g.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("When a blob has lost content it should be taken anew with the image, and nothing else be touched", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		img, other := image(g), image(g)
		host := serve(t, dir)
		for ref, i := range map[string]v1.Image{"/aa:1": img, "/bb:1": other} {
			g.Expect(remote.Write(reference(t, host+ref), i)).To(Succeed())
		}
		layers, err := img.Layers()
		g.Expect(err).NotTo(HaveOccurred())
		digest, err := layers[0].Digest()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.Truncate(filepath.Join(dir, "blobs", "sha256-"+digest.Hex), 10)).To(Succeed())
		unnamed := filepath.Join(dir, "blobs", "sha256-"+strings.Repeat("0", 64)) // a power failure came before its manifest
		g.Expect(os.WriteFile(unnamed, nil, 0o600)).To(Succeed())

		host = serve(t, dir)
		_, err = remote.Image(reference(t, host+"/aa:1"))
		g.Expect(err).To(HaveOccurred(), "so that whoever has it pushes it again")
		g.Expect(unnamed).NotTo(BeAnExistingFile())
		for ref, i := range map[string]v1.Image{"/aa:1": img, "/bb:1": other} {
			g.Expect(remote.Write(reference(t, host+ref), i)).To(Succeed())
			got, err := remote.Image(reference(t, host+ref))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(validate.Image(got)).To(Succeed())
		}
	})
	t.Run("When a tag can't be stored it should serve what it was before", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		h, err := New(dir, logr.Discard())
		g.Expect(err).NotTo(HaveOccurred())
		const here, path = "127.0.0.1:1", "/v2/a/manifests/new"
		file := (&handler{dir: filepath.Join(dir, "manifests")}).file(path)
		g.Expect(os.Mkdir(file, 0o700)).To(Succeed()) // no file takes the place of a folder
		g.Expect(ask(h, here, http.MethodPut, path, "{}")).To(Equal(http.StatusInternalServerError))
		g.Expect(ask(h, here, http.MethodGet, path, "")).To(Equal(http.StatusNotFound))
		g.Expect(os.Remove(file)).To(Succeed())
		g.Expect(ask(h, here, http.MethodPut, path, "{}")).To(Equal(http.StatusCreated))
	})
	t.Run("When an index is refused nothing of it should be kept", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		h, err := New(dir, logr.Discard())
		g.Expect(err).NotTo(HaveOccurred())
		raw, err := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image(g)}).RawManifest()
		g.Expect(err).NotTo(HaveOccurred())
		req := httptest.NewRequest(http.MethodPut, "/v2/a/manifests/1", bytes.NewReader(raw))
		req.RemoteAddr = "127.0.0.1:1"
		req.Header.Set("Content-Type", string(types.OCIImageIndex))
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		g.Expect(rec.Code).To(Equal(http.StatusNotFound))
		entries, err := os.ReadDir(filepath.Join(dir, "manifests"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(entries).To(BeEmpty())
	})
}
