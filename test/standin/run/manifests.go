package run

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Annotations of a payload's manifests.
const (
	profileAnnotation    = "include.release.openshift.io/"
	capabilityAnnotation = "capability.openshift.io/name"
	deleteAnnotation     = "release.openshift.io/delete"
)

// manifest is one object of a payload.
type manifest struct {
	file   string
	object object
}

func (m manifest) string(fields ...string) string {
	var at any = m.object
	for _, f := range fields {
		next, ok := at.(object)
		if !ok {
			return ""
		}
		at = next[f]
	}
	s, _ := at.(string)
	return s
}

func (m manifest) annotation(name string) string { return m.string("metadata", "annotations", name) }

func (m manifest) String() string {
	return fmt.Sprintf("%s %s/%s of %s", m.string("kind"), m.string("metadata", "namespace"), m.string("metadata", "name"), m.file)
}

// capabilities are those that manifests need, sorted.
func (m manifest) capabilities() []string {
	if v := m.annotation(capabilityAnnotation); v != "" {
		return strings.Split(v, "+")
	}
	return nil
}

// readManifests reads the manifests of a folder in the order in which they are applied.
func readManifests(folders ...string) ([]manifest, error) {
	var all []manifest
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			some, err := parseManifests(filepath.Base(file), raw)
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there are no manifests in %s; prepare-payload puts them there", strings.Join(folders, " and "))
	}
	slices.SortStableFunc(all, func(a, b manifest) int { return cmp.Compare(a.file, b.file) })
	return all, nil
}

func parseManifests(file string, raw []byte) ([]manifest, error) {
	docs := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(raw)))
	defer docs.Close()
	var all []manifest
	buf := make([]byte, len(raw)+1)
	for {
		n, err := docs.Read(buf)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		o := object{}
		if err := yaml.Unmarshal(buf[:n], &o); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(o) > 0 {
			all = append(all, manifest{file, o})
		}
	}
}

// plan says what becomes of a payload's manifests.
type plan struct {
	apply, remove []manifest
	known         []string // capabilities that some manifest has
}

// planManifests sorts out what isn't of the profile, of capabilities that are off, or to be deleted.
func planManifests(all []manifest, profile string, enabled []string) plan {
	p, known := plan{}, map[string]bool{}
	for _, m := range all {
		for _, c := range m.capabilities() {
			known[c] = true
		}
		switch {
		case m.annotation(profileAnnotation+profile) != "true":
		case m.annotation(deleteAnnotation) == "true":
			p.remove = append(p.remove, m)
		case slices.ContainsFunc(m.capabilities(), func(c string) bool { return !slices.Contains(enabled, c) }):
		default:
			p.apply = append(p.apply, m)
		}
	}
	p.known = slices.Sorted(maps.Keys(known))
	return p
}

// operators are the names of the ClusterOperators among manifests.
func operators(manifests []manifest) []string {
	var names []string
	for _, m := range manifests {
		if m.string("kind") == "ClusterOperator" {
			names = append(names, m.string("metadata", "name"))
		}
	}
	slices.Sort(names)
	return names
}
