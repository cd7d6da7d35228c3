// Package imagefiles gets single files out of images, into folders that outlive the process: what a release's images hold never changes, and
// fetching it costs minutes.
//
// Images are named by releases, and releases by users, so nothing in them is trusted. Their layers are read within bounds of bytes, files and time.
// Only plain files are written, below a folder that no name leads out of; links are refused, as is what the image does not have.
package imagefiles

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"hcp.internal/platform/internal/oci/credentials"
	"hcp.internal/platform/internal/oci/pull"
	"hcp.internal/platform/internal/oci/rewrite"
)

// What is wrong with an image or with the way to it. Errors of Get wrap one of them where the cause is known.
var (
	// ErrMissing: the image lacks a file that is wanted.
	ErrMissing = errors.New("the image lacks a file")
	// ErrHostile: the image has what no image of a release has: links in place of files, or more than anybody needs.
	ErrHostile = errors.New("the image is not one of a release")
)

// Limits bound what one image may cost. The zero value of a field means the default.
type Limits struct {
	Time       time.Duration // for one image; default 4 minutes: 500 MB on a slow line
	Layers     int           // default 128, the most that overlay file systems take
	Compressed int64         // bytes of all layers; default 2 GiB
	Unpacked   int64         // bytes that are read of them; default 8 GiB
	Entries    int           // of all archives; default 500 000
	Written    int64         // bytes of the files that are wanted; default 1 GiB: three programs of 100 MB, twice
	Files      int           // that are written; default 10 000
}

func (l Limits) withDefaults() Limits {
	l.Time = cmp.Or(l.Time, 4*time.Minute)
	l.Layers = cmp.Or(l.Layers, 128)
	l.Compressed = cmp.Or(l.Compressed, 2<<30)
	l.Unpacked = cmp.Or(l.Unpacked, 8<<30)
	l.Entries = cmp.Or(l.Entries, 500_000)
	l.Written = cmp.Or(l.Written, 1<<30)
	l.Files = cmp.Or(l.Files, 10_000)
	return l
}

// Want is a file, or a folder with all plain files in it.
type Want struct {
	Path     string // in the image, without a leading slash
	Optional bool
}

// Request says what is wanted of an image, and with whose rights.
type Request struct {
	Image      string
	PullSecret []byte // a Docker configuration; empty: anonymous
	// TrustBundle are authorities, in PEM, that registries are trusted by besides the system's; optional.
	TrustBundle []byte
	Files       []Want
}

// Store is a folder of folders. It may be used concurrently; images are fetched one at a time. Root is required and must be the store's alone.
type Store struct {
	Root string
	// Mirrors are tried in order before an image itself.
	Mirrors []rewrite.Mirror
	Limits  Limits
	// Keep is how many folders stay; default 8. The ones that were not used for longest go.
	Keep int
	// Transport is what requests go through; default: one with time-outs that never asks link-local addresses.
	Transport *http.Transport

	mu sync.Mutex
}

// partPrefix begins the names of folders in the making.
const partPrefix = ".part-"

// timeouts are of one request; Limits.Time bounds the whole.
var timeouts = pull.Timeouts{Dial: 5 * time.Second, Answer: 15 * time.Second}

// Get is the folder with the files that are wanted of an image, each under its path in the image. Treat it as read-only.
func (s *Store) Get(ctx context.Context, req Request) (dir string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.MkdirAll(s.Root, 0o700); err != nil {
		return "", fmt.Errorf("making the folder of image files: %w", err)
	}
	s.tidy()
	limits := s.Limits.withDefaults()
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Time, fmt.Errorf("it took longer than %s", limits.Time))
	defer cancel()
	if known := s.known(req, req.Image); known != "" {
		return known, nil
	}
	keys, err := credentials.Parse(req.PullSecret)
	if err != nil {
		return "", fmt.Errorf("reading image %s: %w", req.Image, err)
	}
	client := pull.Guard(s.transport(req.TrustBundle), limits.Compressed)
	for _, ref := range rewrite.Candidates(req.Image, s.Mirrors) {
		if dir, err = s.fetch(ctx, client, keys, ref, req, limits); err == nil {
			return dir, nil
		}
		if ctx.Err() != nil || errors.Is(err, ErrMissing) || errors.Is(err, ErrHostile) {
			break // another place has the same
		}
	}
	return "", fmt.Errorf("reading files of image %s: %w", req.Image, cmp.Or(context.Cause(ctx), err))
}

