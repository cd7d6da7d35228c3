package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hcp.internal/platform/internal/console/access"
	"hcp.internal/platform/internal/console/world"
)

const (
	// pace is how often a stream sends changes at most; what changes in between is sent once.
	pace = 250 * time.Millisecond
	// summaryPace is how often it counts.
	summaryPace = time.Second
	// heartbeat tells that the stream is alive.
	heartbeat = 15 * time.Second
	// patience is how long a reader may take for a message.
	patience = 30 * time.Second
)

// patch is what changed of a list.
type patch struct {
	Seq     uint64           `json:"seq"`
	Rows    []*world.Cluster `json:"rows,omitempty"` // these are as follows now
	Gone    []string         `json:"gone,omitempty"` // these don't match any more
	Summary *summary         `json:"summary,omitempty"`
	Trouble string           `json:"trouble,omitempty"`
	// Touched tells, of a page about one thing, that it has changed and is to be read again.
	Touched bool `json:"touched,omitempty"`
}

// flow is a stream that is open.
type flow struct {
	*Server
	*request
	w     http.ResponseWriter
	out   *http.ResponseController
	topic string
	query fleetQuery
	seq   uint64
	// counted is when the summary was sent last, and due that it has to be sent again.
	counted time.Time
	due     bool
}

// stream sends what changes: of the fleet (topic=fleet, with the parameters of its list), of a hosted cluster (hc/NAMESPACE/NAME), a rollout
// (rollout/NAME), a package (pkg/NAMESPACE/NAME), or of lists that are small (rollouts, packages). since=EPOCH-SEQ goes on where another stream ended.
func (s *Server) stream(w http.ResponseWriter, r *request) {
	f := &flow{Server: s, request: r, w: w, topic: r.URL.Query().Get("topic"), due: true}
	var err error
	if f.query, err = parseFleet(r.URL.Query()); err != nil {
		code, text := explain(err)
		fail(w, code, text)
		return
	}
	if f.query.show == "" {
		f.query.show = "all"
	}
	if kind, _, _ := strings.Cut(f.topic, "/"); !known[kind] {
		fail(w, http.StatusBadRequest, "topic: must be fleet, rollouts, packages, hc/NAMESPACE/NAME, rollout/NAME or pkg/NAMESPACE/NAME")
		return
	}
	closed, ok := s.limits.open(r.viewer.ID)
	if !ok {
		fail(w, http.StatusTooManyRequests, "too many streams are open: close a tab")
		return
	}
	defer closed()
	f.out = begin(w)
	epoch, since, _ := strings.Cut(r.URL.Query().Get("since"), "-")
	seq, err := strconv.ParseUint(since, 10, 64)
	if err != nil || epoch != s.epoch {
		f.seq = s.World.Seq()
		if f.event("reset", patch{Seq: f.seq}) != nil {
			return
		}
	} else if f.seq = seq; f.event("hello", patch{Seq: seq}) != nil {
		return
	}
	f.follow()
}

var known = map[string]bool{"fleet": true, "rollouts": true, "packages": true, "hc": true, "rollout": true, "pkg": true}

