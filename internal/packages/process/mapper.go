package process

import (
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// NewMapper returns a mapper that asks the API server about kinds when they are first needed.
func NewMapper(cfg *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	dynamic, err := apiutil.NewDynamicRESTMapper(cfg, httpClient)
	if err != nil {
		return nil, err
	}
	return &remembering{RESTMapper: dynamic}, nil
}

// remembering keeps the answers of a mapper that never changes them. Each request needs one, and finding it anew makes a fifth of all garbage
// of a rollout. What is not known is asked for again: a kind can appear.
type remembering struct {
	meta.RESTMapper
	known sync.Map // of gvk
}

// RESTMapping implements meta.RESTMapper.
func (m *remembering) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 {
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
