package management

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/oci/rewrite"
)

const (
	// mirrorsFresh is how long the mirrors of the management cluster are believed: people set them up once.
	mirrorsFresh = 5 * time.Minute
	// maxMirrorSets bounds what is read of them.
	maxMirrorSets = 500
)

// mirrorKinds are the kinds by which an OpenShift management cluster names mirrors of registries, and where in their spec the list is.
var mirrorKinds = []struct {
	gvk  schema.GroupVersionKind
	list string
}{
	{schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "ImageDigestMirrorSet"}, "imageDigestMirrors"},
	{schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1alpha1", Kind: "ImageContentSourcePolicy"}, "repositoryDigestMirrors"},
}

// Mirrors are the mirrors of registries that the management cluster pulls from. Releases are looked up there, too.
type Mirrors struct {
	Reader client.Reader // uncached
	Mapper meta.RESTMapper
	Clock  clock.PassiveClock

	mu      sync.Mutex
	mirrors []rewrite.Mirror
	at      time.Time
}

// Get reads the mirrors, or gives those that were read a moment ago. A management cluster without these kinds has none.
func (m *Mirrors) Get(ctx context.Context) ([]rewrite.Mirror, error) {
	if m == nil {
		return nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.at.IsZero() && m.Clock.Since(m.at) < mirrorsFresh {
		return m.mirrors, nil
	}
	var mirrors []rewrite.Mirror
	for _, kind := range mirrorKinds {
		_, err := m.Mapper.RESTMapping(kind.gvk.GroupKind(), kind.gvk.Version)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("looking for kind %s: %w", kind.gvk.Kind, err)
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.gvk.GroupVersion().WithKind(kind.gvk.Kind + "List"))
		if err := m.Reader.List(ctx, list, client.Limit(maxMirrorSets)); err != nil {
			return nil, fmt.Errorf("listing %ss of the management cluster: %w", kind.gvk.Kind, err)
		}
		for i := range list.Items {
			mirrors = append(mirrors, mirrorsOf(&list.Items[i], kind.list)...)
		}
	}
	m.mirrors, m.at = mirrors, m.Clock.Now()
	return mirrors, nil
}

// mirrorsOf reads the entries of one object; what is not of the form is left out.
func mirrorsOf(obj *unstructured.Unstructured, field string) (mirrors []rewrite.Mirror) {
	entries, _, _ := unstructured.NestedSlice(obj.Object, "spec", field)
	for _, entry := range entries {
		e, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		source, _, _ := unstructured.NestedString(e, "source")
		to, _, _ := unstructured.NestedStringSlice(e, "mirrors")
		if source != "" && len(to) > 0 {
			mirrors = append(mirrors, rewrite.Mirror{Source: source, Mirrors: to})
		}
	}
	return mirrors
}

// FormatMirrors writes them as the control-plane-operator reads them: source=mirror,… in the order in which they are tried.
func FormatMirrors(mirrors []rewrite.Mirror) string {
	var pairs []rewrite.Override
	for _, m := range mirrors {
		for _, to := range m.Mirrors {
			pairs = append(pairs, rewrite.Override{Source: m.Source, To: to})
		}
	}
	return rewrite.FormatOverrides(pairs)
}
