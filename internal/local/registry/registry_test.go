package registry

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
)

func serve(t *testing.T, dir string) string {
	t.Helper()
	h, err := New(dir, logr.Discard())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func reference(t *testing.T, ref string) name.Reference {
	t.Helper()
	r, err := name.ParseReference(ref)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return r
}

func TestRestart(t *testing.T) {
	t.Run("When the registry restarts it should still have images and indexes by tag and by digest", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		img, err := random.Image(1000, 3)
		g.Expect(err).NotTo(HaveOccurred())
		idx := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: img})
		host := serve(t, dir)
		g.Expect(remote.Write(reference(t, host+"/a/b:1"), img)).To(Succeed())
		g.Expect(remote.WriteIndex(reference(t, host+"/a/b:idx"), idx)).To(Succeed())

		host = serve(t, dir)
		digest, err := img.Digest()
		g.Expect(err).NotTo(HaveOccurred())
		for _, ref := range []string{":1", "@" + digest.String()} {
			got, err := remote.Image(reference(t, host+"/a/b"+ref))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.Digest()).To(Equal(digest))
			layers, err := got.Layers()
			g.Expect(err).NotTo(HaveOccurred())
			content, err := layers[2].Compressed()
			g.Expect(err).NotTo(HaveOccurred())
			_, err = io.Copy(io.Discard, content)
			g.Expect(err).NotTo(HaveOccurred())
		}
		_, err = remote.Index(reference(t, host+"/a/b:idx"))
		g.Expect(err).NotTo(HaveOccurred())
	})

	t.Run("When a tag was deleted it should stay deleted after a restart", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		img, err := random.Image(10, 1)
		g.Expect(err).NotTo(HaveOccurred())
		host := serve(t, dir)
		g.Expect(remote.Write(reference(t, host+"/aa:1"), img)).To(Succeed())
		g.Expect(remote.Delete(reference(t, host+"/aa:1"))).To(Succeed())
		host = serve(t, dir)
		_, err = remote.Image(reference(t, host+"/aa:1"))
		g.Expect(err).To(HaveOccurred())
	})
}

func TestUploads(t *testing.T) {
	content := []byte("content")
	digest, _, _ := v1.SHA256(bytes.NewReader(content))
	type response struct {
		StatusCode int
		Header     http.Header
	}
	send := func(t *testing.T, method, url string, body []byte) response {
		t.Helper()
		g := NewWithT(t)
		req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
		g.Expect(err).NotTo(HaveOccurred())
		resp, err := http.DefaultClient.Do(req)
		g.Expect(err).NotTo(HaveOccurred())
		defer resp.Body.Close()
		return response{resp.StatusCode, resp.Header}
	}

	t.Run("When everything comes in one request it should store the blob", func(t *testing.T) {
		g := NewWithT(t)
		host := serve(t, t.TempDir())
		g.Expect(send(t, http.MethodPost, "http://"+host+"/v2/a/blobs/uploads/?digest="+digest.String(), content).StatusCode).To(Equal(http.StatusCreated))
		g.Expect(send(t, http.MethodHead, "http://"+host+"/v2/a/blobs/"+digest.String(), nil).StatusCode).To(Equal(http.StatusOK))
	})
	t.Run("When the content does not match the digest it should refuse it and keep nothing", func(t *testing.T) {
		g := NewWithT(t)
		host := serve(t, t.TempDir())
		place := send(t, http.MethodPost, "http://"+host+"/v2/a/blobs/uploads/", nil).Header.Get("Location")
		g.Expect(send(t, http.MethodPatch, "http://"+host+place, []byte("other")).StatusCode).To(Equal(http.StatusAccepted))
		g.Expect(send(t, http.MethodPut, "http://"+host+place+"?digest="+digest.String(), nil).StatusCode).To(Equal(http.StatusBadRequest))
		g.Expect(send(t, http.MethodHead, "http://"+host+"/v2/a/blobs/"+digest.String(), nil).StatusCode).To(Equal(http.StatusNotFound))
	})
	t.Run("When an upload has a name that leads elsewhere it should not be found", func(t *testing.T) {
		g := NewWithT(t)
		host := serve(t, t.TempDir())
		for _, id := range []string{"upload-x", "sha256-00", "upload-..%2f..%2fx", "..%2fmanifests%2fx"} {
			resp := send(t, http.MethodPatch, "http://"+host+"/v2/a/blobs/uploads/"+id, content)
			g.Expect(resp.StatusCode).To(Equal(http.StatusNotFound), id)
		}
	})
}
