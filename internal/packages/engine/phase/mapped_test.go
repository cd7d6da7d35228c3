package phase

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hcp.internal/api/packages/v1alpha1"
)

func TestMapped(t *testing.T) {
	t.Run("When a condition is mapped to a type that no status accepts it should be left out", func(t *testing.T) {
		g := NewWithT(t)
		obj := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": "True", "reason": "Fine"},
		}}}}
		got := mapped([]v1alpha1.ConditionMapping{
			{SourceType: "Ready", DestinationType: "Example.com/Ready"},
			{SourceType: "Ready", DestinationType: "example.com/web/Ready"},
			{SourceType: "Ready", DestinationType: "example.com/Ready"},
		}, obj)
		g.Expect(got).To(HaveExactElements(HaveField("Type", "example.com/Ready")))
	})
}
