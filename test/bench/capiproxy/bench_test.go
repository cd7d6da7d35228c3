//go:build bench

package capiproxy

import (
	"bufio"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/testenv"
)

const (
	machinesPath = "/apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines"
	storedGV     = translate.Private + "/v1beta2"
	// listed is how many Machines a list has.
	listed = 5000
	// gets are how many times a Machine is read each way, lists how many times all are.
	gets, lists = 4000, 12
	// watches are open at once, idle.
	watches = 1000
	// eventsFor is how long events are sent, one a millisecond.
	eventsFor = 5 * time.Second
)

// machine is a Machine of some 6 KB, as the stock manager keeps it, as it is stored.
func machine(i int) string {
	return fmt.Sprintf(`{"apiVersion":"%s","kind":"Machine","metadata":{"name":"m-%05d","namespace":"n","uid":"7d0b6c0e-2f5f-4b39-9a3a-0f7b7c0f5d1b","resourceVersion":"123456","labels":{"cluster.x-k8s.io/cluster-name":"c"},"ownerReferences":[{"apiVersion":"%s","kind":"MachineSet","name":"s","uid":"u"}],"managedFields":[{"manager":"manager","apiVersion":"%s","fieldsType":"FieldsV1","fieldsV1":{%s"f:x":{}}}]},"spec":{"clusterName":"c","infrastructureRef":{"apiGroup":"infrastructure.%s","kind":"K","name":"m"}},"status":{"conditions":[%s{"type":"Ready","status":"True"}]}}`,
		storedGV, i, storedGV, storedGV, strings.Repeat(`"f:cluster.x-k8s.io/some-annotation":{".":{}},`, 60), translate.Private,
		strings.Repeat(`{"type":"Available","status":"True","reason":"Available","message":"all is well","lastTransitionTime":"2026-11-21T09:00:00Z"},`, 12))
}

// world is the server, and the ways to it.
type world struct {
	b    *testing.B
	back *httptest.Server
	all  string
	ways []*way
}

// way is one of the three.
type way struct {
	name, url string
	client    *http.Client
	process   *testenv.Process // nil: no proxy
}

func BenchmarkProxy(b *testing.B) {
	w := newWorld(b)
	for range b.N {
		w.idle()
		w.get()
		w.list()
		w.events()
		w.idleWatches()
	}
}

func newWorld(b *testing.B) *world {
	b.Helper()
	w := &world{b: b}
	var all strings.Builder
	all.WriteString(`{"apiVersion":"` + storedGV + `","kind":"MachineList","items":[`)
	for i := range listed {
		if i > 0 {
			all.WriteByte(',')
		}
		all.WriteString(machine(i))
	}
	all.WriteString(`]}`)
	w.all = all.String()
	w.back = httptest.NewUnstartedServer(http.HandlerFunc(w.serve))
	w.back.EnableHTTP2 = true
	w.back.StartTLS()
	b.Cleanup(w.back.Close)

	dir := b.TempDir()
	ca := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.back.Certificate().Raw}), 0o600); err != nil {
		b.Fatal(err)
	}
	ports, err := testenv.FreePorts(3)
	if err != nil {
		b.Fatal(err)
	}
	listen := func(i int) string { return "127.0.0.1:" + strconv.Itoa(ports[i]) }
	ours := build(b, dir, "hcp-sidecar", "../../../cmd/hcp-sidecar")
	plain := build(b, dir, "plain", "./plain")
	w.ways = []*way{
		{name: "direct", url: w.back.URL, client: w.back.Client()},
		{name: "plain", url: "http://" + listen(0), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}},
			process: start(b, plain, dir, "plain", nil, listen(0), w.back.URL, ca)},
		{name: "ours", url: "http://" + listen(1), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}},
			// As the container has it.
			process: start(b, ours, dir, "hcp-sidecar", []string{"GOGC=50"}, "capi-proxy", "--port="+strconv.Itoa(ports[1]), "--health-port="+strconv.Itoa(ports[2]), "--upstream="+w.back.URL, "--ca-file="+ca)},
	}
	for _, to := range w.ways[1:] {
		waitFor(b, strings.TrimPrefix(to.url, "http://"))
	}
	return w
}

