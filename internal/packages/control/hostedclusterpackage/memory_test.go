package hostedclusterpackage

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/control/rollout"
)

func TestApplied(t *testing.T) {
	pkg := func(uid types.UID, generation int64, version string) *packagesv1.Package {
		return &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "a", UID: uid, Generation: generation, ResourceVersion: version}}
	}
	known := func(do func(*applied)) *applied {
		a := &applied{}
		a.put("a", generation{uid: "1", number: 3, version: "20"})
		if do != nil {
			do(a)
		}
		return a
	}
	for name, tc := range map[string]struct {
		after func(*applied)
		pkg   *packagesv1.Package
		fresh bool
	}{
		"When a cache shows our last change it should be fresh":                   {nil, pkg("1", 3, "20"), true},
		"When a cache shows what somebody did later it should be, too":            {nil, pkg("1", 4, "21"), true},
		"When a cache lags it should not be fresh":                                {nil, pkg("1", 2, "19"), false},
		"When a cache lags behind what counts for no generation it should not be": {nil, pkg("1", 3, "19"), false},
		"When resourceVersions can't be compared generations should decide":       {nil, pkg("1", 2, "x"), false},
		"When it is another one of that name it should not be fresh":              {nil, pkg("2", 4, "21"), false},
		"When the end of a change isn't known it should not be fresh":             {func(a *applied) { a.forget("a") }, pkg("1", 4, "21"), false},
		"When it is in flight no more it should be forgotten":                     {func(a *applied) { a.keep(nil) }, pkg("1", 4, "21"), false},
		"When it is still in flight it should be kept": {func(a *applied) {
			a.keep([]packagesv1.HostedClusterPackageRefStatus{{Namespace: "b"}, {Namespace: "a"}})
		}, pkg("1", 3, "20"), true},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(known(tc.after).fresh(tc.pkg)).To(Equal(tc.fresh))
		})
	}
}

func TestMemory(t *testing.T) {
	owner := func(uid types.UID, version string) *packagesv1.HostedClusterPackage {
		return &packagesv1.HostedClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: "addon", UID: uid, ResourceVersion: version}}
	}
	for name, tc := range map[string]struct {
		saw, cached *packagesv1.HostedClusterPackage
		want        string
	}{
		"When nothing is known it should take the cache's":                   {nil, owner("1", "7"), "7"},
		"When our last write isn't in the cache it should take what it left": {owner("1", "10"), owner("1", "9"), "10"},
		"When the cache has later changes it should take those":              {owner("1", "10"), owner("1", "11"), "11"},
		"When it is another one of that name it should take the cache's":     {owner("1", "10"), owner("2", "9"), "9"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &memory{}
			if tc.saw != nil {
				m.saw(tc.saw)
			}
			NewWithT(t).Expect(m.newest(tc.cached).ResourceVersion).To(Equal(tc.want))
		})
	}
}

// TestReads is what a step asks past the cache.
func TestReads(t *testing.T) {
	w := newWorld(t, nil, "a", "b", "c")
	var reads atomic.Int32
	lost := false
	c := interceptor.NewClient(w.c, interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
		err := c.Apply(ctx, obj, opts...)
		if lost {
			return errors.New("the answer is lost")
		}
		return err
	}})
	r := w.reconciler(c)
	r.Live = interceptor.NewClient(w.c, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		reads.Add(1)
		return c.Get(ctx, key, obj, opts...)
	}})
	w.pass(r)
	for _, name := range []string{"a", "b", "c"} {
		w.settle(name, true)
	}
	w.pass(r)
	w.template("v2")
	w.pass(r)
	t.Run("When the cache shows what we changed up it should not ask again", func(t *testing.T) {
		w.settle("a", true)
		reads.Store(0)
		w.pass(r)
		w.g.Expect(w.image("b")).To(HaveSuffix("v2"))
		w.g.Expect(reads.Load()).To(BeZero())
	})
	t.Run("When there is a deadline it should know when it made its changes itself", func(t *testing.T) {
		w.change(func(p *packagesv1.HostedClusterPackage) {
			p.Annotations = map[string]string{packagesv1.RolloutDeadlineAnnotation: "10m"}
		})
		w.settle("b", false)
		reads.Store(0)
		result := w.pass(r)
		w.g.Expect(reads.Load()).To(BeZero())
		w.g.Expect(result.RequeueAfter).To(And(BeNumerically(">", time.Minute), BeNumerically("<=", 5*time.Minute)))
		in := rollout.Observed{Settings: settings(w.read()), Packages: map[string]rollout.Package{}, Processing: w.read().Status.Processing}
		b := w.pkg("b")
		in.Packages[b.Namespace] = rollout.Package{UID: b.UID, Fresh: true}
		w.g.Expect(r.readTimes(t.Context(), &in, r.memory.applied(w.owner))).To(Succeed())
		w.g.Expect(in.Packages[b.Namespace].AppliedAt).To(BeTemporally("==", appliedAt(b)))
		w.change(func(p *packagesv1.HostedClusterPackage) { p.Annotations = nil })
	})
	t.Run("When the end of a change isn't known it should look", func(t *testing.T) {
		w.settle("b", true)
		lost = true
		_, err := r.Reconcile(t.Context(), w.request())
		w.g.Expect(err).To(MatchError(ContainSubstring("lost")))
		lost = false
		reads.Store(0)
		w.g.Expect(w.image("c")).To(HaveSuffix("v2"))
		w.settle("c", true)
		w.pass(r)
		w.g.Expect(reads.Load()).To(Equal(int32(1)))
		w.g.Expect(w.condition("Progressing")).To(Equal("False AllPackagesProgressed 3/3 packages progressed."))
	})
	t.Run("When the process is another one it should look", func(t *testing.T) {
		w.template("v3")
		w.pass(r)
		w.settle("a", true)
		live := r.Live
		r = w.reconciler(w.c)
		r.Live = live
		reads.Store(0)
		w.pass(r)
		w.g.Expect(reads.Load()).To(Equal(int32(2)), "at the HostedClusterPackage and at the Package")
		w.g.Expect(w.image("b")).To(HaveSuffix("v3"))
	})
	t.Run("When the HostedClusterPackage is gone meanwhile it should change nothing", func(t *testing.T) {
		w.settle("b", true)
		before := w.read()
		c := interceptor.NewClient(w.c, interceptor.Funcs{Get: func(_ context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if p, ok := obj.(*packagesv1.HostedClusterPackage); ok {
				before.DeepCopyInto(p) // a cache that does not know yet
				return nil
			}
			return c.Get(t.Context(), key, obj, opts...)
		}})
		r.Client = c
		w.g.Expect(w.c.Delete(t.Context(), w.owner)).To(Succeed())
		_, err := r.Reconcile(t.Context(), w.request())
		w.g.Expect(err).NotTo(HaveOccurred())
		w.g.Expect(w.image("c")).To(HaveSuffix("v2"))
	})
}