// follow sends changes until the reader goes, or may not see them any more.
func (f *flow) follow() {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		moved := f.World.Moved()
		if err := f.catchUp(); err != nil {
			return
		}
		again := tick.C
		if !f.due {
			again = nil
		}
		select {
		case <-f.Context().Done():
			return
		case <-beat.C:
			if f.event("ping", patch{Seq: f.seq}) != nil {
				return
			}
			continue
		case <-moved:
		case <-again:
			continue
		}
		select { // what comes within the pace is sent together
		case <-f.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// catchUp sends what changed since the last time.
func (f *flow) catchUp() error {
	changes, seq, ok := f.World.Since(f.seq)
	if !ok {
		f.seq, f.due = seq, true
		return f.event("reset", patch{Seq: seq})
	}
	p := patch{Seq: seq}
	f.seq = seq
	var err error
	if f.topic == "fleet" {
		err = f.fleetPatch(changes, &p)
	} else {
		p.Touched = f.touched(changes)
		f.due = false
	}
	if err != nil {
		return err
	}
	if len(p.Rows)+len(p.Gone) == 0 && p.Summary == nil && !p.Touched {
		return nil
	}
	return f.event("patch", p)
}

// fleetPatch collects rows of the fleet that changed.
func (f *flow) fleetPatch(changes []world.Change, p *patch) error {
	if len(changes) == 0 && !f.due {
		return nil
	}
	viewer, err := f.Gate.Viewer(f.Request) // the token may have ended
	if err != nil {
		_ = f.event("denied", patch{Seq: f.seq}) // it ends in any case
		return err
	}
	var namespaces []string
	for _, c := range changes {
		if c.Kind == world.Clusters && c.Key != (world.Key{}) {
			namespaces = append(namespaces, c.Key.Namespace)
		}
	}
	scope, err := viewer.ScopeOf(f.Context(), hostedClusters, namespaces)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if c.Kind == world.Rollouts {
			f.due = true
		}
		if c.Kind != world.Clusters || c.Key == (world.Key{}) || !scope.Has(c.Key.Namespace) {
			continue
		}
		f.due = true
		if row := f.World.Cluster(c.Key); row != nil && f.query.matches(row) {
			p.Rows = append(p.Rows, row)
		} else {
			p.Gone = append(p.Gone, c.Key.String())
		}
	}
	if now := f.Clock.Now(); f.due && now.Sub(f.counted) >= summaryPace {
		all, err := f.readFleet(f.Context(), viewer, fleetQuery{show: "all", sort: "name", limit: 1})
		if err != nil {
			return err
		}
		p.Summary, p.Trouble, f.counted, f.due = &all.Summary, all.Trouble, now, false
	}
	return nil
}

// touched tells whether changes are about the topic. That something changed of what somebody may not see is not told: a page that they can't read has
// nothing to be read again, so the topic is asked about with their rights first.
func (f *flow) touched(changes []world.Change) bool {
	kind, rest, _ := strings.Cut(f.topic, "/")
	ns, name, _ := strings.Cut(rest, "/")
	key := world.Key{Namespace: ns, Name: name}
	about := func(c world.Change) bool {
		switch kind {
		case "rollouts":
			return c.Kind == world.Rollouts
		case "packages":
			return c.Kind == world.Packages
		case "rollout":
			return c.Kind == world.Rollouts && c.Key.Name == rest || c.Kind == world.Packages && c.Key.Name == rest
		case "pkg":
			return c.Kind == world.Packages && c.Key == key
		}
		return c.Kind == world.Clusters && c.Key == key || c.Kind == world.Packages && c.Key.Namespace == key.ControlPlane()
	}
	for _, c := range changes {
		if about(c) {
			return f.mayRead(kind, ns)
		}
	}
	return false
}

func (f *flow) mayRead(kind, namespace string) bool {
	resource := map[string]access.Resource{"hc": hostedClusters, "pkg": packages, "packages": packages, "rollout": rollouts, "rollouts": rollouts}[kind]
	viewer, err := f.Gate.Viewer(f.Request)
	if err != nil {
		return false
	}
	if kind == "packages" {
		scope, err := viewer.ScopeOf(f.Context(), resource, f.World.Namespaces(world.Packages))
		return err == nil && !scope.Empty()
	}
	ok, err := viewer.May(f.Context(), "get", resource, namespace)
	return err == nil && ok
}

// event sends a message.
func (f *flow) event(name string, p patch) error {
	return message(f.w, f.out, name, fmt.Sprintf("%s-%d", f.epoch, p.Seq), p)
}

// message sends one, with the number to go on with.
func message(w io.Writer, out *http.ResponseController, name, id string, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_ = out.SetWriteDeadline(time.Now().Add(patience)) // not all writers have deadlines; those of net/http do
	if _, err := fmt.Fprintf(w, "event: %s\nid: %s\ndata: %s\n\n", name, id, raw); err != nil {
		return err
	}
	return out.Flush()
}

// begin makes an answer a stream.
func begin(w http.ResponseWriter) *http.ResponseController {
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // as above
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies must not wait for more
	return out
}
