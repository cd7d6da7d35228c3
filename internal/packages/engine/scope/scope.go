// Package scope lets code for a kind of package-operator.run serve both of its scopes.
//
// The Go types of a pair, such as ObjectSet and ClusterObjectSet, have the same fields, so that a pointer to one converts to a
// pointer to the other without a copy. Reconcilers are written for the namespaced types; the client that Scope.Client returns hands
// cluster-scoped ones to the API server:
//
//	c := scope.Cluster.Client(mgr.GetClient())
//	c.Get(ctx, key, &v1alpha1.ObjectSet{}) // reads a ClusterObjectSet
package scope

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
)

// Scope is Namespaced or Cluster.
type Scope struct{ prefix string }

var (
	// Namespaced are the kinds without prefix.
	Namespaced = Scope{}
	// Cluster are the kinds with the prefix Cluster.
	Cluster = Scope{prefix: "Cluster"}
)

// Both scopes, for what is set up once for each.
func Both() []Scope { return []Scope{Namespaced, Cluster} }

// IsCluster says whether the kinds are cluster-scoped.
func (s Scope) IsCluster() bool { return s.prefix != "" }

// Kind is the name of a kind in this scope, from the one of the namespaced kind.
func (s Scope) Kind(namespaced string) string { return s.prefix + namespaced }

// GroupVersionKind is that of a kind in this scope, from the name of the namespaced kind.
func (s Scope) GroupVersionKind(namespaced string) schema.GroupVersionKind {
	return v1alpha1.GroupVersion.WithKind(s.Kind(namespaced))
}

// Object is obj as the API server knows it in this scope: the same memory in the other Go type. What is of no pair stays as it is.
func (s Scope) Object(obj client.Object) client.Object {
	if !s.IsCluster() {
		return obj
	}
	switch o := obj.(type) {
	case *v1alpha1.Package:
		return (*v1alpha1.ClusterPackage)(o)
	case *v1alpha1.ObjectDeployment:
		return (*v1alpha1.ClusterObjectDeployment)(o)
	case *v1alpha1.ObjectSet:
		return (*v1alpha1.ClusterObjectSet)(o)
	case *v1alpha1.ObjectSetPhase:
		return (*v1alpha1.ClusterObjectSetPhase)(o)
	case *v1alpha1.ObjectSlice:
		return (*v1alpha1.ClusterObjectSlice)(o)
	case *v1alpha1.ObjectTemplate:
		return (*v1alpha1.ClusterObjectTemplate)(o)
	}
	return obj
}

// Namespaced is obj in the Go type of the namespaced kind: the same memory. What is of no pair stays as it is.
func (Scope) Namespaced(obj client.Object) client.Object {
	switch o := obj.(type) {
	case *v1alpha1.ClusterPackage:
		return (*v1alpha1.Package)(o)
	case *v1alpha1.ClusterObjectDeployment:
		return (*v1alpha1.ObjectDeployment)(o)
	case *v1alpha1.ClusterObjectSet:
		return (*v1alpha1.ObjectSet)(o)
	case *v1alpha1.ClusterObjectSetPhase:
		return (*v1alpha1.ObjectSetPhase)(o)
	case *v1alpha1.ClusterObjectSlice:
		return (*v1alpha1.ObjectSlice)(o)
	case *v1alpha1.ClusterObjectTemplate:
		return (*v1alpha1.ObjectTemplate)(o)
	}
	return obj
}

// Client returns a client that takes and gives the namespaced Go types and speaks of this scope's kinds with the API server.
func (s Scope) Client(c client.Client) client.Client {
	if !s.IsCluster() {
		return c
	}
	return &clusterClient{Client: c}
}

// Reader is Client for reading alone.
func (s Scope) Reader(r client.Reader) client.Reader {
	if !s.IsCluster() {
		return r
	}
	return clusterReader{r}
}

type clusterReader struct{ client.Reader }

func (r clusterReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return r.Reader.Get(ctx, client.ObjectKey{Name: key.Name}, Cluster.Object(obj), opts...)
}

func (r clusterReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return listInto(ctx, r.Reader, list, opts...)
}

type clusterClient struct{ client.Client }

func (c *clusterClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return clusterReader{c.Client}.Get(ctx, key, obj, opts...)
}

func (c *clusterClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return listInto(ctx, c.Client, list, opts...)
}

func (c *clusterClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return c.Client.Create(ctx, Cluster.Object(obj), opts...)
}

func (c *clusterClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return c.Client.Delete(ctx, Cluster.Object(obj), opts...)
}

func (c *clusterClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.Client.Update(ctx, Cluster.Object(obj), opts...)
}

func (c *clusterClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.Client.Patch(ctx, Cluster.Object(obj), patch, opts...)
}

func (c *clusterClient) Status() client.SubResourceWriter {
	return clusterStatus{c.Client.Status()}
}

type clusterStatus struct{ client.SubResourceWriter }

func (w clusterStatus) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return w.SubResourceWriter.Update(ctx, Cluster.Object(obj), opts...)
}

func (w clusterStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return w.SubResourceWriter.Patch(ctx, Cluster.Object(obj), patch, opts...)
}

// listInto fills a list of a namespaced kind with the cluster-scoped one's items.
func listInto(ctx context.Context, r client.Reader, list client.ObjectList, opts ...client.ListOption) (err error) {
	switch l := list.(type) {
	case *v1alpha1.ObjectSetList:
		got := &v1alpha1.ClusterObjectSetList{}
		err = r.List(ctx, got, opts...)
		l.ListMeta, l.Items = got.ListMeta, as(got.Items, func(o v1alpha1.ClusterObjectSet) v1alpha1.ObjectSet { return v1alpha1.ObjectSet(o) })
	case *v1alpha1.ObjectSliceList:
		got := &v1alpha1.ClusterObjectSliceList{}
		err = r.List(ctx, got, opts...)
		l.ListMeta, l.Items = got.ListMeta, as(got.Items, func(o v1alpha1.ClusterObjectSlice) v1alpha1.ObjectSlice { return v1alpha1.ObjectSlice(o) })
	case *v1alpha1.ObjectDeploymentList:
		got := &v1alpha1.ClusterObjectDeploymentList{}
		err = r.List(ctx, got, opts...)
		l.ListMeta, l.Items = got.ListMeta, as(got.Items, func(o v1alpha1.ClusterObjectDeployment) v1alpha1.ObjectDeployment {
			return v1alpha1.ObjectDeployment(o)
		})
	case *v1alpha1.ObjectTemplateList:
		got := &v1alpha1.ClusterObjectTemplateList{}
		err = r.List(ctx, got, opts...)
		l.ListMeta, l.Items = got.ListMeta, as(got.Items, func(o v1alpha1.ClusterObjectTemplate) v1alpha1.ObjectTemplate { return v1alpha1.ObjectTemplate(o) })
	case *v1alpha1.PackageList:
		got := &v1alpha1.ClusterPackageList{}
		err = r.List(ctx, got, opts...)
		l.ListMeta, l.Items = got.ListMeta, as(got.Items, func(o v1alpha1.ClusterPackage) v1alpha1.Package { return v1alpha1.Package(o) })
	case *v1alpha1.ObjectSetPhaseList:
		return fmt.Errorf("listing %T across scopes: nobody needs it yet", list)
	default:
		return r.List(ctx, list, opts...)
	}
	return err
}

func as[C, N any](items []C, convert func(C) N) []N {
	out := make([]N, len(items))
	for i := range items {
		out[i] = convert(items[i])
	}
	return out
}
