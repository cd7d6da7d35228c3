package bundle

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Placeholder stands for the registry in what names other images. Top-level domain invalid never resolves (RFC 2606).
const Placeholder = "bundle.invalid"

// Annotations of entries in index.json. The first is OCI's own, by which other tools find an entry, too.
const (
	annotationName    = "org.opencontainers.image.ref.name"
	annotationKind    = "internal.hcp.bundle.kind"
	annotationRelease = "internal.hcp.bundle.release"
	annotationNeeds   = "internal.hcp.bundle.needs"
)

// Kind says what an entry is for.
type Kind string

// Kinds, in the order in which they are pushed: nothing is there before what it names.
const (
	Part     Kind = "part"     // an image that releases name
	Operator Kind = "operator" // the operators, which every installation needs
	Release  Kind = "release"  // a release image
	Chart    Kind = "chart"    // the Helm chart
)

var kinds = []Kind{Part, Operator, Release, Chart}

// Entry is one thing in a bundle that has a name in a registry.
type Entry struct {
	Repository string `json:"repository"` // without registry: "hypershift/release"
	Tag        string `json:"tag"`
	Kind       Kind   `json:"kind"`
	// Release is the version of a release image: "1.36.3"; empty for others.
	Release string `json:"release,omitempty"`
	// Needs are digests of the entries that a release names.
	Needs []v1.Hash `json:"-"`
	// Digest is that in the bundle.
	Digest    v1.Hash  `json:"digest"`
	Platforms []string `json:"platforms,omitempty"` // "linux/amd64"; none for what doesn't run
	// Bytes is the size of everything that belongs to it, compressed. Entries may share parts.
	Bytes int64 `json:"bytes"`

	descriptor v1.Descriptor
}

// Name is "repository:tag".
func (e Entry) Name() string { return e.Repository + ":" + e.Tag }

// annotations are those of the entry's descriptor in index.json.
func (e Entry) annotations() map[string]string {
	a := map[string]string{annotationName: e.Name(), annotationKind: string(e.Kind)}
	if e.Release != "" {
		a[annotationRelease] = e.Release
	}
	var needs []string
	for _, n := range e.Needs {
		needs = append(needs, n.String())
	}
	if len(needs) > 0 {
		a[annotationNeeds] = strings.Join(needs, ",")
	}
	return a
}

// entryOf reads a descriptor of index.json.
func entryOf(d v1.Descriptor) (Entry, error) {
	e := Entry{Kind: Kind(d.Annotations[annotationKind]), Release: d.Annotations[annotationRelease], Digest: d.Digest, descriptor: d}
	var ok bool
	if e.Repository, e.Tag, ok = strings.Cut(d.Annotations[annotationName], ":"); !ok || !slices.Contains(kinds, e.Kind) {
		return e, fmt.Errorf("%s is none of ours: its annotations %s and %s are %q and %q", d.Digest, annotationName, annotationKind, d.Annotations[annotationName], e.Kind)
	}
	if (e.Kind == Release) != (e.Release != "") {
		return e, fmt.Errorf("%s is a %s of release %q", e.Name(), e.Kind, e.Release)
	}
	for _, n := range strings.FieldsFunc(d.Annotations[annotationNeeds], func(r rune) bool { return r == ',' }) {
		h, err := v1.NewHash(n)
		if err != nil {
			return e, fmt.Errorf("%s needs %q: %w", e.Name(), n, err)
		}
		e.Needs = append(e.Needs, h)
	}
	return e, nil
}

// Select returns the entries that somebody wants, in the order in which they are pushed: the operators and the chart, and the releases that are
// named with what they need. A release is named by its version or by the beginning of it: "1.36". None named means all of them.
func Select(entries []Entry, releases ...string) ([]Entry, error) {
	wanted := map[v1.Hash]bool{}
	var known []string
	hit := map[string]bool{}
	for _, e := range entries {
		switch e.Kind {
		case Part:
			wanted[e.Digest] = wanted[e.Digest] || len(releases) == 0
		case Release:
			known = append(known, e.Release)
			named := len(releases) == 0
			for _, r := range releases {
				if e.Release == r || strings.HasPrefix(e.Release, strings.TrimSuffix(r, ".")+".") {
					named, hit[r] = true, true
				}
			}
			if named {
				wanted[e.Digest] = true
				for _, n := range e.Needs {
					wanted[n] = true
				}
			}
		default:
			wanted[e.Digest] = true
		}
	}
	var errs []error
	for _, r := range releases {
		if !hit[r] {
			errs = append(errs, fmt.Errorf("no release %q is in the bundle: it has %s", r, strings.Join(known, ", ")))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var out []Entry
	for _, kind := range kinds {
		for _, e := range entries {
			if e.Kind == kind && wanted[e.Digest] {
				out = append(out, e)
			}
		}
	}
	return out, nil
}
