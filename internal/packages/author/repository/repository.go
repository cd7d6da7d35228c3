// Package repository reads and writes lists of packages, and finds in them what packages depend on.
package repository

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	manifests "hcp.internal/api/packages/manifests/v1alpha1"
	"hcp.internal/platform/internal/packages/author/images"
)

const (
	// maxBytes bounds a repository file; an entry has some 300 bytes.
	maxBytes = 8 << 20
	// maxEntries bounds the entries.
	maxEntries = 20_000
)

// Repository is a list of packages.
type Repository struct {
	Name    string
	Entries []manifests.RepositoryEntry
}

// Parse reads a repository file.
func Parse(data []byte) (*Repository, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("repository larger than %d bytes", maxBytes)
	}
	out := &Repository{}
	docs := strings.Split(strings.TrimPrefix(string(data), "---\n"), "---\n")
	if len(docs) > maxEntries {
		return nil, fmt.Errorf("repository with more than %d packages", maxEntries)
	}
	for i, doc := range docs {
		if i == 0 {
			head := &manifests.Repository{}
			if err := decode(doc, "Repository", head); err != nil {
				return nil, fmt.Errorf("document 0: %w", err)
			}
			if head.Name == "" {
				return nil, errors.New("document 0: metadata.name: Required value")
			}
			out.Name = head.Name
			continue
		}
		if strings.TrimSpace(doc) == "" {
			continue
		}
		entry := manifests.RepositoryEntry{}
		if err := decode(doc, "RepositoryEntry", &entry); err != nil {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
		if err := out.insert(entry); err != nil {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
	}
	return out, nil
}

func decode(doc, kind string, into any) error {
	meta := metav1.TypeMeta{}
	if err := yaml.Unmarshal([]byte(doc), &meta); err != nil {
		return err
	}
	if want := manifests.GroupVersion.WithKind(kind); meta.GroupVersionKind() != want {
		return fmt.Errorf("unknown GVK %q %q, must be %s %s", meta.APIVersion, meta.Kind, manifests.GroupVersion, kind)
	}
	return yaml.UnmarshalStrict([]byte(doc), into)
}

// Format is the inverse of Parse.
func (r *Repository) Format() ([]byte, error) {
	var out bytes.Buffer
	head := map[string]any{"apiVersion": manifests.GroupVersion.String(), "kind": "Repository", "metadata": map[string]any{"name": r.Name}}
	documents := []any{head}
	for _, e := range r.Entries {
		documents = append(documents, map[string]any{
			"apiVersion": manifests.GroupVersion.String(), "kind": "RepositoryEntry", "metadata": map[string]any{"name": e.Name}, "data": e.Data,
		})
	}
	for i, d := range documents {
		raw, err := yaml.Marshal(d)
		if err != nil {
			return nil, fmt.Errorf("encoding repository %s: %w", r.Name, err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(raw)
	}
	return out.Bytes(), nil
}

// Read reads a repository file.
func Read(path string) (*Repository, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	data, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err != nil {
		return nil, err
	}
	return Parse(data)
}

// Write writes a repository file.
func (r *Repository) Write(path string) error {
	data, err := r.Format()
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// file is where images have a repository.
const file = "repository.yaml"

// FromImage reads a repository from an image.
func FromImage(ctx context.Context, img v1.Image) (*Repository, error) {
	files, err := images.RepositoryFiles(ctx, img)
	if err != nil {
		return nil, err
	}
	data, ok := files[file]
	if !ok {
		return nil, errors.New("image has no file repository/" + file)
	}
	return Parse(data)
}

// Image makes an image of a repository.
func (r *Repository) Image() (v1.Image, error) {
	data, err := r.Format()
	if err != nil {
		return nil, err
	}
	return images.BuildRepository(map[string][]byte{file: data})
}

// insert checks an entry and adds it.
func (r *Repository) insert(entry manifests.RepositoryEntry) error {
	for _, field := range []struct {
		name  string
		unset bool
	}{
		{"data.image", entry.Data.Image == ""}, {"data.digest", entry.Data.Digest == ""}, {"data.name", entry.Data.Name == ""},
		{"data.versions", len(entry.Data.Versions) == 0},
	} {
		if field.unset {
			return fmt.Errorf("%s: Required value", field.name)
		}
	}
	versions, err := normalize(entry.Data.Versions)
	if err != nil {
		return err
	}
	entry.Data.Versions = versions
	for _, other := range r.Entries {
		if other.Data.Name != entry.Data.Name {
			continue
		}
		for _, v := range entry.Data.Versions {
			if slices.Contains(other.Data.Versions, v) {
				return fmt.Errorf("package %q version %q already exists", entry.Data.Name, v)
			}
		}
	}
	r.Entries = append(r.Entries, entry)
	return nil
}

// normalize makes versions v<semver>, the highest first.
func normalize(in []string) ([]string, error) {
	var parsed []*semver.Version
	for _, text := range in {
		v, err := semver.StrictNewVersion(strings.TrimPrefix(text, "v"))
		if err != nil {
			return nil, fmt.Errorf("version %q: %w", text, err)
		}
		parsed = append(parsed, v)
	}
	slices.SortFunc(parsed, func(a, b *semver.Version) int { return b.Compare(a) })
	var out []string
	for _, v := range parsed {
		if text := "v" + v.String(); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out, nil
}

// Add adds a package. digest is the hexadecimal part.
func (r *Repository) Add(name, image, digest string, versions []string, constraints []manifests.PackageManifestConstraint) error {
	return r.insert(manifests.RepositoryEntry{
		ObjectMeta: metav1.ObjectMeta{Name: name + "." + digest},
		Data:       manifests.RepositoryEntryData{Name: name, Image: image, Digest: digest, Versions: versions, Constraints: constraints},
	})
}

// Remove removes the entry of a package with a digest.
func (r *Repository) Remove(name, digest string) error {
	named := false
	for i, e := range r.Entries {
		if e.Data.Name != name {
			continue
		}
		named = true
		if e.Data.Digest == digest {
			r.Entries = slices.Delete(r.Entries, i, i+1)
			return nil
		}
	}
	if !named {
		return fmt.Errorf("package %q not found", name)
	}
	return fmt.Errorf("package %q digest %q not found", name, digest)
}

// sorted are the versions of a package in all repositories of a name, the highest first.
func sorted(repositories []*Repository, fqdn string) []candidate {
	var out []candidate
	for _, r := range repositories {
		for _, e := range r.Entries {
			if e.Data.Name+"."+r.Name != fqdn {
				continue
			}
			for _, text := range e.Data.Versions {
				if v, err := semver.NewVersion(text); err == nil {
					out = append(out, candidate{version: v, text: text, entry: e.Data})
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b candidate) int {
		return cmp.Or(b.version.Compare(a.version), strings.Compare(a.entry.Digest, b.entry.Digest))
	})
	return out
}

type candidate struct {
	version *semver.Version
	text    string
	entry   manifests.RepositoryEntryData
}
