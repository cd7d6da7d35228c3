package proxy

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hcp.internal/platform/internal/capigroup/translate"
)

// Metrics are what the proxy counts. Labels have few values, whatever clients ask for.
type Metrics struct {
	requests          *prometheus.CounterVec
	durations         *prometheus.HistogramVec
	overhead          prometheus.Histogram
	eventDelay        prometheus.Histogram
	watches, buffered prometheus.Gauge
	translationErrors *prometheus.CounterVec
}

// NewMetrics registers the metrics, if there is where.
func NewMetrics(to prometheus.Registerer) *Metrics {
	const namespace = "hypershift_api_proxy"
	fine := []float64{.00001, .00003, .0001, .0003, .001, .003, .01, .03, .1}
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "requests_total",
			Help: "Requests by method, resource and status code."}, []string{"method", "resource", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: "request_duration_seconds",
			Help: "Time to the headers of the answer.", Buckets: []float64{.001, .005, .01, .05, .1, .5, 1}}, []string{"method", "resource"}),
		overhead: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: "overhead_seconds",
			Help: "Time that a request and its answer took to translate.", Buckets: fine}),
		eventDelay: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: "watch_event_delay_seconds",
			Help: "Time that an event of a watch took to translate.", Buckets: fine}),
		watches:  prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "inflight_watches", Help: "Watches that are open."}),
		buffered: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "buffer_bytes", Help: "Memory of streams that are open."}),
		translationErrors: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "translation_errors_total",
			Help: "Bodies that could not be translated, by what was wrong."}, []string{"error_type"}),
	}
	if to != nil {
		to.MustRegister(m.requests, m.durations, m.overhead, m.eventDelay, m.watches, m.buffered, m.translationErrors)
	}
	return m
}

func (m *Metrics) request(method string, r *translate.Request, code int) {
	m.requests.WithLabelValues(methodLabel(method, r), resourceLabel(r), strconv.Itoa(code)).Inc()
}

func (m *Metrics) headers(method string, r *translate.Request, after time.Duration) {
	m.durations.WithLabelValues(methodLabel(method, r), resourceLabel(r)).Observe(after.Seconds())
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
