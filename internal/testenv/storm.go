package testenv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const (
	// stormyRuns is how often a reconciler runs in a storm, before it is calm again.
	stormyRuns = 6
	// calmRuns is how often it may run until it has settled after the storm.
	calmRuns = 4
	// catchUp is how likely it is that a cache catches up before it is read.
	catchUp = 0.25
	// troubles is how likely a request fails. A pass makes tens or hundreds of them.
	troubles = 0.03
)

// StormClient is a client on a bad day. Its reads are those of caches that are behind, each kind by a time of its own and never backwards: the API server is
// asked for the state at an older resource version. Requests fail as on an API server that is overloaded or away, and answers get lost. What is random
// comes from a seed. It is safe for concurrent use.
type StormClient struct {
	client.WithWatch
	real client.WithWatch

	mu     sync.Mutex
	random *rand.Rand // nil: the day is fine
	start  string
	seen   map[string]string // kind to the resource version that its cache is at
	writes int
	made   map[madeKey]bool
}

type madeKey struct {
	kind schema.GroupVersionKind
	name client.ObjectKey
}

// NewStormClient wraps c. seed 0 is a fine day: nothing happens, writes are counted.
func NewStormClient(ctx context.Context, c client.WithWatch, seed uint64) (*StormClient, error) {
	s := &StormClient{real: c, seen: map[string]string{}, made: map[madeKey]bool{}}
	if seed != 0 {
		s.random = rand.New(rand.NewPCG(seed, seed)) // a test wants to play it again
		var err error
		if s.start, err = s.now(ctx); err != nil {
			return nil, err
		}
	}
	s.WithWatch = interceptor.NewClient(c, s.funcs(true))
	return s, nil
}

// Uncached is what a reconciler gets that reads without caches: the API server itself, with the troubles that c has else. Other clients are returned
// as they are.
func Uncached(c client.Client) client.Client {
	if watching, ok := c.(client.WithWatch); ok {
		return uncached(watching)
	}
	return c
}

func uncached(c client.WithWatch) client.WithWatch {
	switch c := c.(type) {
	case *StormClient:
		return interceptor.NewClient(c.real, c.funcs(false))
	case *FaultClient:
		return interceptor.NewClient(uncached(c.real), c.funcs())
	}
	return c
}

// Calm ends the storm.
func (s *StormClient) Calm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.random = nil
}

func (s *StormClient) stormy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random != nil
}

// Writes is how many writes were sent so far, those that failed included.
func (s *StormClient) Writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// Left counts what was written by way of this client and is still there, by kind.
func (s *StormClient) Left(ctx context.Context) (map[string]int, error) {
	s.mu.Lock()
	made := maps.Clone(s.made)
	s.mu.Unlock()
	out := map[string]int{}
	for key := range made {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(key.kind)
		err := s.real.Get(ctx, key.name, obj)
		switch {
		case apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err): // such as reviews of access, which are not stored
		case err != nil:
			return nil, err
		default:
			out[key.kind.Kind]++
		}
	}
	return out, nil
}

// now is the resource version that the API server is at.
func (s *StormClient) now(ctx context.Context) (string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "NamespaceList"})
	err := s.real.List(ctx, list, client.Limit(1))
	return list.ResourceVersion, err
}

// version is the one that a cache is at which is about to be read; empty on a fine day.
func (s *StormClient) version(ctx context.Context, kind string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.random == nil {
		return "", nil
	}
	if s.seen[kind] == "" {
		s.seen[kind] = s.start
	}
	if s.random.Float64() < catchUp {
		now, err := s.now(ctx)
		if err != nil {
			return "", err
		}
		s.seen[kind] = now
	}
	return s.seen[kind], nil
}

// trouble returns what goes wrong with a request before the API server has done anything, and whether its answer gets lost after it has.
func (s *StormClient) trouble(write bool) (before error, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if write {
		s.writes++
	}
	if s.random == nil || s.random.Float64() >= troubles {
		return nil, false
	}
	nothing := schema.GroupResource{Resource: "things"}
	kinds := []error{
		apierrors.NewTooManyRequests("the storm", 1), apierrors.NewServerTimeout(nothing, "do", 1), apierrors.NewInternalError(errors.New("the storm")),
		fmt.Errorf("the storm: %w", syscall.ECONNREFUSED),
	}
	if write {
		// No conflicts: who reads late has enough of them, and one that is none would tell that somebody else has written.
		kinds = append(kinds, nil)
	}
	before = kinds[s.random.IntN(len(kinds))]
	return before, before == nil
}

func (s *StormClient) read(do func() error) error {
	if err, _ := s.trouble(false); err != nil {
		return err
	}
	return do()
}

func (s *StormClient) write(obj client.Object, do func() error) error {
	err, lost := s.trouble(true)
	if err != nil {
		return err
	}
	if err = do(); refused(err) {
		return err
	}
	if obj != nil { // else the answer alone may be missing, as of a request that was cancelled for the failure of another
		if kind, err := s.real.GroupVersionKindFor(obj); err == nil && obj.GetName() != "" {
			s.mu.Lock()
			s.made[madeKey{kind, client.ObjectKeyFromObject(obj)}] = true
			s.mu.Unlock()
		}
	}
	if err != nil {
		return err
	}
	if lost {
		return apierrors.NewTimeoutError("the storm took the answer", 1)
	}
	return nil
}

// refused says whether the API server has said that a write was not done.
func refused(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500
}

// cacheOf names the cache that an object or list is read from: types that are seen in another form have one of their own, as in a manager.
func (s *StormClient) cacheOf(obj runtime.Object) (string, error) {
	kind, err := s.real.GroupVersionKindFor(obj)
	if err != nil {
		return "", err
	}
	form := "typed"
	switch obj.(type) {
	case runtime.Unstructured:
		form = "unstructured"
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		form = "metadata"
	}
	return form + " " + kind.Group + "/" + strings.TrimSuffix(kind.Kind, "List"), nil
}

