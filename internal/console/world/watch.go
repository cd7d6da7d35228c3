package world

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/sleep"
	"hcp.internal/platform/internal/why"
)

// watched are the kinds, and how their objects become rows.
var watched = []struct {
	kind Kind
	one  client.Object
	list func() client.ObjectList
	row  func(any, time.Time) any
}{
	{Clusters, &hyperv1.HostedCluster{}, func() client.ObjectList { return &hyperv1.HostedClusterList{} }, func(o any, now time.Time) any { return ClusterOf(o.(*hyperv1.HostedCluster), now) }},
	{Pools, &hyperv1.NodePool{}, func() client.ObjectList { return &hyperv1.NodePoolList{} }, func(o any, now time.Time) any { return PoolOf(o.(*hyperv1.NodePool), now) }},
	{Packages, &packagesv1.Package{}, func() client.ObjectList { return &packagesv1.PackageList{} }, func(o any, now time.Time) any { return PackageOf(o.(*packagesv1.Package), now) }},
	{Rollouts, &packagesv1.HostedClusterPackage{}, func() client.ObjectList { return &packagesv1.HostedClusterPackageList{} }, func(o any, now time.Time) any { return RolloutOf(o.(*packagesv1.HostedClusterPackage), now) }},
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
				if err != nil || !ptr.Deref(o.SendInitialEvents, false) { // one that goes on where the last one ended brings no list with it
					w.setTrouble(k.kind, explain(k.kind, err))
				}
				return i, err
			},
		}
		s := &store{w: w, kind: k.kind, make: k.row, unwell: map[Key]*item{}}
		r := cache.NewReflectorWithOptions(lw, k.one, s, cache.ReflectorOptions{Logger: &log, Name: "console/" + string(k.kind)})
		wait.Go(func() { r.RunWithContext(ctx) })
		wait.Go(func() {
			for sleep.For(ctx, judgeAgain) == nil {
				s.judge(time.Now())
			}
		})
	}
	wait.Wait()
}

// judgeAgain is how often objects that are not well are judged again: what takes too long is a matter of time, and changes nothing of the object.
const judgeAgain = 30 * time.Second

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
	// of is what the row was made of, if that isn't well.
	of client.Object
}

// store makes rows of what a reflector brings.
type store struct {
	w    *World
	kind Kind
	make func(any, time.Time) any

	mu     sync.Mutex
	unwell map[Key]*item
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
	i := &item{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()}, row: s.make(obj, time.Now())}
	if !well(i.row) {
		o.SetManagedFields(nil)
		i.of = o
	}
	return i
}

func well(row any) bool {
	switch r := row.(type) {
	case *Cluster:
		return r.Health == why.Healthy
	case *Pool:
		return r.Health == why.Healthy
	case *Package:
		return r.Health == why.Healthy
	case *Rollout:
		return r.Health == why.Healthy
	}
	return true
}

// set puts a row in.
func (s *store) set(i *item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(i)
}

func (s *store) put(i *item) {
	key := Key{i.Namespace, i.Name}
	if i.of != nil {
		s.unwell[key] = i
	} else {
		delete(s.unwell, key)
	}
	s.w.set(s.kind, key, i.row)
}

// gone takes a row out.
func (s *store) gone(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unwell, key)
	s.w.set(s.kind, key, nil)
}

// judge makes the rows anew of what is not well, as it is at a time, and puts those in that differ.
func (s *store) judge(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.unwell {
		if row := s.make(i.of, now); !reflect.DeepEqual(row, i.row) {
			i.row = row
			s.put(i)
		}
	}
}

func (s *store) Add(obj any) error {
	if i, ok := s.item(obj).(*item); ok {
		s.set(i)
	}
	return nil
}

func (s *store) Update(obj any) error { return s.Add(obj) }

func (s *store) Delete(obj any) error {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if i, ok := s.item(obj).(*item); ok {
		s.gone(Key{i.Namespace, i.Name})
	}
	return nil
}

// Replace takes a whole list in.
func (s *store) Replace(list []any, _ string) error {
	here := make(map[Key]bool, len(list))
	for _, obj := range list {
		if i, ok := s.item(obj).(*item); ok {
			here[Key{i.Namespace, i.Name}] = true
			s.set(i)
		}
	}
	for _, key := range s.w.keys(s.kind) {
		if !here[key] {
			s.gone(key)
		}
	}
	s.w.setTrouble(s.kind, "")
	return nil
}

func (s *store) Resync() error { return nil }
