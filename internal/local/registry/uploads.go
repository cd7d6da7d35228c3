package registry

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// maxBlob bounds one layer. The largest of ours, the Kubernetes bundle, has 135 MB.
const maxBlob = 4 << 30

// uploads receives blobs straight into files; the library would hold each one in memory as a whole.
//
// The protocol: POST …/blobs/uploads/ opens an upload and names its place, PATCH there appends, PUT there with
// ?digest= appends the rest and finishes.
type uploads struct {
	blobs *blobStore
}

// isUpload tells requests for this handler from others. Only a POST names no upload.
func isUpload(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/blobs/uploads") && (r.Method == http.MethodPost || r.Method == http.MethodPatch || r.Method == http.MethodPut)
}

func (u *uploads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var err error
	switch r.Method {
	case http.MethodPost:
		err = u.open(w, r)
	case http.MethodPatch:
		err = u.appendTo(w, r)
	case http.MethodPut:
		err = u.finish(w, r)
	}
	if err == nil {
		return
	}
	status := http.StatusInternalServerError
	var bad badUpload
	if errors.As(err, &bad) {
		status = bad.status
	}
	refuse(w, status, "BLOB_UPLOAD_INVALID", err.Error())
}

// badUpload is an error of the client.
type badUpload struct {
	status  int
	message string
}

func (b badUpload) Error() string { return b.message }

func (u *uploads) open(w http.ResponseWriter, r *http.Request) error {
	id := "upload-" + rand.Text()
	f, err := os.OpenFile(filepath.Join(u.blobs.dir, id), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening an upload: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("opening an upload: %w", err)
	}
	if r.URL.Query().Get("digest") != "" { // everything in one request
		return u.finishID(w, r, id)
	}
	w.Header().Set("Location", strings.TrimSuffix(r.URL.Path, "/")+"/"+id)
	w.Header().Set("Range", "0-0")
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// file returns the file of the upload that the request names.
func (u *uploads) file(r *http.Request) (string, error) {
	id := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	path := filepath.Join(u.blobs.dir, id)
	if !strings.HasPrefix(id, "upload-") || filepath.Dir(path) != filepath.Clean(u.blobs.dir) {
		return "", badUpload{http.StatusNotFound, "no such upload"}
	}
	if _, err := os.Stat(path); err != nil {
		return "", badUpload{http.StatusNotFound, "no such upload"}
	}
	return path, nil
}

func receive(w http.ResponseWriter, r *http.Request, path string) (int64, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("writing an upload: %w", err)
	}
	_, err = io.Copy(f, http.MaxBytesReader(w, r.Body, maxBlob))
	info, serr := f.Stat()
	if err := errors.Join(err, serr, f.Close()); err != nil {
		return 0, fmt.Errorf("writing an upload: %w", err)
	}
	if info.Size() > maxBlob {
		return 0, badUpload{http.StatusRequestEntityTooLarge, "blob is too large"}
	}
	return info.Size(), nil
}

func (u *uploads) appendTo(w http.ResponseWriter, r *http.Request) error {
	path, err := u.file(r)
	if err != nil {
		return err
	}
	size, err := receive(w, r, path)
	if err != nil {
		return err
	}
	w.Header().Set("Location", r.URL.Path)
	w.Header().Set("Range", fmt.Sprintf("0-%d", max(size-1, 0)))
	w.WriteHeader(http.StatusAccepted) // 202, as the specification asks for a chunk
	return nil
}

func (u *uploads) finish(w http.ResponseWriter, r *http.Request) error {
	path, err := u.file(r)
	if err != nil {
		return err
	}
	return u.finishID(w, r, filepath.Base(path))
}

func (u *uploads) finishID(w http.ResponseWriter, r *http.Request, id string) error {
	path := filepath.Join(u.blobs.dir, id)
	want, err := v1.NewHash(r.URL.Query().Get("digest"))
	if err != nil || want.Algorithm != "sha256" {
		return badUpload{http.StatusBadRequest, "digest is missing or not a sha256"}
	}
	if _, err := receive(w, r, path); err != nil {
		return err
	}
	got, err := digestOf(path)
	if err != nil {
		return err
	}
	if got != want.Hex {
		return errors.Join(badUpload{http.StatusBadRequest, "content does not match the digest"}, os.Remove(path))
	}
	if err := settle(path); err != nil {
		return err
	}
	if err := os.Rename(path, u.blobs.path(want)); err != nil {
		return fmt.Errorf("storing blob %s: %w", want, err)
	}
	repo, _, _ := strings.Cut(r.URL.Path, "/blobs/uploads")
	w.Header().Set("Location", repo+"/blobs/"+want.String())
	w.Header().Set("Docker-Content-Digest", want.String())
	w.WriteHeader(http.StatusCreated)
	return nil
}

// settle has a file on disk before it gets its name: with that alone it would be taken for whole after a power failure.
func settle(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("keeping an upload: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("keeping an upload: %w", err)
	}
	return nil
}

func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading an upload: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("reading an upload: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
