package process

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// counting counts the questions.
type counting struct {
	meta.RESTMapper
	asked int
}

func (c *counting) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	c.asked++
	return c.RESTMapper.RESTMapping(kind, versions...)
}

func TestMapper(t *testing.T) {
	known := meta.NewDefaultRESTMapper(nil)
	inner := &counting{RESTMapper: known}
	m := &remembering{RESTMapper: inner}
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	t.Run("When a kind is unknown it should ask again, since it can appear", func(t *testing.T) {
		g := NewWithT(t)
		for range 2 {
			_, err := m.RESTMapping(kind.GroupKind(), kind.Version)
			g.Expect(meta.IsNoMatchError(err)).To(BeTrue())
		}
		g.Expect(inner.asked).To(Equal(2))
	})
	t.Run("When it is known it should not ask again", func(t *testing.T) {
		g := NewWithT(t)
		known.Add(kind, meta.RESTScopeNamespace)
		for range 3 {
			mapping, err := m.RESTMapping(kind.GroupKind(), kind.Version)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(mapping.Resource.Resource).To(Equal("things"))
		}
		g.Expect(inner.asked).To(Equal(3))
	})
	t.Run("When no version is named it should leave the choice to who knows them", func(t *testing.T) {
		g := NewWithT(t)
		for range 2 {
			_, err := m.RESTMapping(kind.GroupKind())
			g.Expect(meta.IsNoMatchError(err)).To(BeTrue(), "the default mapper wants to know a preferred version")
		}
		g.Expect(inner.asked).To(Equal(5))
	})
}
