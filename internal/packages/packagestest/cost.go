package packagestest

import (
	"syscall"
	"testing"
	"time"
)

const (
	// RefusalTime is how much processor time refusing anything may take. The time on the wall depends on what else the machine does.
	RefusalTime = 10 * time.Second
	// RefusalMemory is how much memory it may take.
	RefusalMemory = 256 << 20
)

// CPU is the processor time that this process has used.
func CPU(t testing.TB) time.Duration {
	t.Helper()
	usage := syscall.Rusage{}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatalf("reading the processor time of this process: %v", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// ExpectCheap fails when do takes more processor time than RefusalTime (Shadow times that with the race detector), or when this process has
// ever had more than RefusalMemory. Nothing else may run beside it.
func ExpectCheap(t testing.TB, do func()) {
	t.Helper()
	used, begin := CPU(t), time.Now()
	do()
	used = CPU(t) - used
	t.Logf("%.2f s of processor time, %.2f s in all", used.Seconds(), time.Since(begin).Seconds())
	if used > Shadow*RefusalTime {
		t.Errorf("used %s of processor time, at most %s allowed", used, Shadow*RefusalTime)
	}
	ExpectMemoryBelow(t, RefusalMemory)
}
