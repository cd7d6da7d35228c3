package release

import (
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"

	"hcp.internal/platform/internal/clip"
)

// Bounds of what is believed of an image-references file. A payload has about 200 tags.
const (
	maxTags       = 2000
	maxNameLength = 255
	maxPullSpec   = 1024
)

// Annotations of tags.
const (
	buildVersionsAnnotation = "io.openshift.build.versions"
	displayNamesAnnotation  = "io.openshift.build.version-display-names"
	maxAnnotation           = 4096
)

// imageReferences is the part of an ImageStream that a release uses.
type imageReferences struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Tags []struct {
			Name        string            `json:"name"`
			Annotations map[string]string `json:"annotations"`
			From        *struct {
				Kind string `json:"kind"`
				Name string `json:"name"`
			} `json:"from"`
		} `json:"tags"`
	} `json:"spec"`
}

// parseReferences reads an image-references file. The file comes from an image that a user named, so every part of it is checked.
func parseReferences(data []byte) (*Release, error) {
	refs := imageReferences{}
	if err := json.Unmarshal(data, &refs); err != nil {
		return nil, fmt.Errorf("%w: %s is not valid JSON", ErrNotARelease, referencesPath)
	}
	if refs.Kind != "ImageStream" {
		return nil, fmt.Errorf("%w: %s is not an ImageStream", ErrNotARelease, referencesPath)
	}
	version, err := ParseVersion(refs.Metadata.Name)
	if err != nil || len(refs.Metadata.Name) > maxNameLength {
		return nil, fmt.Errorf("%w: the name of its ImageStream is not a version", ErrNotARelease)
	}
	if len(refs.Spec.Tags) == 0 || len(refs.Spec.Tags) > maxTags {
		return nil, fmt.Errorf("%w: %s has %d tags, want 1 to %d", ErrNotARelease, referencesPath, len(refs.Spec.Tags), maxTags)
	}
	r := &Release{Version: refs.Metadata.Name, Kubernetes: version.Kubernetes(), Images: map[string]string{}}
	declared := componentVersions{versions: map[string]string{}, display: map[string]string{}, from: map[string]string{}}
	for _, tag := range refs.Spec.Tags {
		if tag.From == nil || tag.Name == "" {
			continue
		}
		if len(tag.Name) > maxNameLength || len(tag.From.Name) > maxPullSpec || !plausiblePullSpec(tag.From.Name) {
			return nil, fmt.Errorf("%w: a tag of %s does not name an image", ErrNotARelease, referencesPath)
		}
		r.Images[tag.Name] = tag.From.Name
		if len(tag.Annotations[buildVersionsAnnotation]) > maxAnnotation || len(tag.Annotations[displayNamesAnnotation]) > maxAnnotation {
			return nil, fmt.Errorf("%w: the annotations of tag %s are longer than %d", ErrNotARelease, tag.Name, maxAnnotation)
		}
		if err := declared.add(tag.Name, tag.Annotations); err != nil {
			return nil, err
		}
	}
	r.ComponentVersions = declared.versions
	r.ComponentVersions[releaseComponent] = r.Version
	r.KubernetesVersion = r.ComponentVersions["kubernetes"]
	if r.Kubernetes {
		r.KubernetesVersion = r.Version
	}
	return r, nil
}

// Names of component versions, and of what is shown of them.
var (
	componentName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*[a-z0-9]$`)
	displayName   = regexp.MustCompile(`^[a-zA-Z0-9 ().:-]+$`)
)

const (
	// releaseComponent is the name under which the version of the release itself is kept.
	releaseComponent = "release"
	// machineOS may differ between architectures; the lowest in the order of text counts.
	machineOS = "machine-os"
	// kubectlComponent counts on kubectlTags alone: other images have an older one in them.
	kubectlComponent = "kubectl"
)

var kubectlTags = []string{"cli", "cli-artifacts"}

// componentVersions gathers what the tags of a payload declare.
type componentVersions struct {
	versions, display map[string]string
	from              map[string]string // name → tag that declared it first
}

// add reads the annotations of a tag: "kubernetes=1.36.3,etcd=3.6.8". Build metadata is dropped.
func (c *componentVersions) add(tag string, annotations map[string]string) error {
	for name, text := range pairs(annotations[buildVersionsAnnotation]) {
		if !componentName.MatchString(name) {
			return fmt.Errorf("%w: tag %s declares a version of %q, which is no name of a component", ErrNotARelease, tag, clip.To(name, maxNameLength))
		}
		if name == kubectlComponent && !slices.Contains(kubectlTags, tag) {
			continue
		}
		version, err := ParseVersion(text)
		if err != nil {
			return fmt.Errorf("%w: tag %s declares a version of %s that is none", ErrNotARelease, tag, name)
		}
		if err := c.set(c.versions, tag, name, version.withoutBuild()); err != nil {
			return err
		}
	}
	for name, text := range pairs(annotations[displayNamesAnnotation]) {
		if !componentName.MatchString(name) || !displayName.MatchString(text) {
			return fmt.Errorf("%w: tag %s declares a name to show for a component that is none", ErrNotARelease, tag)
		}
		if err := c.set(c.display, tag, name, text); err != nil {
			return err
		}
	}
	return nil
}

func (c *componentVersions) set(into map[string]string, tag, name, value string) error {
	was, known := into[name]
	switch {
	case !known:
		into[name], c.from[name] = value, tag
	case was == value:
	case name == machineOS:
		into[name] = min(was, value)
	default:
		return fmt.Errorf("%w: tags %s and %s declare different versions of %s: %s and %s", ErrNotARelease, c.from[name], tag, name, was, value)
	}
	return nil
}

// pairs reads "a=b,c=d", in order; what has no "=" has no value.
func pairs(list string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for pair := range strings.SplitSeq(list, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
			if name != "" && !yield(name, value) {
				return
			}
		}
	}
}

// plausiblePullSpec refuses what could not be an image reference. It keeps control characters and spaces out of manifests and messages;
// the container runtime parses the reference for good.
func plausiblePullSpec(s string) bool {
	if s == "" {
		return false
	}
	for _, c := range s {
		if c <= ' ' || c > '~' || strings.ContainsRune("\"'`\\<>{}|^$;&()*?!", c) {
			return false
		}
	}
	return true
}
