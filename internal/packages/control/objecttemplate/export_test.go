package objecttemplate

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/author/gotemplate"
)

// Render makes the object of a template from one source, as the Reconciler does from all of them.
func Render(ctx context.Context, spec v1alpha1.ObjectTemplateSpec, source *unstructured.Unstructured, environment any) (*unstructured.Unstructured, error) {
	config, values := map[string]any{}, gotemplate.NewPaths()
	for _, s := range spec.Sources {
		if err := copyItems(values, s.Items, source, config); err != nil {
			return nil, err
		}
	}
	data, err := json.Marshal(map[string]any{"config": config, "environment": environment})
	if err != nil {
		return nil, err
	}
	return manifest(ctx, spec.Template, data)
}
