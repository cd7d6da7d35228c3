// Package skew compares this machine's clock with that of the API server.
//
// Every answer of an API server says when it was made. Whoever issues certificates looks at the difference first: with a clock that is ahead they are
// valid for nobody yet, and all that exist seem to have expired.
package skew

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// Tolerated is the difference that does no harm: certificates begin five minutes before they are made.
	Tolerated = 2 * time.Minute
	// slow is from when on an answer says too little, because it may have been made at any time while it was on its way.
	slow = 30 * time.Second
	// fresh is how long an answer counts. Leases are renewed twice in that time. A clock that was set meanwhile is noticed with the next answer.
	fresh = 5 * time.Minute
)

// Watch looks at the answers that pass by. The zero value, with a Clock, is ready; a nil Watch finds nothing wrong.
type Watch struct {
	Clock clock.PassiveClock

	mu   sync.Mutex
	seen time.Time     // when the last answer came, by our clock; zero: none yet
	off  time.Duration // how far we are ahead
}

// Attach makes the clients of a configuration pass their answers by.
func (w *Watch) Attach(cfg *rest.Config) {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return passing{next, w} })
}

type passing struct {
	http.RoundTripper
	watch *Watch
}

// RoundTrip implements http.RoundTripper.
func (p passing) RoundTrip(req *http.Request) (*http.Response, error) {
	sent := p.watch.Clock.Now()
	resp, err := p.RoundTripper.RoundTrip(req)
	if err == nil {
		p.watch.note(resp.Header.Get("Date"), sent, p.watch.Clock.Now())
	}
	return resp, err
}

// WrappedRoundTripper lets client-go find the connection beneath.
func (p passing) WrappedRoundTripper() http.RoundTripper { return p.RoundTripper }

// note remembers the difference as far as the answer proves it: it was made between sent and received, and its date has whole seconds.
func (w *Watch) note(date string, sent, received time.Time) {
	theirs, err := http.ParseTime(date)
	if err != nil || received.Sub(sent) > slow {
		return
	}
	var off time.Duration
	switch {
	case theirs.After(received):
		off = received.Sub(theirs)
	case theirs.Add(time.Second).Before(sent):
		off = sent.Sub(theirs.Add(time.Second))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen, w.off = received, off
}

// Err says that the clocks differ by more than is tolerated, as the last answer showed.
func (w *Watch) Err() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// An answer from the future came before the clock was set back.
	if age := w.Clock.Since(w.seen); w.seen.IsZero() || age > fresh || age < -time.Second || w.off.Abs() <= Tolerated {
		return nil
	}
	which, off := "ahead of", w.off
	if off < 0 {
		which, off = "behind", -off
	}
	return fmt.Errorf("the clock of this machine is %s %s that of the management cluster's API server; set it (NTP) on the node of this pod, or on those of the API servers",
		off.Round(time.Minute), which)
}