func build(b *testing.B, dir, name, pkg string) string {
	b.Helper()
	out := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if msg, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("building %s: %v\n%s", name, err, msg)
	}
	return out
}

func start(b *testing.B, binary, dir, name string, env []string, args ...string) *testenv.Process {
	b.Helper()
	p, err := testenv.StartProcess(binary, dir, name, env, args...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Kill)
	return p
}

func waitFor(b *testing.B, address string) {
	b.Helper()
	for range 200 {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.Fatalf("%s does not answer", address)
}

// serve is the API server.
func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Query().Get("watch") == "idle" || r.URL.Query().Get("watch") == "true" && r.URL.Query().Get("labelSelector") == "idle":
		_, _ = io.WriteString(rw, `{"type":"ADDED","object":`+machine(1)+"}\n")
		_ = http.NewResponseController(rw).Flush()
		<-r.Context().Done()
	case r.URL.Query().Get("watch") != "":
		w.send(rw, r)
	case strings.HasSuffix(r.URL.Path, "/machines"):
		_, _ = io.WriteString(rw, w.all)
	default:
		_, _ = io.WriteString(rw, machine(1))
	}
}

// send writes an event a millisecond, with the time at its end.
func (w *world) send(rw http.ResponseWriter, r *http.Request) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	object := machine(1)
	for r.Context().Err() == nil {
		_, _ = fmt.Fprintf(rw, `{"type":"MODIFIED","object":%s,"at":%d}`+"\n", object, time.Now().UnixNano())
		_ = http.NewResponseController(rw).Flush()
		<-tick.C
	}
}

// result prints a line and keeps it as a metric.
func (w *world) result(what, unit string, value float64, target string, met bool) {
	w.b.ReportMetric(value, strings.ReplaceAll(what, " ", "-")+"-"+unit)
	verdict := "met"
	if !met {
		verdict = "MISSED"
	}
	w.b.Logf("%-42s %10.2f %-6s target %-22s %s", what, value, unit, target, verdict)
}

// resident is a process's memory in MiB.
func resident(b *testing.B, p *testenv.Process) float64 {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.PID()))
	if err != nil {
		b.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(raw))[1])
	if err != nil {
		b.Fatal(err)
	}
	return float64(pages*syscall.Getpagesize()) / (1 << 20)
}

func (w *world) idle() {
	mem := resident(w.b, w.ways[2].process)
	w.result("idle resident", "MiB", mem, "< 20", mem < 20)
	w.b.Logf("  (plain: %.1f MiB)", resident(w.b, w.ways[1].process))
}