func (s *Store) transport(bundle []byte) *http.Transport {
	t := s.Transport
	if t == nil {
		t = pull.Transport(nil, timeouts)
	}
	if len(bundle) == 0 {
		return t
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(bundle) {
		return t
	}
	t = t.Clone()
	if t.TLSClientConfig == nil {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	t.TLSClientConfig.RootCAs = roots
	return t
}

// fetch reads the image by one of its references.
func (s *Store) fetch(ctx context.Context, client http.RoundTripper, keys credentials.Keyring, ref string, req Request, limits Limits) (string, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return "", fmt.Errorf("%q is no image reference", ref)
	}
	desc, err := remote.Get(parsed, remote.WithContext(ctx), remote.WithAuthFromKeychain(keys), remote.WithTransport(client),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}), remote.WithRetryBackoff(remote.Backoff{Steps: 1}))
	if err != nil {
		return "", err
	}
	resolved := parsed.Context().Digest(desc.Digest.String()).Name()
	if known := s.known(req, resolved); known != "" {
		return known, nil
	}
	img, _, err := pull.Image(desc, func(m v1.Descriptor) bool {
		return m.Platform != nil && m.Platform.OS == "linux" && m.Platform.Architecture == runtime.GOARCH
	})
	if errors.Is(err, pull.ErrNoImage) {
		return "", fmt.Errorf("%w: it has nothing for linux/%s, on which this program runs", ErrMissing, runtime.GOARCH)
	}
	if err != nil {
		return "", err
	}
	part, err := os.MkdirTemp(s.Root, partPrefix)
	if err != nil {
		return "", fmt.Errorf("making a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(part) }() // once it is complete it has another name
	if err := extract(ctx, img, part, req.Files, limits); err != nil {
		return "", err
	}
	dir := s.dir(resolved, req)
	if err := os.Rename(part, dir); err != nil {
		return "", fmt.Errorf("keeping the files: %w", err)
	}
	return dir, nil
}

// known is the folder of an image that was fetched before; empty when there is none. Only digests say what is behind them.
func (s *Store) known(req Request, image string) string {
	if !strings.Contains(image, "@sha256:") {
		return ""
	}
	dir := s.dir(image, req)
	now := time.Now()
	if os.Chtimes(dir, now, now) != nil { // which says when it was used
		return ""
	}
	return dir
}

// dir is where the files of an image are, by its digest: mirrors have the same.
func (s *Store) dir(image string, req Request) string {
	_, digest, _ := strings.Cut(image, "@")
	h := sha256.New()
	fmt.Fprintln(h, digest, runtime.GOARCH)
	for _, f := range req.Files {
		fmt.Fprintln(h, f.Path, f.Optional)
	}
	return filepath.Join(s.Root, hex.EncodeToString(h.Sum(nil)))
}

// tidy removes what a process left that was killed, and what was not used for longest. The folders that stay are more than one payload needs, so none
// goes that is in use.
func (s *Store) tidy() {
	entries, err := os.ReadDir(s.Root)
	if err != nil {
		return
	}
	type folder struct {
		path string
		used time.Time
	}
	var folders []folder
	for _, e := range entries {
		at := filepath.Join(s.Root, e.Name())
		if strings.HasPrefix(e.Name(), partPrefix) {
			_ = os.RemoveAll(at) // it is tried again the next time
			continue
		}
		if info, err := e.Info(); err == nil {
			folders = append(folders, folder{at, info.ModTime()})
		}
	}
	slices.SortFunc(folders, func(a, b folder) int { return b.used.Compare(a.used) })
	for _, f := range folders[min(len(folders), cmp.Or(s.Keep, 8)):] {
		_ = os.RemoveAll(f.path)
	}
}

func clean(p string) string { return strings.TrimPrefix(path.Clean("/"+p), "/") }
