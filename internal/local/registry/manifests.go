package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

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

func isManifest(path string) bool {
	parts := strings.Split(path, "/")
	return len(parts) >= 5 && parts[len(parts)-2] == "manifests"
}

// manifestPath is a path of a manifest as the specification allows it, in two parts: the repository's, and a tag or digest.
var manifestPath = func() *regexp.Regexp {
	const part = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
	return regexp.MustCompile(`^(/v2/` + part + `(?:/` + part + `)*/manifests/)([a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}|sha256:[0-9a-f]{64})$`)
}()

// maxPath bounds a path: repositories of 255 characters are common.
const maxPath = 512

// byDigest is a manifest under its digest, as the library answers to both after a PUT of either. An error says what is wrong with its name.
func (s stored) byDigest() (stored, error) {
	parts := manifestPath.FindStringSubmatch(s.Path)
	if parts == nil || len(s.Path) > maxPath {
		return s, errors.New("repository, tag or digest is not as the specification of registries allows it")
	}
	sum := sha256.Sum256(s.Body)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	if strings.Contains(parts[2], ":") && parts[2] != digest {
		return s, errors.New("content does not match the digest")
	}
	s.Path = parts[1] + digest
	return s, nil
}

// put takes a manifest: to disk, to memory, and then the tag to disk. So what is served by its digest is never lost with a restart: indexes name others so.
func (h *handler) put(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxManifest))
	if err != nil {
		http.Error(w, "manifest too large", http.StatusRequestEntityTooLarge)
		return
	}
	s := stored{Path: r.URL.Path, ContentType: r.Header.Get("Content-Type"), Body: body}
	byDigest, err := s.byDigest()
	if err != nil {
		refuse(w, http.StatusBadRequest, "MANIFEST_INVALID", err.Error())
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err = os.Lstat(h.file(byDigest.Path))
	isNew := errors.Is(err, fs.ErrNotExist)
	if err := h.store(byDigest); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer := h.pass(http.MethodPut, s)
	switch {
	case answer.Code != http.StatusCreated && isNew:
		err = h.forget(byDigest.Path)
	case answer.Code == http.StatusCreated && s.Path != byDigest.Path:
		if err = h.store(s); err != nil {
			h.takeBack(s.Path)
		}
	default:
		err = nil
	}
	forward(w, answer, err)
}

func (h *handler) remove(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// From disk first: what is served no more must not come back with a restart.
	if err := h.forget(r.URL.Path); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	forward(w, h.pass(http.MethodDelete, stored{Path: r.URL.Path}), nil)
}

// pass hands a manifest to the library.
func (h *handler) pass(method string, s stored) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	h.next.ServeHTTP(answer, &http.Request{
		Method: method, URL: &url.URL{Path: s.Path}, Header: http.Header{"Content-Type": {s.ContentType}}, Body: io.NopCloser(bytes.NewReader(s.Body)),
	})
	return answer
}

// takeBack has the library serve what is on disk of a tag.
func (h *handler) takeBack(path string) {
	if before, err := read(h.file(path)); err == nil {
		h.pass(http.MethodPut, before)
	} else {
		h.pass(http.MethodDelete, stored{Path: path})
	}
}

// forward gives the library's answer, unless there is an error of ours.
func forward(w http.ResponseWriter, answer *httptest.ResponseRecorder, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for k, v := range answer.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

func (h *handler) store(s stored) error {
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encoding manifest %s: %w", s.Path, err)
	}
	if err := atomicfile.Write(h.file(s.Path), data, 0o600); err != nil {
		return fmt.Errorf("storing manifest %s: %w", s.Path, err)
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

func read(file string) (stored, error) {
	s := stored{}
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	return s, err
}
