package image

import (
	"context"
	"fmt"
	"maps"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Config says how a container of the image starts.
type Config struct {
	Entrypoint []string
	User       string   // empty: root, unless the pod says otherwise
	Cmd        []string // arguments unless the pod has others
	Labels     map[string]string
	Env        []string // beside PATH, as NAME=value
}

// searchPath is what containers of our images get as PATH.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// New puts layers together to an OCI image for this machine's architecture.
func New(cfg Config, layers ...v1.Layer) (v1.Image, error) {
	base := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	base = mutate.ConfigMediaType(base, types.OCIConfigJSON)
	img, err := mutate.AppendLayers(base, layers...)
	if err != nil {
		return nil, fmt.Errorf("appending layers: %w", err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the image's config: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", runtime.GOARCH
	file.Created = v1.Time{Time: epoch}
	file.Config = v1.Config{
		Entrypoint: cfg.Entrypoint,
		User:       cfg.User,
		Cmd:        cfg.Cmd,
		Env:        append([]string{searchPath}, cfg.Env...),
		Labels:     maps.Clone(cfg.Labels),
	}
	return mutate.ConfigFile(img, file)
}

// Push uploads what the registry lacks and returns the reference by digest, e.g. "10.244.0.1:5000/a/b@sha256:…".
func Push(ctx context.Context, ref string, img v1.Image) (string, error) {
	tag, err := name.ParseReference(ref, name.StrictValidation)
	if err != nil {
		return "", fmt.Errorf("parsing image reference %q: %w", ref, err)
	}
	if err := remote.Write(tag, img, remote.WithContext(ctx), remote.WithJobs(2)); err != nil {
		return "", fmt.Errorf("pushing %s: %w", ref, err)
	}
	digest, err := img.Digest()
	if err != nil {
		return "", fmt.Errorf("computing the digest of %s: %w", ref, err)
	}
	return tag.Context().Digest(digest.String()).String(), nil
}

// Base are the files that every image of ours holds: users, a temporary folder and, where this machine has one, the
// bundle of public certificate authorities at caBundle.
func Base(caBundle []byte) []File {
	files := []File{
		{Path: "/etc/passwd", Data: []byte("root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n")},
		{Path: "/etc/group", Data: []byte("root:x:0:\nnogroup:x:65534:\n")},
		{Path: "/etc/nsswitch.conf", Data: []byte("hosts: files dns\n")},
		{Path: "/root", Dir: true, Mode: 0o700},
		{Path: "/var/log", Dir: true},
		{Path: "/tmp", Dir: true, Mode: stickyTmp},
	}
	if len(caBundle) > 0 {
		files = append(files, File{Path: "/etc/ssl/certs/ca-certificates.crt", Data: caBundle})
	}
	return files
}
