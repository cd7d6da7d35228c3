package hostedcontrolplane

import (
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// rememberingMapper remembers which resource a kind is. Every read from the cache asks for it, some hundred times in a pass, and the mapper behind
// it computes the answer from all of its group's kinds each time. Kinds that are not there are asked for again.
type rememberingMapper struct {
	meta.RESTMapper
	known sync.Map // schema.GroupVersionKind → *meta.RESTMapping
}

// newMapper is a manager's MapperProvider.
func newMapper(cfg *rest.Config, c *http.Client) (meta.RESTMapper, error) {
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, c)
	if err != nil {
		return nil, err
	}
	return &rememberingMapper{RESTMapper: mapper}, nil
}

// RESTMapping implements meta.RESTMapper. The answer is shared and must not be changed.
func (m *rememberingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 || versions[0] == "" {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	key := kind.WithVersion(versions[0])
	if known, ok := m.known.Load(key); ok {
		return known.(*meta.RESTMapping), nil
	}
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err == nil {
		m.known.Store(key, mapping)
	}
	return mapping, err
}
