package objecttemplate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/author/gotemplate"
)

// maxPlaces is how deep a destination may be.
const maxPlaces = 32

var errPlaces = fmt.Errorf("destination deeper than %d levels", maxPlaces)

// copyItems takes the values of a source into config.
func copyItems(p *gotemplate.Paths, items []v1alpha1.ObjectTemplateSourceItem, source *unstructured.Unstructured, config map[string]any) error {
	for _, item := range items {
		value, err := p.At(item.Key, source.Object)
		if err != nil {
			return fmt.Errorf("key %.100s: %w", item.Key, err)
		}
		rest, ok := strings.CutPrefix(item.Destination, ".")
		if !ok {
			return fmt.Errorf("path %.100s must be a JSONPath with a leading dot", item.Destination)
		}
		places := strings.Split(rest, ".")
		if len(places) > maxPlaces {
			return fmt.Errorf("destination %.100s: %w", item.Destination, errPlaces)
		}
		if err := unstructured.SetNestedField(config, value, places...); err != nil {
			return fmt.Errorf("destination %s: %w", item.Destination, err)
		}
	}
	return nil
}
