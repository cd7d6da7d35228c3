package conversion

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// metrics are counted once per process, whatever number of Handlers there is.
type metrics struct {
	requests *prometheus.CounterVec
	duration prometheus.Histogram
	errors   *prometheus.CounterVec
}

var newMetrics = sync.OnceValue(func() *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hypershift_conversion_webhook_requests_total",
			Help: "Conversion reviews by versions, resource and result."}, []string{"from_version", "to_version", "resource", "result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "hypershift_conversion_webhook_duration_seconds",
			Help: "Time to answer a conversion review.", Buckets: []float64{.001, .005, .01, .05, .1, .5}}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hypershift_conversion_webhook_errors_total",
			Help: "Conversion reviews that failed, by what was wrong."}, []string{"error_type"}),
	}
	ctrlmetrics.Registry.MustRegister(m.requests, m.duration, m.errors)
	return m
})

func (m *metrics) failure(errorType string) { m.errors.WithLabelValues(errorType).Inc() }

func (m *metrics) observe(req *apiextensionsv1.ConversionRequest, err error, took time.Duration) {
	first := metav1.TypeMeta{}
	if len(req.Objects) > 0 {
		_ = json.Unmarshal(req.Objects[0].Raw, &first) // what is no object has no labels
	}
	result := "success"
	if err != nil {
		result = "failure"
		m.failure("conversion-failed")
	}
	m.requests.WithLabelValues(versionLabel(first.APIVersion), versionLabel(req.DesiredAPIVersion), resourceLabel(first.Kind), result).Inc()
	m.duration.Observe(took.Seconds())
}

// versionLabel has few values, whatever is sent.
func versionLabel(apiVersion string) string {
	_, v, _ := strings.Cut(apiVersion, "/")
	if v == "v1alpha1" || v == "v1beta1" || v == "v1beta2" {
		return v
	}
	return "other"
}

var kinds = sets.New("Cluster", "ClusterClass", "Machine", "MachineSet", "MachineDeployment", "MachinePool", "MachineHealthCheck", "MachineDrainRule",
	"ClusterResourceSet", "ClusterResourceSetBinding", "IPAddressClaim", "IPAddress", "ExtensionConfig")

func resourceLabel(kind string) string {
	switch {
	case !kinds.Has(kind):
		return "other"
	case strings.HasSuffix(kind, "s"):
		return strings.ToLower(kind) + "es"
	}
	return strings.ToLower(kind) + "s"
}
