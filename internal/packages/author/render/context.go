package render

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	manifests "hcp.internal/api/packages/manifests/v1alpha1"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/author/manifest"
	"hcp.internal/platform/internal/packages/author/violation"
)

// Context is what templates and expressions see.
type Context struct {
	Package manifests.TemplateContextPackage `json:"package"`
	// Config as it was admitted.
	Config map[string]any `json:"config"`
	// Images by name, pinned.
	Images map[string]string `json:"images"`
	// Dependencies are images of packages by name, pinned.
	Dependencies map[string]string            `json:"dependencies"`
	Environment  manifests.PackageEnvironment `json:"environment"`
}

// generic is the context as templates see it.
func (c Context) generic() (map[string]any, error) {
	if c.Package.Labels == nil {
		c.Package.Labels = map[string]string{}
	}
	if c.Package.Annotations == nil {
		c.Package.Annotations = map[string]string{}
	}
	for _, m := range []*map[string]string{&c.Images, &c.Dependencies} {
		if *m == nil {
			*m = map[string]string{}
		}
	}
	if c.Config == nil {
		c.Config = map[string]any{}
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encoding the context: %w", err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("decoding the context: %w", err)
	}
	return out, nil
}

// Admit is the configuration of a package with defaults, without what its schema doesn't know. raw is that of the user, and may be empty.
// The error is a field error.
func Admit(ctx context.Context, m *manifests.PackageManifest, raw []byte) (map[string]any, error) {
	schema, errs := manifest.NewSchema(ctx, m.Spec.Config.OpenAPIV3Schema)
	if len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	config, errs := schema.Admit(ctx, raw, field.NewPath("spec", "config"))
	return config, errs.ToAggregate()
}

// Scope checks that a package can be installed in a scope.
func Scope(p *load.Package, cluster bool) error {
	want := manifests.PackageManifestScopeNamespaced
	if cluster {
		want = manifests.PackageManifestScopeCluster
	}
	for _, s := range p.Manifest.Spec.Scopes {
		if s == want {
			return nil
		}
	}
	return &violation.Error{Reason: violation.UnsupportedScope, Path: manifest.File, Component: p.Component}
}
