package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"archive/tar"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// referencesPath is where a release image names its images.
const referencesPath = "release-manifests/image-references"

// maxReferences bounds what is read of an existing release image.
const maxReferences = 4 << 20

// imageStream is the part of an image.openshift.io/v1 ImageStream that a release uses.
type imageStream struct {
	Kind       string         `json:"kind"`
	APIVersion string         `json:"apiVersion"`
	Metadata   streamMetadata `json:"metadata"`
	Spec       streamSpec     `json:"spec"`
}

type streamMetadata struct {
	Name string `json:"name"`
}

type streamSpec struct {
	Tags []streamTag `json:"tags"`
}

type streamTag struct {
	Name        string            `json:"name"`
	Annotations map[string]string `json:"annotations,omitempty"`
	From        streamFrom        `json:"from"`
}

type streamFrom struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Release is a Kubernetes release image: version is without "v", tags maps an image's name to its reference by digest.
func Release(version string, tags map[string]string) (v1.Image, error) {
	stream := imageStream{Kind: "ImageStream", APIVersion: "image.openshift.io/v1", Metadata: streamMetadata{Name: version}}
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		if !strings.Contains(tags[tag], "@sha256:") {
			return nil, fmt.Errorf("release %s: image %s is %q, want a reference by digest", version, tag, tags[tag])
		}
		stream.Spec.Tags = append(stream.Spec.Tags, streamTag{
			Name:        tag,
			Annotations: map[string]string{"io.openshift.build.versions": "kubernetes=" + version},
			From:        streamFrom{Kind: "DockerImage", Name: tags[tag]},
		})
	}
	data, err := json.MarshalIndent(stream, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding release %s: %w", version, err)
	}
	return assemble(Config{Labels: map[string]string{"io.openshift.release": version}}, []File{{Path: "/" + referencesPath, Data: append(data, '\n')}})
}

// PublishedRelease reads the tags of a release image in a registry. A missing image gives no tags and no error.
func PublishedRelease(ctx context.Context, ref string) (map[string]string, error) {
	tag, err := name.ParseReference(ref, name.StrictValidation)
	if err != nil {
		return nil, fmt.Errorf("parsing image reference %q: %w", ref, err)
	}
	img, err := remote.Image(tag, remote.WithContext(ctx))
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", ref, err)
	}
	tags, err := ReleaseTags(img)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", ref, err)
	}
	return tags, nil
}

// ReleaseTags reads which images a release image names, by their tags.
func ReleaseTags(img v1.Image) (map[string]string, error) {
	content := mutate.Extract(img)
	defer content.Close()
	tr := tar.NewReader(io.LimitReader(content, maxReferences))
	for {
		h, err := tr.Next()
		if err != nil {
			return nil, fmt.Errorf("looking for %s: %w", referencesPath, err)
		}
		if strings.TrimPrefix(h.Name, "/") != referencesPath {
			continue
		}
		stream := imageStream{}
		if err := json.NewDecoder(tr).Decode(&stream); err != nil {
			return nil, fmt.Errorf("decoding %s: %w", referencesPath, err)
		}
		tags := map[string]string{}
		for _, t := range stream.Spec.Tags {
			tags[t.Name] = t.From.Name
		}
		return tags, nil
	}
}

func isNotFound(err error) bool {
	var t *transport.Error
	return errors.As(err, &t) && t.StatusCode == http.StatusNotFound
}
