package hostedcontrolplane

import (
	"context"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/kube/fresh"
)

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSettled prints what a settled control plane costs the operator: processor time per pass, and per minute in which
// nothing happens.
func BenchmarkSettled(b *testing.B) {
	g := NewWithT(b)
	w := newWorld(b)
	mgr, err := newManager(w.env.Config, Options{Namespace: w.hcp.Namespace, MetricsAddr: "0", HealthAddr: "0", LeaderElect: true})
	g.Expect(err).NotTo(HaveOccurred())
	clk := clock.RealClock{}
	wake := newWaker(mgr.GetCache(), w.hcp.Namespace)
	ctx, stop := context.WithCancel(b.Context())
	r := w.reconciler(fresh.New(mgr.GetClient(), clk, componentKind))
	r.Live, r.Clock, r.PKI.Clock, r.Background = mgr.GetAPIReader(), clk, clk, ctx
	g.Expect(setup(mgr, r, wake)).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	b.Cleanup(func() { stop(); <-ended })
	g.Eventually(func() string { w.play(); return condition(w.read(), "Available") }).
		WithTimeout(2 * time.Minute).WithPolling(20 * time.Millisecond).Should(HavePrefix("True"))
	g.Eventually(func() bool { return !w.play() && !w.changesWithin(2*time.Second) }).WithTimeout(time.Minute).Should(BeTrue())

	const watched = 10 * time.Second
	before := processorTime(b)
	select {
	case <-time.After(watched):
	case <-b.Context().Done():
	}
	idle := processorTime(b) - before
	before = processorTime(b)
	for b.Loop() {
		if _, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(idle.Microseconds())/1000*float64(time.Minute/watched), "idle-ms/min") // the loop forgets what was reported before it
}
