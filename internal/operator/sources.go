package operator

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// NewSourceCache is a second cache, of the identities of all Secrets and ConfigMaps: a user may name any of them before it exists, and it
// must be noticed when it is created or changed. It holds no content, about 300 bytes per object.
func NewSourceCache(cfg *rest.Config, mgr ctrl.Manager) (cache.Cache, error) {
	return cache.New(cfg, cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		DefaultTransform: func(obj any) (any, error) {
			if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
				m.ObjectMeta = metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion}
			}
			return obj, nil
		},
	})
}
