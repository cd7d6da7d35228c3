package nodeconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Mirror says where images of a registry may be found as well.
type Mirror struct {
	// Source is a registry with its port, for example "quay.io".
	Source string
	// Mirrors in the order to try: a registry, and maybe a path that goes in front of the repository, "mirror.example.com:5000/cache".
	Mirrors []string
	// Never is true when the source itself must not be asked.
	Never bool
}

type imageMirrors struct {
	Source             string   `json:"source"`
	Mirrors            []string `json:"mirrors,omitempty"`
	MirrorSourcePolicy string   `json:"mirrorSourcePolicy,omitempty"`
}

type imageDigestMirrorSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ImageDigestMirrors []imageMirrors `json:"imageDigestMirrors,omitempty"`
	} `json:"spec"`
	Status json.RawMessage `json:"status,omitempty"`
}

type imageContentSourcePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		RepositoryDigestMirrors []struct {
			Source  string   `json:"source"`
			Mirrors []string `json:"mirrors,omitempty"`
		} `json:"repositoryDigestMirrors,omitempty"`
	} `json:"spec"`
}

const (
	neverContactSource = "NeverContactSource"
	allowSource        = "AllowContactingSource"
)

// location is a registry, maybe with a path: what the kinds accept, less wildcards.
var location = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)

// mirrorSet gathers mirrors by registry.
type mirrorSet map[string]*Mirror

func (m mirrorSet) digestMirrorSet(i item, target Target) error {
	set := imageDigestMirrorSet{}
	if err := i.decode(&set); err != nil || !target.Kubernetes {
		return err
	}
	for n, entry := range set.Spec.ImageDigestMirrors {
		if err := m.add(entry); err != nil {
			return fmt.Errorf("spec.imageDigestMirrors[%d].%w", n, err)
		}
	}
	return nil
}

func (m mirrorSet) contentSourcePolicy(i item, target Target) error {
	set := imageContentSourcePolicy{}
	if err := i.decode(&set); err != nil || !target.Kubernetes {
		return err
	}
	for n, entry := range set.Spec.RepositoryDigestMirrors {
		if err := m.add(imageMirrors{Source: entry.Source, Mirrors: entry.Mirrors}); err != nil {
			return fmt.Errorf("spec.repositoryDigestMirrors[%d].%w", n, err)
		}
	}
	return nil
}

// add translates an entry to what containerd knows: mirrors of a whole registry, which it asks for the same repository, maybe below a
// path. It falls back to the next mirror and to the source when a repository isn't there, so a mirror of some repositories may stand
// for all of them, unless the source must not be asked.
func (m mirrorSet) add(entry imageMirrors) error {
	if !location.MatchString(entry.Source) {
		return fmt.Errorf("source %q: write a registry, or a repository in one; wildcards are not supported", shorten(entry.Source))
	}
	registry, repository, _ := strings.Cut(entry.Source, "/")
	never := entry.MirrorSourcePolicy == neverContactSource
	switch {
	case entry.MirrorSourcePolicy != "" && entry.MirrorSourcePolicy != allowSource && !never:
		return fmt.Errorf("mirrorSourcePolicy %q: write %s or %s", shorten(entry.MirrorSourcePolicy), allowSource, neverContactSource)
	case never && repository != "":
		return fmt.Errorf("mirrorSourcePolicy %s is supported for whole registries only: write source %s, or leave it out", neverContactSource, registry)
	}
	have := m[registry]
	if have == nil {
		have = &Mirror{Source: registry}
		m[registry] = have
	}
	have.Never = have.Never || never
	for n, mirror := range entry.Mirrors {
		if !location.MatchString(mirror) {
			return fmt.Errorf("mirrors[%d] %q: write a registry, or a path in one", n, shorten(mirror))
		}
		base := strings.TrimSuffix(mirror, "/"+repository)
		if repository != "" && base == mirror {
			return fmt.Errorf("mirrors[%d] %q must end with the path of the source, %s: the container runtime mirrors whole registries", n, mirror, repository)
		}
		if !slices.Contains(have.Mirrors, base) {
			have.Mirrors = append(have.Mirrors, base)
		}
	}
	return nil
}

func (m mirrorSet) sorted() []Mirror {
	var list []Mirror
	for _, source := range sortedKeys(m) {
		list = append(list, *m[source])
	}
	return list
}

// imagePolicy: nothing on a machine would check the signatures, and a policy that is not enforced is worse than none.
func imagePolicy(target Target) error {
	if target.Kubernetes {
		return errors.New("it is not supported with Kubernetes releases: the container runtime does not check signatures")
	}
	return nil
}
