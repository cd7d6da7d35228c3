package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/console/access"
	"hcp.internal/platform/internal/console/server"
	"hcp.internal/platform/internal/console/world"
	"hcp.internal/platform/internal/why"
)

// BenchmarkFleet measures the list of fleets of 1,000 and 5,000 hosted clusters with three NodePools each: its time on the server, its size on the way, and
// the memory that the rows need.
//
//	go test -run '^$' -bench Fleet ./internal/console/server
func BenchmarkFleet(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		for _, path := range []string{"/api/v1/fleet?show=all", "/api/v1/fleet?show=notwell", "/api/v1/fleet?show=all&q=cluster-07"} {
			b.Run(fmt.Sprintf("%d%s", n, path[len("/api/v1/fleet"):]), func(b *testing.B) { fleetOf(b, n, path) })
		}
	}
}

func fleetOf(b *testing.B, n int, path string) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w, now := world.New(), time.Now()
	for i := range n {
		row := &world.Cluster{Namespace: fmt.Sprintf("team-%d", i%20), Name: fmt.Sprintf("cluster-%04d", i), Health: why.Healthy, Version: fmt.Sprintf("1.36.%d", i%4), Platform: "AWS", Created: now,
			Labels: map[string]string{"tier": fmt.Sprint(i % 4)}}
		if i%25 == 0 {
			row.Health, row.Cause, row.Since = why.Degraded, fmt.Sprintf("EtcdAvailable=False (EtcdWaitingForQuorum): %d of 3 etcd members are ready", i%3), &now
		}
		w.Put(world.Clusters, world.Key{Namespace: row.Namespace, Name: row.Name}, row)
		for p := range 3 {
			pool := &world.Pool{Namespace: row.Namespace, Name: fmt.Sprintf("%s-%d", row.Name, p), Cluster: row.Name, Health: why.Healthy, Ready: 3, Wanted: 3, Created: now}
			w.Put(world.Pools, world.Key{Namespace: pool.Namespace, Name: pool.Name}, pool)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	gate := &access.Own{User: "alice"}
	token, _ := gate.Exchange(gate.Ticket())
	clk := &still{clock.RealClock{}, now}
	h := (&server.Server{World: w, Gate: gate, Log: logr.Discard(), Clock: clk}).Handler()
	var took []time.Duration
	size := 0
	for b.Loop() {
		clk.now = clk.now.Add(time.Second) // nobody is refused for asking too often
		r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Accept-Encoding", "gzip")
		out := httptest.NewRecorder()
		began := time.Now()
		h.ServeHTTP(out, r)
		took = append(took, time.Since(began))
		if size = out.Body.Len(); out.Code != http.StatusOK {
			b.Fatal(out.Code)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
	b.ReportMetric(float64(size)/1000, "kB-sent")
	b.ReportMetric(float64(after.HeapAlloc-min(before.HeapAlloc, after.HeapAlloc))/1e6, "MB-rows")
}

// still is a clock that moves when it is told to.
type still struct {
	clock.PassiveClock
	now time.Time
}

func (s *still) Now() time.Time { return s.now }
