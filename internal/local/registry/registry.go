// Package registry is a small OCI registry that keeps everything on disk.
//
// The protocol is go-containerregistry's; blobs are files named by their digest. That library holds manifests only in
// memory, so each accepted manifest is also written to disk here and put back when the registry starts.
package registry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"hcp.internal/platform/internal/atomicfile"
)

// maxManifest is the limit that registries commonly set for a manifest.
const maxManifest = 4 << 20

// stored is a manifest on disk.
type stored struct {
	Path        string `json:"path"` // /v2/<repository>/manifests/<tag or digest>
	ContentType string `json:"contentType"`
	Body        []byte `json:"body"`
}

type handler struct {
	next    http.Handler
	uploads *uploads
	dir     string // of manifests
}

// New opens the registry in dir, which is created when missing.
func New(dir string) (http.Handler, error) {
	blobs := &blobStore{dir: filepath.Join(dir, "blobs")}
	h := &handler{uploads: &uploads{blobs}, dir: filepath.Join(dir, "manifests")}
	for _, d := range []string{blobs.dir, h.dir} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("creating the registry's folder: %w", err)
		}
	}
	if err := blobs.dropUploads(); err != nil {
		return nil, err
	}
	h.next = registry.New(registry.WithBlobHandler(blobs), registry.Logger(log.New(io.Discard, "", 0)))
	return h, h.replay()
}

// replay puts the stored manifests back, indexes last because they are refused while a manifest of theirs is missing.
func (h *handler) replay() error {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return fmt.Errorf("listing stored manifests: %w", err)
	}
	var images, indexes []stored
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue // a write that was cut short
		}
		data, err := os.ReadFile(filepath.Join(h.dir, e.Name()))
		if err != nil {
			return fmt.Errorf("reading a stored manifest: %w", err)
		}
		s := stored{}
		if err := json.Unmarshal(data, &s); err != nil {
			return fmt.Errorf("decoding stored manifest %s: %w", e.Name(), err)
		}
		if types.MediaType(s.ContentType).IsIndex() {
			indexes = append(indexes, s)
		} else {
			images = append(images, s)
		}
	}
	for _, s := range slices.Concat(images, indexes) {
		// An index may hold indexes; a second pass is not worth it here, as none of ours does.
		req := httptest.NewRequestWithContext(context.Background(), http.MethodPut, s.Path, bytes.NewReader(s.Body))
		req.Header.Set("Content-Type", s.ContentType)
		rec := httptest.NewRecorder()
		h.next.ServeHTTP(rec, req)
		if rec.Code != http.StatusCreated {
			return fmt.Errorf("restoring %s: registry says %d: %s", s.Path, rec.Code, strings.TrimSpace(rec.Body.String()))
		}
	}
	return nil
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if isUpload(r) {
		h.uploads.ServeHTTP(w, r)
		return
	}
	if !isManifest(r.URL.Path) || (r.Method != http.MethodPut && r.Method != http.MethodDelete) {
		h.next.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxManifest))
	if err != nil {
		http.Error(w, "manifest too large", http.StatusRequestEntityTooLarge)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	rec := httptest.NewRecorder()
	h.next.ServeHTTP(rec, r)
	switch {
	case r.Method == http.MethodPut && rec.Code == http.StatusCreated:
		err = h.store(stored{Path: r.URL.Path, ContentType: r.Header.Get("Content-Type"), Body: body})
	case r.Method == http.MethodDelete && rec.Code == http.StatusAccepted:
		err = h.forget(r.URL.Path)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

func isManifest(path string) bool {
	parts := strings.Split(path, "/")
	return len(parts) >= 5 && parts[len(parts)-2] == "manifests"
}

// store writes a tag and also its digest, as the library answers to both after a PUT of either.
func (h *handler) store(s stored) error {
	sum := sha256.Sum256(s.Body)
	byDigest := s
	byDigest.Path = s.Path[:strings.LastIndex(s.Path, "/")+1] + "sha256:" + hex.EncodeToString(sum[:])
	for _, m := range []stored{byDigest, s} {
		data, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("encoding manifest %s: %w", m.Path, err)
		}
		if err := atomicfile.Write(h.file(m.Path), data, 0o600); err != nil {
			return fmt.Errorf("storing manifest %s: %w", m.Path, err)
		}
	}
	return nil
}

func (h *handler) forget(path string) error {
	if err := os.Remove(h.file(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing stored manifest %s: %w", path, err)
	}
	return nil
}

func (h *handler) file(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(h.dir, hex.EncodeToString(sum[:])+".json")
}

// blobStore keeps blobs as files. Unlike the library's it does not read a blob again to answer whether it is there.
type blobStore struct {
	dir string
}

var (
	_ registry.BlobHandler       = (*blobStore)(nil)
	_ registry.BlobStatHandler   = (*blobStore)(nil)
	_ registry.BlobDeleteHandler = (*blobStore)(nil)
)

func (b *blobStore) path(h v1.Hash) string { return filepath.Join(b.dir, h.Algorithm+"-"+h.Hex) }

func (b *blobStore) Stat(_ context.Context, _ string, h v1.Hash) (int64, error) {
	info, err := os.Stat(b.path(h))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, registry.ErrNotFound
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (b *blobStore) Get(_ context.Context, _ string, h v1.Hash) (io.ReadCloser, error) {
	f, err := os.Open(b.path(h))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, registry.ErrNotFound
	}
	return f, err
}

func (b *blobStore) Delete(_ context.Context, _ string, h v1.Hash) error {
	err := os.Remove(b.path(h))
	if errors.Is(err, fs.ErrNotExist) {
		return registry.ErrNotFound
	}
	return err
}

// dropUploads removes what uploads left that were cut short.
func (b *blobStore) dropUploads() error {
	left, err := filepath.Glob(filepath.Join(b.dir, "upload-*"))
	if err != nil {
		return err
	}
	for _, f := range left {
		if err := os.Remove(f); err != nil {
			return fmt.Errorf("removing an unfinished upload: %w", err)
		}
	}
	return nil
}