func exactly(version string) client.ListOption {
	return &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact}}
}

// late does a read at the version that the cache of obj is at; empty: as it is now. A version that etcd does not know any more is as new as it gets, as
// after the list that a watch begins anew with.
func (s *StormClient) late(ctx context.Context, obj runtime.Object, do func(version string) error) error {
	cache, err := s.cacheOf(obj)
	if err != nil {
		return err
	}
	version, err := s.version(ctx, cache)
	if err != nil {
		return err
	}
	if err = do(version); apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return do("")
	}
	return err
}

func (s *StormClient) cachedList(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	return s.late(ctx, list, func(version string) error {
		if version == "" {
			return c.List(ctx, list, opts...)
		}
		return c.List(ctx, list, append(slices.Clone(opts), exactly(version))...)
	})
}

func (s *StormClient) cachedGet(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	return s.late(ctx, into, func(version string) error {
		if version == "" {
			return c.Get(ctx, key, into, opts...)
		}
		return getAt(ctx, c, key, into, version)
	})
}

// getAt reads an object as it was. A single one can't be asked for like that, a list can.
func getAt(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, version string) error {
	kind, err := c.GroupVersionKindFor(into)
	if err != nil {
		return err
	}
	list, err := listOf(c.Scheme(), into, kind)
	if err != nil {
		return err
	}
	if err := c.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{metav1.ObjectNameField: key.Name}, exactly(version)); err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(items[0]).Elem())
	into.GetObjectKind().SetGroupVersionKind(kind)
	return nil
}

func listOf(scheme *runtime.Scheme, obj client.Object, kind schema.GroupVersionKind) (client.ObjectList, error) {
	kind.Kind += "List"
	switch obj.(type) {
	case runtime.Unstructured:
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		return list, nil
	case *metav1.PartialObjectMetadata:
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		return list, nil
	}
	list, err := scheme.New(kind)
	if err != nil {
		return nil, err
	}
	return list.(client.ObjectList), nil
}

func (s *StormClient) funcs(cached bool) interceptor.Funcs {
	get := func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		return s.read(func() error { return c.Get(ctx, key, obj, opts...) })
	}
	list := func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		return s.read(func() error { return c.List(ctx, list, opts...) })
	}
	if cached {
		get, list = s.cachedGet, s.cachedList // which no API server that is away keeps from answering
	}
	return interceptor.Funcs{
		Get: get, List: list,
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return s.write(obj, func() error { return c.Create(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return s.write(nil, func() error { return c.Delete(ctx, obj, opts...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption) error {
			return s.write(nil, func() error { return c.DeleteAllOf(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return s.write(obj, func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			return s.write(obj, func() error { return c.Patch(ctx, obj, p, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return s.write(nil, func() error { return c.Apply(ctx, obj, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, obj, body client.Object, opts ...client.SubResourceCreateOption) error {
			return s.write(nil, func() error { return c.SubResource(sub).Create(ctx, obj, body, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return s.write(nil, func() error { return c.SubResource(sub).Update(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return s.write(nil, func() error { return c.SubResource(sub).Patch(ctx, obj, p, opts...) })
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			return s.write(nil, func() error { return c.SubResource(sub).Apply(ctx, obj, opts...) })
		},
	}
}

// Storm runs a reconciler on a fine day and then, in worlds of their own, through as many storms as seeds says: each some runs with caches that are
// behind, refused requests and lost answers, then the weather clears. It must end as on the fine day, with as many objects of each kind (what a stale cache
// made twice would be left), and without more writes than it takes to do everything anew in each run. STORM_SEED plays one seed; STORM_SEEDS is how many
// there are.
func Storm(t *testing.T, seeds uint64, fresh func(t testing.TB) CrashCase) {
	t.Helper()
	defer collectLess()()
	var fine int
	var want map[string]int
	t.Run("When the day is fine it should settle", func(t *testing.T) {
		fine, want = weather(t, 0, 0, fresh(t))
	})
	first := uint64(1)
	if one, err := strconv.ParseUint(os.Getenv("STORM_SEED"), 10, 64); err == nil {
		first, seeds = one, 1
	} else if n, err := strconv.ParseUint(os.Getenv("STORM_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	for seed := first; seed < first+seeds && !t.Failed(); seed++ {
		t.Run(fmt.Sprintf("When storm %d has gone by it should end in the same state", seed), func(t *testing.T) {
			writes, left := weather(t, seed, stormyRuns, fresh(t))
			if !maps.Equal(left, want) {
				t.Errorf("it left %v, on a fine day %v", left, want)
			}
			// What is behind may be written once more per run, and a run that was cut short did less.
			if bound := (stormyRuns+1)*fine + calmRuns; writes > bound {
				t.Errorf("it wrote %d times, on a fine day %d times, and no more than %d are bearable", writes, fine, bound)
			}
			t.Logf("%d writes, %d on a fine day", writes, fine)
		})
	}
}

func weather(t *testing.T, seed uint64, stormy int, world CrashCase) (writes int, left map[string]int) {
	c, err := NewStormClient(t.Context(), world.Client, seed)
	if err != nil {
		t.Fatal(err)
	}
	for range stormy {
		if err := world.Run(c); err != nil {
			t.Logf("in the storm: %v", err)
		}
	}
	c.Calm()
	for range calmRuns {
		if err = world.Run(c); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatalf("after the storm: %v", err)
	}
	world.Check(t)
	if left, err = c.Left(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c.Writes(), left
}
