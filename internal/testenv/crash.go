package testenv

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxWrites bounds CrashAtEveryWrite: code that writes more often has a loop of its own.
const maxWrites = 400

// CrashCase is one world in which CrashAtEveryWrite interrupts a reconciler.
type CrashCase struct {
	// Client reaches the API server undisturbed.
	Client client.WithWatch
	// Run makes a fresh reconciler on c (a process has no memory across a crash) and calls it until it settles or fails.
	Run func(c client.WithWatch) error
	// Check asserts the end state, which must be the same as in an undisturbed run.
	Check func(t testing.TB)
}

// CrashAtEveryWrite runs a reconciler once for every write that it makes and every kind of fault, interrupts it there,
// runs it again undisturbed and checks the end. fresh makes a new world (its own namespace) for each of those runs.
// every above 1 tries only each every-th write, for reconcilers whose run is slow, and other ones for each kind of fault; 1 tries all.
// The environment variable CRASH_STEP replaces it (make crash).
func CrashAtEveryWrite(t *testing.T, every int, fresh func(t testing.TB) CrashCase) {
	t.Helper()
	defer collectLess()()
	if step, err := strconv.Atoi(os.Getenv("CRASH_STEP")); err == nil && step > 0 {
		every = step
	}
	faults := []struct {
		fault Fault
		name  string
	}{{FailWrite, "fails"}, {DropAnswer, "loses its answer"}, {Crash, "is the last one before a crash"}}
	for i, f := range faults {
		fault, name := f.fault, f.name
		for at := 1 + i*every/len(faults); ; at += every {
			if at > maxWrites {
				t.Fatalf("more than %d writes: the reconciler does not settle", maxWrites)
			}
			fired := false
			t.Run(fmt.Sprintf("When write %d %s it should end in the same state", at, name), func(t *testing.T) {
				world := fresh(t)
				faulty := NewFaultClient(world.Client, fault, at)
				// The error is the point of the exercise; what counts is the state after the next run.
				_ = world.Run(faulty)
				fired = faulty.Fired()
				if err := world.Run(world.Client); err != nil {
					t.Fatalf("running again after the fault: %v", err)
				}
				world.Check(t)
			})
			if !fired || t.Failed() {
				break
			}
		}
	}
}

// Settle starts reconcilers on c and makes passes with them until one writes nothing: with nothing changed, another one would do the same. It ends after most
// passes in any case, and with the first error. In a storm it makes all of them: who writes nothing there may not have heard yet.
func Settle(c client.WithWatch, most int, start func(c client.WithWatch) (pass func() error)) error {
	storm, ok := c.(*StormClient)
	stormy := ok && storm.stormy()
	counting := NewFaultClient(c, FailWrite, 0)
	pass := start(counting)
	for range most {
		before := counting.Writes()
		if err := pass(); err != nil {
			return err
		}
		if counting.Writes() == before && !stormy {
			return nil
		}
	}
	return nil
}

// collectLess lets this process have as much garbage as API servers of tests, until what it returns is called: suites decode some hundred thousand answers. GOGC in
// the environment turns it off.
func collectLess() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(garbage)
	return func() { debug.SetGCPercent(before) }
}

// ExpectQuiet runs a settled reconciler again and fails when it writes anything.
func ExpectQuiet(t testing.TB, c client.WithWatch, run func(c client.WithWatch) error) {
	t.Helper()
	counting := NewFaultClient(c, FailWrite, 0)
	if err := run(counting); err != nil {
		t.Fatalf("running the settled reconciler: %v", err)
	}
	if n := counting.Writes(); n != 0 {
		t.Errorf("a pass with nothing changed made %d writes, want none", n)
	}
}
