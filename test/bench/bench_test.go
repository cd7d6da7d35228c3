//go:build bench

package bench

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// What the project wants, printed beside what is.
const (
	targetAvailable = 3.0  // × the floor's time until the API server is ready
	targetMemory    = 1.25 // × the floor's four processes
	targetFleet     = 1.3  // × the floor's CPU seconds for all of them, on all cores
	targetDeleted   = 5.0  // seconds
	targetRest      = 2.5  // % of a core, all pods of a control plane
	targetOperator  = 150  // MiB of the hypershift-operator
	targetIdle      = 2.0  // % of a core, all our operators together
	targetWorker    = 2.5  // × a bare kubelet and containerd in the same kind of pod
)

var (
	runs    = number("BENCH_RUNS", 3)
	fleet   = number("HOSTED_CLUSTERS", 15)
	workers = number("WORKERS", 10)
	settle  = duration("BENCH_SETTLE", 30*time.Second)
	idle    = duration("BENCH_IDLE", time.Minute)
)

func TestMain(m *testing.M) {
	// Ctrl-C must not leave a cluster behind that we started.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		stopCluster()
		os.Exit(130)
	}()
	code := m.Run()
	stopCluster()
	os.Exit(code)
}

// BenchmarkFloor prints the floor alone.
func BenchmarkFloor(b *testing.B) {
	f := floor(b)
	t := newTable("Floor: bare processes, started all at once", "process", "CPU until ready", "RSS", "PSS")
	for _, name := range programs {
		t.add(name, seconds(f.cpuOf[name]), mib(f.memoryOf[name].rss), mib(f.memoryOf[name].pss))
	}
	t.add("together", seconds(f.cpu), mib(f.memory.rss), mib(f.memory.pss))
	t.print()
	fmt.Printf("kube-apiserver is ready after %s, median of %d runs on %d cores.\n", seconds(f.ready), runs, runtime.NumCPU())
	report(b, map[string]float64{"ready-s": f.ready, "cpu-s": f.cpu, "rss-MiB": f.memory.rss / mebi})
}

// report replaces the time per operation, which says nothing here.
func report(b *testing.B, figures map[string]float64) {
	b.ReportMetric(0, "ns/op")
	for unit, v := range figures {
		b.ReportMetric(v, unit)
	}
}

// pause waits where the length of an observation is the point, and there is no event to wait for.
func pause(b *testing.B, d time.Duration) {
	b.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.Context().Done():
		b.Fatal(b.Context().Err())
	}
}

func number(name string, fallback int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return fallback
}

func duration(name string, fallback time.Duration) time.Duration {
	if d, err := time.ParseDuration(os.Getenv(name)); err == nil && d > 0 {
		return d
	}
	return fallback
}
