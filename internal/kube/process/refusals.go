package process

import (
	"net/http"
	"sync"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// refusedFor is how long a client tries again by itself what an API server refuses as too many requests. It would do so ten times for each request, which
	// takes longer than a pass may, and then nobody is told but that time is up.
	refusedFor = 3 * time.Second
	// refusalsForgotten is after how long without a refusal the next one is a new beginning.
	refusalsForgotten = time.Minute
	// maxRefusals bounds what is remembered: an API server of a tenant names its flow schemas.
	maxRefusals = 64
)

// TellRefusals makes clients return the error of an API server that refuses their requests as too many, once it has done so for refusedFor. Who asked then
// says so, and tries again when its queue says. What the handler of a request answers, such as that a pod may not be evicted yet, is none of it.
func TellRefusals(cfg *rest.Config) {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return newRefusals(next, clock.RealClock{}) })
}

// refusal is a row of refusals by one flow schema.
type refusal struct{ first, last time.Time }

type refusals struct {
	next  http.RoundTripper
	clock clock.PassiveClock
	mu    sync.Mutex
	rows  map[string]refusal // by flow schema
}

func newRefusals(next http.RoundTripper, clk clock.PassiveClock) *refusals {
	return &refusals{next: next, clock: clk, rows: map[string]refusal{}}
}

// RoundTrip implements http.RoundTripper. client-go tries again for as long as an answer says after what time.
func (r *refusals) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(req)
	if err != nil {
		return response, err
	}
	if schema := response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID); schema != "" && r.long(schema, response.StatusCode == http.StatusTooManyRequests) {
		response.Header.Del("Retry-After")
	}
	return response, nil
}

// WrappedRoundTripper lets others find what is below, as client-go's own ones do.
func (r *refusals) WrappedRoundTripper() http.RoundTripper { return r.next }

// long notes an answer, and tells whether requests have been refused for so long that somebody should be told.
func (r *refusals) long(schema string, refused bool) bool {
	now := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !refused {
		delete(r.rows, schema)
		return false
	}
	row, known := r.rows[schema]
	if !known || now.Sub(row.last) > refusalsForgotten {
		if len(r.rows) >= maxRefusals {
			clear(r.rows)
		}
		row.first = now
	}
	row.last = now
	r.rows[schema] = row
	return now.Sub(row.first) >= refusedFor
}
