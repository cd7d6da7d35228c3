package process

import (
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// NewMapper returns a mapper that asks the API server about kinds when they are first needed, and remembers them. It is a manager's MapperProvider.
func NewMapper(cfg *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	dynamic, err := apiutil.NewDynamicRESTMapper(cfg, httpClient)
	if err != nil {
		return nil, err
	}
	return &remembering{RESTMapper: dynamic}, nil
}

// remembering keeps the answers of a mapper that never changes them. Each request and each read from a cache needs one, some hundred in a pass,
// and the mapper behind it computes it from all of its group's kinds. What is not known is asked for again: a kind can appear.
type remembering struct {
	meta.RESTMapper
	known sync.Map // schema.GroupVersionKind → *meta.RESTMapping
}

// RESTMapping implements meta.RESTMapper. The answer is shared and must not be changed.
func (m *remembering) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 || versions[0] == "" {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	gvk := kind.WithVersion(versions[0])
	if mapping, ok := m.known.Load(gvk); ok {
		return mapping.(*meta.RESTMapping), nil
	}
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err == nil {
		m.known.Store(gvk, mapping)
	}
	return mapping, err
}