func (w *world) read(to *way, path string) (int64, time.Duration) {
	begun := time.Now()
	resp, err := to.client.Get(to.url + path)
	if err != nil {
		w.b.Fatal(err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	took := time.Since(begun)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK || n < 1000 {
		w.b.Fatalf("%s: %d bytes, status %d: %v", to.name, n, resp.StatusCode, err)
	}
	return n, took
}

func percentile(took []time.Duration, p int) float64 {
	slices.Sort(took)
	return float64(took[(len(took)-1)*p/100].Nanoseconds()) / 1000
}

// get takes turns, so that what else the machine does meets all three.
func (w *world) get() {
	took := map[string][]time.Duration{}
	for i := range gets + 200 {
		for _, to := range w.ways {
			if _, d := w.read(to, machinesPath+"/m"); i >= 200 {
				took[to.name] = append(took[to.name], d)
			}
		}
	}
	for _, p := range []struct {
		percent int
		most    float64
	}{{50, 1.15}, {99, 1.3}} {
		base := percentile(took["direct"], p.percent)
		plain, ours := percentile(took["plain"], p.percent)-base, percentile(took["ours"], p.percent)-base
		w.b.Logf("  GET p%d: direct %.0f µs, plain adds %.0f, ours adds %.0f", p.percent, base, plain, ours)
		w.result(fmt.Sprintf("GET added p%d over what plain adds", p.percent), "x", ours/plain, fmt.Sprintf("<= %.2f", p.most), ours/plain <= p.most)
	}
}

// list takes turns, too; the fastest of each counts, and the highest memory.
func (w *world) list() {
	best, most := map[string]time.Duration{}, map[string]float64{}
	var size int64
	for range lists {
		for _, to := range w.ways {
			stop := w.sample(to, most)
			n, d := w.read(to, machinesPath)
			stop()
			size = n
			if best[to.name] == 0 || d < best[to.name] {
				best[to.name] = d
			}
		}
	}
	rate := func(name string) float64 { return float64(size) / 1e6 / best[name].Seconds() }
	w.b.Logf("  LIST of %.1f MB: direct %.0f MB/s, plain %.0f, ours %.0f", float64(size)/1e6, rate("direct"), rate("plain"), rate("ours"))
	w.result("LIST throughput of plain's", "x", rate("ours")/rate("plain"), ">= 0.90", rate("ours") >= 0.9*rate("plain"))
	w.result("LIST more resident than plain", "MiB", most["ours"]-most["plain"], "< 8", most["ours"]-most["plain"] < 8)
	w.b.Logf("  (plain %.1f MiB, ours %.1f MiB)", most["plain"], most["ours"])
}

// sample watches a process's memory until the function that it returns is called.
func (w *world) sample(to *way, most map[string]float64) func() {
	if to.process == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			most[to.name] = max(most[to.name], resident(w.b, to.process))
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return func() { close(done); <-ended }
}

// events is the delay from when the server writes an event to when the client has it.
func (w *world) events() {
	p99 := map[string]float64{}
	for _, to := range w.ways {
		ctx, cancel := context.WithTimeout(context.Background(), eventsFor)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.url+machinesPath+"?watch=true", nil)
		if err != nil {
			w.b.Fatal(err)
		}
		resp, err := to.client.Do(req)
		if err != nil {
			w.b.Fatal(err)
		}
		lines := bufio.NewReaderSize(resp.Body, 64<<10)
		var took []time.Duration
		for {
			line, err := lines.ReadSlice('\n')
			if err != nil {
				break
			}
			at, err := strconv.ParseInt(string(line[strings.LastIndexByte(string(line), ':')+1:len(line)-2]), 10, 64)
			if err != nil {
				w.b.Fatal(err)
			}
			took = append(took, time.Since(time.Unix(0, at)))
		}
		_ = resp.Body.Close()
		cancel()
		p99[to.name] = percentile(took, 99)
		w.b.Logf("  events %s: %d, p50 %.0f µs, p99 %.0f µs", to.name, len(took), percentile(took, 50), p99[to.name])
	}
	added := (p99["ours"] - p99["direct"]) / 1000
	w.result("event delay added p99", "ms", added, "< 1", added < 1)
	w.b.Logf("  (plain adds %.2f ms)", (p99["plain"]-p99["direct"])/1000)
}

func (w *world) idleWatches() {
	for _, to := range w.ways[1:] {
		ctx, cancel := context.WithCancel(context.Background())
		client := &http.Client{Transport: &http.Transport{}}
		var open, all sync.WaitGroup
		opening := make(chan struct{}, 50)
		for range watches {
			open.Add(1)
			all.Go(func() {
				opening <- struct{}{}
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.url+machinesPath+"?watch=true&labelSelector=idle", nil)
				if err != nil {
					w.b.Error(err)
					return
				}
				resp, err := client.Do(req)
				if err != nil {
					w.b.Error(err)
					return
				}
				defer resp.Body.Close()
				_, err = bufio.NewReader(resp.Body).ReadString('\n')
				<-opening
				open.Done()
				if err == nil {
					<-ctx.Done()
				}
			})
		}
		open.Wait()
		time.Sleep(3 * time.Second) // what opening them took is given back
		mem := resident(w.b, to.process)
		if to.name == "ours" {
			w.result("1,000 idle watches resident", "MiB", mem, "< 64", mem < 64)
		} else {
			w.b.Logf("  (plain with 1,000 idle watches: %.1f MiB)", mem)
		}
		cancel()
		all.Wait()
	}
}
