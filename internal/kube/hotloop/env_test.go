package hotloop

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// fight has two managers apply a value of their own until ctx ends, each as fast as the other answers.
func fight(ctx context.Context, t *testing.T, c kubernetes.Interface, ns string) {
	t.Helper()
	for i := 0; ctx.Err() == nil; i++ {
		side := []string{"here", "there"}[i%2]
		_, err := c.CoreV1().ConfigMaps(ns).Apply(ctx, corev1ac.ConfigMap("contested", ns).WithData(map[string]string{"side": side}),
			metav1.ApplyOptions{FieldManager: side, Force: true})
		if err != nil && ctx.Err() == nil {
			t.Errorf("applying: %v", err)
			return
		}
	}
}

func TestRealFight(t *testing.T) {
	env := testenv.Start(t)
	c, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	for name, obj := range map[string]client.Object{
		"When two managers fight over a value of an object that is cached it should name them and the value":      &corev1.ConfigMap{},
		"When two managers fight over a value of which only metadata is cached it should name them and the value": &metav1.PartialObjectMetadata{},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ns := env.Namespace(t)
			if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
				m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			}
			d, events := New(scheme(t), clock.RealClock{}), &told{}
			cached, err := cache.New(env.Config, d.Watch(cache.Options{
				Scheme: scheme(t), DefaultTransform: cache.TransformStripManagedFields(), DefaultNamespaces: map[string]cache.Config{ns: {}},
			}))
			g.Expect(err).NotTo(HaveOccurred())
			_, err = cached.GetInformer(t.Context(), obj)
			g.Expect(err).NotTo(HaveOccurred())
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go func() { _ = cached.Start(ctx) }()
			go func() { _ = d.Report(ctx, Reporter{Events: events, Log: logr.Discard()}) }()
			g.Expect(cached.WaitForCacheSync(ctx)).To(BeTrue())

			// What comes up is written as often at first, but does not go back.
			for i := range 2 * fightReturns {
				_, err := c.CoreV1().ConfigMaps(ns).Apply(ctx, corev1ac.ConfigMap("growing", ns).WithData(map[string]string{fmt.Sprint(i): "x"}),
					metav1.ApplyOptions{FieldManager: "grows", Force: true})
				g.Expect(err).NotTo(HaveOccurred())
			}
			fighting, end := context.WithCancel(ctx)
			done := make(chan struct{})
			go func() { defer close(done); fight(fighting, t, c, ns) }()
			g.Eventually(events.all, 3*time.Minute).Should(HaveExactElements(
				MatchRegexp(`^ConfigMap contested HotLoop: Written [0-9]+ times within 5 minutes by here, there; these fields go back and forth: data.side$`)))
			end()
			<-done
			g.Expect(events.all()).To(HaveLen(1), "it is told once")
		})
	}
}
