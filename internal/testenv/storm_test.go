package testenv

import (
	"context"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func coreClient(t testing.TB) client.WithWatch {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return Start(t).Client(t, scheme)
}

func configMap(ns, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
}

// until asks as often as a seeded chance of 1 in 4 may take, and of troubles.
func until(t *testing.T, ask func() bool) {
	t.Helper()
	for range 200 {
		if ask() {
			return
		}
	}
	t.Fatal("it never happened")
}

func TestStormClient(t *testing.T) {
	real := coreClient(t)
	ns := Start(t).Namespace(t)
	t.Run("When a cache is behind it should show what was, all of it, and never go back", func(t *testing.T) {
		g := NewWithT(t)
		var c *StormClient
		seen := map[int]bool{}
		for seed := uint64(1); seed <= 6; seed++ {
			ns = Start(t).Namespace(t)
			var err error
			c, err = NewStormClient(t.Context(), real, seed)
			g.Expect(err).NotTo(HaveOccurred())
			for _, name := range []string{"one", "two"} {
				g.Expect(real.Create(t.Context(), configMap(ns, name))).To(Succeed())
			}
			for last := 0; last < 2; {
				list := &corev1.ConfigMapList{}
				g.Expect(c.List(t.Context(), list, client.InNamespace(ns))).To(Succeed())
				n := len(list.Items)
				g.Expect(n).To(BeNumerically(">=", last))
				seen[n], last = true, n
				got := configMap("", "")
				err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "one"}, got)
				g.Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
				if n > 0 {
					g.Expect(err).NotTo(HaveOccurred(), "an object is read from the cache that it is listed from")
					g.Expect(got.Name+" "+got.Kind).To(Equal("one ConfigMap"), "caches say the kind")
				}
			}
		}
		g.Expect(seen).To(Equal(map[int]bool{0: true, 2: true}))

		old := configMap("", "")
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "one"}, old)).To(Succeed())
		changed := old.DeepCopy()
		changed.Data = map[string]string{"k": "v"}
		g.Expect(real.Update(t.Context(), changed)).To(Succeed())
		old.Data = map[string]string{"k": "from what was"}
		until(t, func() bool { return apierrors.IsConflict(c.Update(t.Context(), old)) })
		until(t, func() bool {
			got := configMap("", "")
			return Uncached(c).Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "one"}, got) == nil && got.Data["k"] == "v"
		})
	})
	t.Run("When the storm is over it should be a client like others", func(t *testing.T) {
		g := NewWithT(t)
		c, err := NewStormClient(t.Context(), real, 8)
		g.Expect(err).NotTo(HaveOccurred())
		c.Calm()
		for range 40 {
			cm := configMap(ns, "")
			cm.GenerateName = "calm-"
			g.Expect(c.Create(t.Context(), cm)).To(Succeed())
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(cm), configMap("", ""))).To(Succeed())
			g.Expect(NewFaultClient(c, FailWrite, 0).Delete(t.Context(), cm)).To(Succeed())
		}
		g.Expect(c.Writes()).To(Equal(80))
		g.Expect(c.Left(t.Context())).To(BeEmpty())
	})
	t.Run("When a request is cancelled after it was done, what it wrote should count, and nothing that was refused", func(t *testing.T) {
		g := NewWithT(t)
		cancelled := interceptor.NewClient(real, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := c.Create(ctx, obj, opts...); err != nil {
				return err
			}
			return context.Canceled
		}})
		c, err := NewStormClient(t.Context(), cancelled, 0)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(real.Create(t.Context(), configMap(ns, "others"))).To(Succeed())
		g.Expect(c.Create(t.Context(), configMap(ns, "cancelled"))).To(MatchError(context.Canceled))
		g.Expect(apierrors.IsAlreadyExists(c.Create(t.Context(), configMap(ns, "others")))).To(BeTrue())
		g.Expect(c.Left(t.Context())).To(Equal(map[string]int{"ConfigMap": 1}))
	})
}

// TestStorm holds the storm to what it is for: it finds a reconciler that trusts its cache.
func TestStorm(t *testing.T) {
	real := coreClient(t)
	// naive makes one object, unless it sees that it has done so; the name is the API server's to choose, or its own.
	naive := func(generate, name string) func(t testing.TB) CrashCase {
		return func(t testing.TB) CrashCase {
			ns := Start(t).Namespace(t)
			return CrashCase{Client: real, Check: func(testing.TB) {}, Run: func(c client.WithWatch) error {
				list := &corev1.ConfigMapList{}
				if err := c.List(context.Background(), list, client.InNamespace(ns)); err != nil || len(list.Items) > 0 {
					return err
				}
				cm := configMap(ns, name)
				cm.GenerateName = generate
				return c.Create(context.Background(), cm)
			}}
		}
	}
	most := func(t *testing.T, fresh func(t testing.TB) CrashCase) (n int) {
		for seed := uint64(1); seed <= 5; seed++ {
			_, left := weather(t, seed, stormyRuns, fresh(t))
			n = max(n, left["ConfigMap"])
		}
		return n
	}
	t.Run("When a reconciler makes what its cache does not show, it should be found", func(t *testing.T) {
		NewWithT(t).Expect(most(t, naive("made-", ""))).To(BeNumerically(">", 1))
	})
	t.Run("When names are its own, it should pass", func(t *testing.T) {
		NewWithT(t).Expect(most(t, naive("", "made"))).To(Equal(1))
	})
}
