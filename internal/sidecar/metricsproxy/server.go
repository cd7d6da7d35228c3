package metricsproxy

import (
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"hcp.internal/platform/internal/contract/metricsets"
)

// prefix comes before the name of a component.
const prefix = "/metrics/"

// errorsMetric counts scrapes that failed.
const errorsMetric = "metrics_aggregator_pod_scrape_errors_total"

var componentName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?$`)

// proxy answers scrapes of the hosted cluster's monitoring.
type proxy struct {
	configFile string
	set        string // of metrics
	log        func(format string, args ...any)

	mu       sync.Mutex
	failures map[string]map[string]int // by component and pod
}

// handler serves /healthz for anybody, and metrics for who has a client certificate. 401: he has none; 400: the path is malformed; 404: there is no such
// component; 502: no pod has answered. A component without pods has no metrics, which is no error.
func (p *proxy) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc(prefix, p.metrics)
	return mux
}

func (p *proxy) metrics(w http.ResponseWriter, r *http.Request) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		http.Error(w, "a client certificate is needed", http.StatusUnauthorized)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, prefix)
	if r.Method != http.MethodGet || !componentName.MatchString(name) {
		http.Error(w, "ask by GET for "+prefix+"COMPONENT", http.StatusBadRequest)
		return
	}
	c, err := readConfig(p.configFile)
	if err != nil {
		p.log("%v", err)
		http.Error(w, "the configuration can't be read", http.StatusBadGateway)
		return
	}
	t, ok := c.find(name)
	if !ok {
		http.Error(w, "there is no such component", http.StatusNotFound)
		return
	}
	pods, err := resolve(r.Context(), c, t.Selector)
	if err != nil {
		p.log("%s: %v", name, err)
		http.Error(w, "the pods of the component are not known", http.StatusBadGateway)
		return
	}
	text, answered := p.collect(t, scrapeAll(r.Context(), t, pods))
	if len(pods) > 0 && answered == 0 {
		http.Error(w, "no pod of the component has answered", http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(text) // who asked is gone when this fails
}

// collect puts answers together, and counts those that failed.
func (p *proxy) collect(t target, answers []scraped) (text []byte, answered int) {
	m := merger{keep: metricsets.Keep(t.Name, p.set), headed: map[string]bool{}}
	for _, a := range answers {
		if a.err == nil {
			a.err = m.add(strings.NewReader(string(a.text)), []label{
				{"pod", a.pod.Name}, {"namespace", t.MetricsNamespace}, {"job", t.MetricsJob}, {"service", t.MetricsService}, {"endpoint", t.MetricsEndpoint},
				{"instance", net.JoinHostPort(a.pod.IP, strconv.Itoa(int(t.MetricsPort)))},
			})
		}
		if a.err == nil {
			answered++
			continue
		}
		p.log("%s: %v", t.Name, a.err)
		p.count(t.Name, a.pod.Name)
	}
	p.writeFailures(&m, t.Name, answers)
	return m.out.Bytes(), answered
}

func (p *proxy) count(component, pod string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failures == nil {
		p.failures = map[string]map[string]int{}
	}
	if p.failures[component] == nil {
		p.failures[component] = map[string]int{}
	}
	p.failures[component][pod]++
}

// writeFailures tells of pods that are there, and forgets the others.
func (p *proxy) writeFailures(m *merger, component string, answers []scraped) {
	p.mu.Lock()
	defer p.mu.Unlock()
	there := func(pod string) bool {
		return slices.ContainsFunc(answers, func(a scraped) bool { return a.pod.Name == pod })
	}
	for pod, n := range p.failures[component] {
		if !there(pod) {
			delete(p.failures[component], pod)
			continue
		}
		fmt.Fprintf(&m.out, "%s{component=\"%s\",pod=\"%s\"} %d\n", errorsMetric, escaper.Replace(component), escaper.Replace(pod), n)
	}
}
