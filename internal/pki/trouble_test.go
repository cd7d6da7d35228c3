package pki

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"hcp.internal/platform/internal/testenv"
)

// authorityKeys are the private keys of all authorities that are stored.
func authorityKeys(ctx context.Context, t testing.TB, c client.Client) map[string]string {
	list := &corev1.SecretList{}
	if err := c.List(ctx, list); err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	for _, s := range list.Items {
		if key := s.Data[CAKeyKey]; len(key) > 0 {
			keys[s.Name] = string(key)
		}
	}
	return keys
}

// TestTroubledAPI: with caches that are behind by any number of writes, and an API server that is too busy for some of them, no authority is made twice,
// and everything comes to rest as soon as reads catch up. Few seeds, as each makes some fifty keys; which of the parallel writes meets a busy server isn't
// fixed by them.
func TestTroubledAPI(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("When caches are behind and the server is busy it should make no authority twice (seed %d)", seed), func(t *testing.T) { troubled(t, seed) })
	}
}

func troubled(t *testing.T, seed uint64) {
	ctx := ctrl.LoggerInto(t.Context(), logr.Discard())
	var mu sync.Mutex
	random := mathrand.New(mathrand.NewPCG(seed, 0))
	draw := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	busy := func() error {
		if draw(10) == 0 {
			return apierrors.NewTooManyRequests("the server is busy", 1)
		}
		return nil
	}
	real := fake.NewClientBuilder().Build()
	stale := testenv.NewStaleClient(interceptor.NewClient(real, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := busy(); err != nil {
				return err
			}
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if err := busy(); err != nil {
				return err
			}
			return c.Update(ctx, obj, opts...)
		},
	}))
	clk := clocktesting.NewFakePassiveClock(noon)
	r := &Reconciler{Client: stale, Owner: "test", Clock: clk, Keys: testKeys, Rand: rand.Reader}
	known := map[string]string{}
	check := func() {
		t.Helper()
		for name, key := range authorityKeys(ctx, t, real) {
			if before, ok := known[name]; ok && before != key {
				t.Fatalf("authority %s was made twice", name)
			}
			known[name] = key
		}
	}
	for range 4 {
		if _, err := reconcile(ctx, r); err != nil && !errors.Is(err, ErrOutdated) && !apierrors.IsTooManyRequests(err) {
			t.Fatal(err)
		}
		check()
		if draw(2) == 0 {
			stale.Refresh()
		}
		clk.SetTime(clk.Now().Add(time.Duration(draw(200)) * 24 * time.Hour))
	}
	r.Client = real
	for range 3 {
		plan, err := reconcile(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		check()
		if plan.Empty() {
			return
		}
	}
	t.Fatal("it does not come to rest")
}

func TestStaleClient(t *testing.T) {
	g := NewWithT(t)
	real := fake.NewClientBuilder().Build()
	stale := testenv.NewStaleClient(real)
	key := client.ObjectKey{Namespace: "a", Name: "b"}
	cm := func() *corev1.ConfigMap { return &corev1.ConfigMap{} }
	g.Expect(apierrors.IsNotFound(stale.Get(t.Context(), key, cm()))).To(BeTrue())
	made := cm()
	made.Namespace, made.Name, made.Data = "a", "b", map[string]string{"k": "1"}
	g.Expect(stale.Create(t.Context(), made)).To(Succeed())
	g.Expect(apierrors.IsNotFound(stale.Get(t.Context(), key, cm()))).To(BeTrue(), "When a cache is behind an object should not be there yet")
	stale.Refresh()
	got := cm()
	g.Expect(stale.Get(t.Context(), key, got)).To(Succeed())
	made.Data["k"] = "2"
	g.Expect(real.Update(t.Context(), made)).To(Succeed())
	g.Expect(stale.Get(t.Context(), key, got)).To(Succeed())
	g.Expect(got.Data).To(Equal(map[string]string{"k": "1"}), "When a cache is behind it should be as it was")
	g.Expect(apierrors.IsConflict(stale.Update(t.Context(), got))).To(BeTrue())
}

// reconcile observes, plans and applies once.
func reconcile(ctx context.Context, r *Reconciler) (Plan, error) {
	obs, err := Observe(ctx, r.Client, demo())
	if err != nil {
		return Plan{}, err
	}
	plan := r.Plan(demo(), obs)
	return plan, r.Apply(ctx, plan)
}
