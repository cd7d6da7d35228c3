package world

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/clip"
)

// watched are the kinds, and how their objects become rows.
var watched = []struct {
	kind Kind
	one  client.Object
	list func() client.ObjectList
	row  func(any) any
}{
	{Clusters, &hyperv1.HostedCluster{}, func() client.ObjectList { return &hyperv1.HostedClusterList{} }, func(o any) any { return ClusterOf(o.(*hyperv1.HostedCluster)) }},
	{Pools, &hyperv1.NodePool{}, func() client.ObjectList { return &hyperv1.NodePoolList{} }, func(o any) any { return PoolOf(o.(*hyperv1.NodePool)) }},
	{Packages, &packagesv1.Package{}, func() client.ObjectList { return &packagesv1.PackageList{} }, func(o any) any { return PackageOf(o.(*packagesv1.Package)) }},
	{Rollouts, &packagesv1.HostedClusterPackage{}, func() client.ObjectList { return &packagesv1.HostedClusterPackageList{} }, func(o any) any { return RolloutOf(o.(*packagesv1.HostedClusterPackage)) }},
}

// Run keeps the world until ctx ends, by one list and one watch a kind. namespace restricts it; empty: all. A kind that is not served, or that may not be
// listed, is tried again, and Trouble says why it is missing.
func (w *World) Run(ctx context.Context, c client.WithWatch, namespace string, log logr.Logger) {
	var wait sync.WaitGroup
	for _, k := range watched {
		ns := namespace
		if k.kind == Rollouts || k.kind == Packages {
			ns = "" // the first have none; the others are in the namespaces of control planes
		}
		lw := &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				list := k.list()
				err := c.List(ctx, list, &client.ListOptions{Namespace: ns, Raw: &o, Limit: o.Limit, Continue: o.Continue})
				if err != nil {
					w.setTrouble(k.kind, explain(k.kind, err))
				}
				return list, err
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				i, err := c.Watch(ctx, k.list(), &client.ListOptions{Namespace: ns, Raw: &o})
				if err != nil {
					w.setTrouble(k.kind, explain(k.kind, err))
				}
				return i, err
			},
		}
		r := cache.NewReflectorWithOptions(lw, k.one, &store{w, k.kind, k.row}, cache.ReflectorOptions{Logger: &log, Name: "console/" + string(k.kind)})
		wait.Go(func() { r.RunWithContext(ctx) })
	}
	wait.Wait()
}

// explain says for people why a kind can't be listed.
func explain(kind Kind, err error) string {
	switch {
	case err == nil:
		return ""
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return fmt.Sprintf("this management cluster does not serve %s: run `hypershift install` first", kind)
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("%s may not be listed: %s", kind, clip.Line(err.Error()))
	}
	return fmt.Sprintf("%s can't be listed: %s", kind, clip.Line(err.Error()))
}

// item is a row on its way through a reflector, which wants to know its name.
type item struct {
	metav1.ObjectMeta
	row any
}

// store makes rows of what a reflector brings.
type store struct {
	w    *World
	kind Kind
	make func(any) any
}

// Transformer makes rows of objects while a list still comes in.
func (s *store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return s.item(obj), nil }
}

func (s *store) item(obj any) any {
	o, ok := obj.(client.Object)
	if !ok {
		return obj // an item, or a tombstone
	}
	return &item{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()}, row: s.make(obj)}
}

func (s *store) Add(obj any) error {
	if i, ok := s.item(obj).(*item); ok {
		s.w.set(s.kind, Key{i.Namespace, i.Name}, i.row)
	}
	return nil
}

func (s *store) Update(obj any) error { return s.Add(obj) }

func (s *store) Delete(obj any) error {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if i, ok := s.item(obj).(*item); ok {
		s.w.set(s.kind, Key{i.Namespace, i.Name}, nil)
	}
	return nil
}

// Replace takes a whole list in.
func (s *store) Replace(list []any, _ string) error {
	here := make(map[Key]bool, len(list))
	for _, obj := range list {
		if i, ok := s.item(obj).(*item); ok {
			key := Key{i.Namespace, i.Name}
			here[key] = true
			s.w.set(s.kind, key, i.row)
		}
	}
	for _, key := range s.w.keys(s.kind) {
		if !here[key] {
			s.w.set(s.kind, key, nil)
		}
	}
	s.w.setTrouble(s.kind, "")
	return nil
}

func (s *store) Resync() error { return nil }
