package hostedcontrolplane

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

func TestBootstrapper(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "clusterrolebindings"}, "hcco-cluster-admin", errors.New("a webhook says no"))
	start := func(t *testing.T, ensure func(context.Context, []byte) error) (*bootstrapper, *atomic.Int32) {
		woken := &atomic.Int32{}
		return &bootstrapper{clock: clock.RealClock{}, ensure: ensure, changed: func(context.Context) { woken.Add(1) }, background: t.Context()}, woken
	}
	t.Run("When they were not seen yet it should wait, and say what is wrong", func(t *testing.T) {
		g := NewWithT(t)
		b, _ := start(t, func(context.Context, []byte) error { return refused })
		g.Expect(b.Ensure(t.Context(), []byte("k"))).To(MatchError(refused))
		g.Expect(b.Ensure(t.Context(), []byte("k"))).To(MatchError(refused))
	})
	t.Run("When the API hangs later no pass should wait for it, and what was seen should hold", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			calls := atomic.Int32{}
			b, woken := start(t, func(ctx context.Context, _ []byte) error {
				if calls.Add(1) == 1 {
					return nil
				}
				time.Sleep(5 * time.Second)
				return context.DeadlineExceeded
			})
			g.Expect(b.Ensure(t.Context(), []byte("k"))).To(Succeed())
			for range 40 {
				began := time.Now()
				g.Expect(b.Ensure(t.Context(), []byte("k"))).To(Succeed())
				g.Expect(time.Since(began)).To(BeZero())
				time.Sleep(time.Second)
			}
			g.Expect(calls.Load()).To(BeNumerically("~", 5, 1), "one look at a time, and a pause between two")
			g.Expect(woken.Load()).To(BeZero())
			time.Sleep(time.Minute)
		})
	})
	t.Run("When they can't be made any more it should cause a pass, which says so", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			refusing := atomic.Bool{}
			b, woken := start(t, func(context.Context, []byte) error {
				if refusing.Load() {
					return refused
				}
				return nil
			})
			g.Expect(b.Ensure(t.Context(), []byte("k"))).To(Succeed())
			refusing.Store(true)
			g.Expect(b.Ensure(t.Context(), []byte("k"))).To(Succeed())
			time.Sleep(bootstrapFresh + time.Second)
			g.Expect(woken.Load()).To(Equal(int32(1)))
			g.Expect(b.Ensure(t.Context(), []byte("k"))).To(MatchError(refused))
			refusing.Store(false)
			g.Expect(b.Ensure(t.Context(), []byte("k"))).To(Succeed())
		})
	})
	t.Run("When one was deleted the next pass should have it made again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			there := atomic.Bool{}
			b, _ := start(t, func(context.Context, []byte) error { there.Store(true); return nil })
			g.Expect(b.Ensure(t.Context(), []byte("k"))).To(Succeed())
			there.Store(false)
			g.Expect(b.Ensure(t.Context(), []byte("k"))).To(Succeed())
			time.Sleep(bootstrapFresh + time.Second)
			g.Expect(there.Load()).To(BeTrue())
		})
	})
	t.Run("When the kubeconfig is another one it should look before it believes", func(t *testing.T) {
		g := NewWithT(t)
		var answer error
		b, _ := start(t, func(context.Context, []byte) error { return answer })
		g.Expect(b.Ensure(t.Context(), []byte("k"))).To(Succeed())
		answer = refused
		g.Expect(b.Ensure(t.Context(), []byte("other"))).To(MatchError(refused))
	})
}
