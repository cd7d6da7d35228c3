package registry

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// replay puts the stored manifests back. The library refuses an index while a manifest of it is missing, so what it refuses is tried again after others.
func (h *handler) replay() error {
	left, err := h.stored()
	if err != nil {
		return err
	}
	if err := h.uploads.blobs.dropDamaged(left, h.log); err != nil {
		return err
	}
	left = h.whole(left)
	for taken := true; taken; {
		taken = false
		var refused []stored
		for _, s := range left {
			if h.pass(http.MethodPut, s).Code == http.StatusCreated {
				taken = true
			} else {
				refused = append(refused, s)
			}
		}
		left = refused
	}
	for _, s := range left {
		h.log.Info("left out an index that names what isn't there: push it again", "path", s.Path)
	}
	return nil
}

// stored reads what is on disk and makes sense.
func (h *handler) stored() ([]stored, error) {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return nil, fmt.Errorf("listing stored manifests: %w", err)
	}
	var out []stored
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue // a write that was cut short
		}
		s, err := read(filepath.Join(h.dir, e.Name()))
		if err == nil {
			_, err = s.byDigest()
		}
		if err != nil {
			h.log.Error(err, "left out a stored manifest", "file", e.Name())
			continue
		}
		out = append(out, s)
	}
	return out, nil
}

// whole leaves out images that have lost a blob.
func (h *handler) whole(manifests []stored) (out []stored) {
	for _, s := range manifests {
		lost := ""
		for _, d := range blobsOf(s) {
			if _, err := os.Lstat(h.uploads.blobs.path(d.Digest)); err != nil {
				lost = d.Digest.String()
			}
		}
		if lost != "" {
			h.log.Info("left out an image that has lost a part: push it again", "path", s.Path, "blob", lost)
			continue
		}
		out = append(out, s)
	}
	return out
}

// blobsOf are the blobs that a manifest names and that have to be here. An index names none.
func blobsOf(s stored) (out []v1.Descriptor) {
	if !types.MediaType(s.ContentType).IsImage() {
		return nil
	}
	m, err := v1.ParseManifest(bytes.NewReader(s.Body))
	if err != nil {
		return nil // nobody can pull it, as before
	}
	for _, d := range append(m.Layers, m.Config) {
		if d.MediaType.IsDistributable() && d.Digest.Algorithm == "sha256" && len(d.Data) == 0 {
			out = append(out, d)
		}
	}
	return out
}

// dropDamaged removes blobs that have lost content, as a power failure can have it. To read all of them at each start would take long, so only those are
// read whose size isn't what a manifest says; what they contain decides.
func (b *blobStore) dropDamaged(manifests []stored, log logr.Logger) error {
	sizes := map[string]int64{}
	for _, s := range manifests {
		for _, d := range blobsOf(s) {
			sizes[b.path(d.Digest)] = d.Size
		}
	}
	files, err := filepath.Glob(filepath.Join(b.dir, "sha256-*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return fmt.Errorf("looking at a blob: %w", err)
		}
		if size, named := sizes[file]; named && size == info.Size() {
			continue
		}
		digest, err := digestOf(file)
		if err == nil && "sha256-"+digest == filepath.Base(file) {
			continue
		}
		log.Info("removing a blob that has lost content", "blob", filepath.Base(file), "bytes", info.Size())
		if rerr := os.Remove(file); rerr != nil {
			return fmt.Errorf("removing a damaged blob: %w", errors.Join(err, rerr))
		}
	}
	return nil
}
