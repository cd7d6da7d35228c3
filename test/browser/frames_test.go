package browser

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"

	"hcp.internal/platform/internal/console/access"
	"hcp.internal/platform/internal/console/consoletest"
	"hcp.internal/platform/internal/console/world"
	"hcp.internal/platform/internal/testenv"
	"hcp.internal/platform/internal/why"
)

// BenchmarkPage measures the list of fleets of 1,000 and 5,000 hosted clusters with three NodePools each, in Chromium: when the first rows are there with a
// processor four times as slow, how many bytes that takes, frames while one scrolls and 100 rows change in a second, and the longest task meanwhile.
//
//	cd test/browser && go test -run '^$' -bench Page -benchtime 1x .
func BenchmarkPage(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { pageOf(b, n) })
	}
}

// frames scrolls for some seconds and gives the time between frames, in milliseconds.
const frames = `new Promise(done => {
	const out = [], end = performance.now() + 15000; let last = 0, y = scrollY, way = 24;
	const step = t => {
		if (last) out.push(t - last);
		last = t;
		if (y + innerHeight >= document.documentElement.scrollHeight || y + way < 0) way = -way;
		y += way; scrollTo(0, y);
		t < end ? requestAnimationFrame(step) : done(out);
	};
	requestAnimationFrame(step);
})`

// firstRows notes when there are rows.
const firstRows = `const look = () => { if (document.querySelector('.row .badge')) window.rowsAt = performance.now(); else requestAnimationFrame(look) }; requestAnimationFrame(look)`

func pageOf(b *testing.B, n int) {
	env := testenv.Start(b)
	c := &console{t: b, world: world.New(), gate: &access.Own{User: "alice", Client: env.Client(b, consoletest.Scheme())}, address: "127.0.0.1:0"}
	now := time.Now()
	names := make([]world.Key, n)
	for i := range names {
		names[i] = world.Key{Namespace: fmt.Sprintf("team-%d", i%20), Name: fmt.Sprintf("cluster-%04d", i)}
		c.world.Put(world.Clusters, names[i], row(names[i], i, now))
		for p := range 3 {
			key := world.Key{Namespace: names[i].Namespace, Name: fmt.Sprintf("%s-%d", names[i].Name, p)}
			c.world.Put(world.Pools, key, &world.Pool{Namespace: key.Namespace, Name: key.Name, Cluster: names[i].Name, Health: why.Healthy, Ready: 3, Wanted: 3, Created: now})
		}
	}
	c.start()
	b.Cleanup(c.stop)
	t := open(b, c)
	for b.Loop() {
		t.received = 0
		t.run(send(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: firstRows}), send(emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: 4}),
			chromedp.Navigate("http://"+c.address+"/?show=all#ticket="+c.gate.Ticket()), shown(".row .badge"))
		b.ReportMetric(eval[float64](t, `rowsAt`), "first-rows-ms")
		b.ReportMetric(eval[float64](t, `performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1`), "first-paint-ms")
		t.mu.Lock()
		b.ReportMetric(t.received/1000, "kB-first")
		t.mu.Unlock()
		t.run(send(emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: 1}))
		still := eval[[]float64](t, frames, chromedp.EvalAwaitPromise)
		report(b, "still", still)
		stop := change(b.Context(), c.world, names, now)
		busy := t.busiest(func() { report(b, "live", eval[[]float64](t, frames, chromedp.EvalAwaitPromise)) })
		stop()
		b.ReportMetric(busy, "max-task-cpu-ms-live")
	}
}

// traced is an event of a trace: what a thread is called, or a task, with the time of a processor that it took, in microseconds.
type traced struct {
	Name    string             `json:"name"`
	Process int                `json:"pid"`
	Thread  int                `json:"tid"`
	Took    float64            `json:"tdur"`
	Args    struct{ Name any } `json:"args"`
}

const (
	threadName = "thread_name"
	mainThread = "CrRendererMain"
	task       = "RunTask"
)

// busiest is the processor's time of the longest task of the page while do runs, in milliseconds. Nothing is drawn, and no key is taken, while a task runs.
// Unlike the time between frames it doesn't depend on who else uses the machine.
func (b *tab) busiest(do func()) float64 {
	b.t.Helper()
	b.mu.Lock()
	b.trace, b.ending = nil, make(chan struct{})
	b.mu.Unlock()
	b.run(send(tracing.Start, tracing.StartParams{TransferMode: tracing.StartTransferModeReportEvents, TraceConfig: &tracing.TraceConfig{IncludedCategories: []string{"toplevel"}}}))
	do()
	b.run(send(tracing.End, cdp.Empty{}))
	select {
	case <-b.ending:
	case <-time.After(patience):
		b.t.Fatal("the browser does not end the trace")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	type thread struct{ process, thread int }
	main, longest, tasks := map[thread]bool{}, 0.0, 0
	for _, e := range b.trace {
		if e.Name == threadName && e.Args.Name == mainThread {
			main[thread{e.Process, e.Thread}] = true
		}
	}
	for _, e := range b.trace {
		if e.Name != threadName && main[thread{e.Process, e.Thread}] {
			tasks++
			longest = max(longest, e.Took/1000)
		}
	}
	if tasks == 0 {
		b.t.Fatal("no task of the page was traced")
	}
	return longest
}

func row(key world.Key, i int, now time.Time) *world.Cluster {
	out := &world.Cluster{Namespace: key.Namespace, Name: key.Name, Health: why.Healthy, Version: fmt.Sprintf("1.36.%d", i%4), Platform: "AWS", Created: now, Labels: map[string]string{"tier": fmt.Sprint(i % 4)}}
	if i%25 == 0 {
		out.Health, out.Cause, out.Since = why.Degraded, fmt.Sprintf("EtcdAvailable=False (EtcdWaitingForQuorum): %d of 3 etcd members are ready", i%3), &now
	}
	return out
}

// change has a hundred rows change in a second, until it is stopped: some of them move to another place of the list.
func change(ctx context.Context, w *world.World, names []world.Key, now time.Time) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			i := rand.IntN(len(names))
			changed := row(names[i], i, now)
			changed.Version = fmt.Sprintf("1.36.%d", rand.IntN(9))
			if rand.IntN(10) == 0 {
				changed.Health, changed.Cause = why.Progressing, "Progressing=True (RolloutPartiallyComplete): under way"
			}
			w.Put(world.Clusters, names[i], changed)
		}
	}()
	return func() { cancel(); <-done }
}

func report(b *testing.B, what string, list []float64) {
	b.Helper()
	if len(list) == 0 {
		b.Fatal("no frame was drawn")
	}
	slices.Sort(list)
	long := 0
	for _, ms := range list {
		if ms > 50 {
			long++
		}
	}
	b.ReportMetric(1000/list[len(list)/2], "fps-"+what)
	b.ReportMetric(list[len(list)*99/100], "p99-ms-"+what)
	b.ReportMetric(list[len(list)-1], "max-ms-"+what)
	b.ReportMetric(float64(long), "over-50ms-"+what)
}
