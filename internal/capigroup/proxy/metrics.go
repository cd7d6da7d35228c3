package proxy

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hcp.internal/platform/internal/capigroup/translate"
)

// Metrics are what the proxy counts, in Prometheus' text format. Its library would cost every sidecar some MiB for these few numbers. Labels
// have few values, whatever clients ask for.
type Metrics struct {
	mu        sync.RWMutex
	requests  map[series]*atomic.Uint64
	durations map[series]*histogram
	errors    map[string]*atomic.Uint64

	overhead, eventDelay *histogram
	watches, buffered    atomic.Int64
}

// series is the labels of one.
type series struct {
	method, resource string
	code             int
}

var (
	durationBuckets = []float64{.001, .005, .01, .05, .1, .5, 1}
	fineBuckets     = []float64{.00001, .00003, .0001, .0003, .001, .003, .01, .03, .1}
)

// histogram counts observations up to each bound, and sums them.
type histogram struct {
	bounds []float64
	counts []atomic.Uint64 // one more than bounds
	nanos  atomic.Int64
}

func newHistogram(bounds []float64) *histogram {
	return &histogram{bounds: bounds, counts: make([]atomic.Uint64, len(bounds)+1)}
}

func (h *histogram) observe(d time.Duration) {
	i, _ := slices.BinarySearch(h.bounds, d.Seconds())
	h.counts[i].Add(1)
	h.nanos.Add(int64(d))
}

// NewMetrics returns metrics that are all zero.
func NewMetrics() *Metrics {
	return &Metrics{requests: map[series]*atomic.Uint64{}, durations: map[series]*histogram{}, errors: map[string]*atomic.Uint64{},
		overhead: newHistogram(fineBuckets), eventDelay: newHistogram(fineBuckets)}
}

// member is the value of a map, made when it is asked for first.
func member[K comparable, V any](m *Metrics, in map[K]V, key K, fresh func() V) V {
	m.mu.RLock()
	v, ok := in[key]
	m.mu.RUnlock()
	if ok {
		return v
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok = in[key]; !ok {
		v = fresh()
		in[key] = v
	}
	return v
}

func newCounter() *atomic.Uint64 { return &atomic.Uint64{} }

func (m *Metrics) request(method string, r *translate.Request, code int) {
	member(m, m.requests, series{methodLabel(method, r), resourceLabel(r), code}, newCounter).Add(1)
}

func (m *Metrics) headers(method string, r *translate.Request, after time.Duration) {
	member(m, m.durations, series{method: methodLabel(method, r), resource: resourceLabel(r)},
		func() *histogram { return newHistogram(durationBuckets) }).observe(after)
}

func (m *Metrics) failure(errorType string) { member(m, m.errors, errorType, newCounter).Add(1) }

// Write prints the metrics, sorted.
func (m *Metrics) Write(w io.Writer) {
	const prefix = "hypershift_api_proxy_"
	head := func(name, kind, help string) {
		fmt.Fprintf(w, "# HELP %s%s %s\n# TYPE %s%s %s\n", prefix, name, help, prefix, name, kind)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	byLabels := func(a, b series) int {
		return cmp.Or(cmp.Compare(a.method, b.method), cmp.Compare(a.resource, b.resource), cmp.Compare(a.code, b.code))
	}
	head("requests_total", "counter", "Requests by method, resource and status code.")
	for _, s := range slices.SortedFunc(maps.Keys(m.requests), byLabels) {
		fmt.Fprintf(w, "%srequests_total{method=%q,resource=%q,code=\"%d\"} %d\n", prefix, s.method, s.resource, s.code, m.requests[s].Load())
	}
	head("request_duration_seconds", "histogram", "Time to the headers of the answer.")
	for _, s := range slices.SortedFunc(maps.Keys(m.durations), byLabels) {
		m.durations[s].write(w, prefix+"request_duration_seconds", fmt.Sprintf("method=%q,resource=%q", s.method, s.resource))
	}
	head("overhead_seconds", "histogram", "Time that a request and its answer took to translate.")
	m.overhead.write(w, prefix+"overhead_seconds", "")
	head("watch_event_delay_seconds", "histogram", "Time that a part of a watch took to translate.")
	m.eventDelay.write(w, prefix+"watch_event_delay_seconds", "")
	head("inflight_watches", "gauge", "Watches that are open.")
	fmt.Fprintf(w, "%sinflight_watches %d\n", prefix, m.watches.Load())
	head("buffer_bytes", "gauge", "Memory of streams that are open.")
	fmt.Fprintf(w, "%sbuffer_bytes %d\n", prefix, m.buffered.Load())
	head("translation_errors_total", "counter", "Bodies that could not be translated, by what was wrong.")
	for _, reason := range slices.Sorted(maps.Keys(m.errors)) {
		fmt.Fprintf(w, "%stranslation_errors_total{error_type=%q} %d\n", prefix, reason, m.errors[reason].Load())
	}
}

func (h *histogram) write(w io.Writer, name, labels string) {
	with, around := "", ""
	if labels != "" {
		with, around = labels+",", "{"+labels+"}"
	}
	var total uint64
	for i := range h.counts {
		total += h.counts[i].Load()
		bound := "+Inf"
		if i < len(h.bounds) {
			bound = fmt.Sprint(h.bounds[i])
		}
		fmt.Fprintf(w, "%s_bucket{%sle=%q} %d\n", name, with, bound, total)
	}
	fmt.Fprintf(w, "%s_sum%s %v\n%s_count%s %d\n", name, around, math.Round(float64(h.nanos.Load()))/1e9, name, around, total)
}

func methodLabel(method string, r *translate.Request) string {
	switch method {
	case "GET":
		if r.Watch {
			return "WATCH"
		}
		return method
	case "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		return method
	}
	return "other"
}

// known are the resources that have a label of their own.
var known = func() map[string]bool {
	all := map[string]bool{}
	for _, r := range []string{
		"clusters", "clusterclasses", "machines", "machinesets", "machinedeployments", "machinepools", "machinehealthchecks", "machinedrainrules",
		"clusterresourcesets", "clusterresourcesetbindings", "ipaddressclaims", "ipaddresses", "extensionconfigs",
		"localclusters", "localmachines", "localmachinetemplates", "awsclusters", "awsmachines", "awsmachinetemplates", "azureclusters", "azuremachines",
		"azuremachinetemplates", "gcpclusters", "gcpmachines", "gcpmachinetemplates", "kubevirtclusters", "kubevirtmachines", "kubevirtmachinetemplates",
		"openstackclusters", "openstackmachines", "openstackmachinetemplates", "ibmpowervsclusters", "ibmpowervsmachines", "ibmpowervsmachinetemplates",
		"agentclusters", "agentmachines", "agentmachinetemplates", "hostedcontrolplanes", "hostedclusters", "nodepools",
		"secrets", "configmaps", "events", "leases", "nodes", "namespaces", "pods", "services", "serviceaccounts", "deployments", "roles", "rolebindings",
		"clusterroles", "clusterrolebindings", "customresourcedefinitions", "subjectaccessreviews", "selfsubjectaccessreviews", "tokenreviews",
	} {
		all[r] = true
	}
	return all
}()

func resourceLabel(r *translate.Request) string {
	switch {
	case known[r.Resource]:
		return r.Resource
	case r.Class == translate.ClassDiscovery:
		return "discovery"
	case r.Class == translate.ClassOpenAPI:
		return "openapi"
	}
	return "other"
}
