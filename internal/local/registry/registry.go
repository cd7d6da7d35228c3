// Package registry is a small OCI registry that keeps everything on disk.
//
// The protocol is go-containerregistry's; blobs are files named by their digest. That library holds manifests only in
// memory, so each accepted manifest is also written to disk here and put back when the registry starts.
//
// Everybody who reaches it may read. Only this machine may write: what a tag names runs in the management cluster.
package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	stdlog "log"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-logr/logr"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"hcp.internal/platform/internal/local/network"
)

type handler struct {
	next    http.Handler
	uploads *uploads
	dir     string // of manifests
	log     logr.Logger
	mu      sync.Mutex // what is served and what is on disk change together
}

// New opens the registry in dir, which is created when missing. Images that have lost a part are left out, and said in the log: they must not cost the
// rest. Whoever pushes them again finds that they aren't there.
func New(dir string, log logr.Logger) (http.Handler, error) {
	blobs := &blobStore{dir: filepath.Join(dir, "blobs")}
	h := &handler{uploads: &uploads{blobs}, dir: filepath.Join(dir, "manifests"), log: log}
	for _, d := range []string{blobs.dir, h.dir} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("creating the registry's folder: %w", err)
		}
	}
	if err := blobs.dropUploads(); err != nil {
		return nil, err
	}
	h.next = registry.New(registry.WithBlobHandler(blobs), registry.Logger(stdlog.New(io.Discard, "", 0)))
	return h, h.replay()
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead && !fromHere(r):
		refuse(w, http.StatusForbidden, "DENIED", "only this machine itself may write to its registry; pods may read")
	case isUpload(r):
		h.uploads.ServeHTTP(w, r)
	case isManifest(r.URL.Path) && r.Method == http.MethodPut:
		h.put(w, r)
	case isManifest(r.URL.Path) && r.Method == http.MethodDelete:
		h.remove(w, r)
	default:
		h.next.ServeHTTP(w, r)
	}
}

// fromHere tells whether this machine sent a request. What pods send keeps their address, also when it comes from behind a worker.
func fromHere(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	addr := from.Addr().Unmap()
	return addr.IsLoopback() || addr == netip.MustParseAddr(network.NodeIP)
}

// refuse answers with an error as the specification has it.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []map[string]string{{"code": code, "message": message}}}) // or the client went
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
