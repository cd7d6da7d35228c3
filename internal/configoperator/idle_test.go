package configoperator

import (
	"context"
	"os"
	"runtime/pprof"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/testenv"
)

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkIdle prints what the whole operator costs per minute in which nothing happens. IDLE_PROFILE names a file for a profile of that
// time, -cpuprofile has the start in it, too.
func BenchmarkIdle(b *testing.B) {
	g := NewWithT(b)
	w, config := newWorld(b), testenv.Start(b).Config
	o := Options{Namespace: w.hcp.Namespace, HostedControlPlane: w.hcp.Name, PlatformType: "None", Controllers: []string{"*"}, MetricsAddr: "0", HealthAddr: "0", LeaderElect: true}
	mgr, err := newManager(config, bounded(config), o)
	g.Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	b.Cleanup(func() { stop(); <-ended })
	g.Eventually(func() bool {
		hcp := &hyperv1.HostedControlPlane{}
		g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(w.hcp), hcp)).To(Succeed())
		return conditions.IsTrue(hcp.Status.Conditions, hyperv1.ConfigOperatorReconciliationSucceeded)
	}).WithTimeout(2 * time.Minute).Should(BeTrue())

	const settle, watched = 10 * time.Second, time.Minute
	wait := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-b.Context().Done():
			b.Fatal(b.Context().Err())
		}
	}
	wait(settle)
	if file := os.Getenv("IDLE_PROFILE"); file != "" {
		f, err := os.Create(file)
		g.Expect(err).NotTo(HaveOccurred())
		defer f.Close()
		g.Expect(pprof.StartCPUProfile(f)).To(Succeed())
		defer pprof.StopCPUProfile()
	}
	before := processorTime(b)
	wait(watched)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000, "idle-ms/min")
}
