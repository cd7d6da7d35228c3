package consoletest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"hcp.internal/platform/config"
)

// makers is how many objects are made at a time.
const makers = 16

// Many makes a fleet for measurements: n hosted clusters with some NodePools each, in twenty namespaces, with the conditions that real ones have. There are no
// control planes behind them.
func Many(b *testing.B, cfg *rest.Config, c client.Client, n, pools int) {
	b.Helper()
	crds, err := config.PackageOperatorCRDs()
	if err != nil {
		b.Fatal(err)
	}
	if _, err := envtest.InstallCRDs(cfg, envtest.CRDInstallOptions{CRDs: crds, MaxTime: 3 * time.Minute}); err != nil {
		b.Fatalf("installing the definitions of packages: %v", err)
	}
	w := &World{Client: c, t: b, now: time.Now(), bare: true}
	const namespaces = 20
	for i := range namespaces {
		if err := c.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("team-%d", i)}}); err != nil {
			b.Fatal(err)
		}
	}
	next := make(chan int)
	var wait sync.WaitGroup
	for range makers {
		wait.Go(func() {
			for i := range next {
				f := &cluster{ns: fmt.Sprintf("team-%d", i%namespaces), name: fmt.Sprintf("cluster-%04d", i), tier: fmt.Sprint(i % 4), version: "1.36.3"}
				if i%25 == 0 {
					f.bad = fleet[0].bad
				}
				w.cluster(f)
				for p := range pools {
					w.pool(f, fmt.Sprintf("%s-%d", f.name, p), 3, 3)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wait.Wait()
}
