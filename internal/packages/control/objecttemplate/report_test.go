package objecttemplate

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestConditionsOf(t *testing.T) {
	t.Run("When an object has conditions of types that no status accepts they should be left out", func(t *testing.T) {
		g := NewWithT(t)
		condition := func(conditionType string) any {
			return map[string]any{"type": conditionType, "status": "True", "reason": "Fine"}
		}
		obj := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
			condition("Ready for use"), condition("Example.com/Ready"), condition(strings.Repeat("a", 317)), condition("Ready"), condition("example.com/Ready"),
		}}}}
		g.Expect(conditionsOf(obj)).To(HaveExactElements(HaveField("Type", "Ready"), HaveField("Type", "example.com/Ready")))
	})
}
