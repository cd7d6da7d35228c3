package konnectivity

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// How long a request waits for an agent when none can serve it, and when that is worth it: while agents are still finding a server
// that has just started or is asked for the first time, and while one is being replaced. At other times there is no worker, and waiting would only hold up
// callers. A webhook is waited for ten seconds by default.
const (
	agentWait    = 8 * time.Second
	hopeAtStart  = 30 * time.Second
	hopeAtLeave  = 15 * time.Second
	agentRecheck = 250 * time.Millisecond // an agent that was full may have room again
)

var (
	errNoAgent   = errors.New("no agent is connected: the hosted cluster has no worker whose konnectivity-agent reaches this server")
	errTooMany   = errors.New("this server has as many agents as it may, and none to give up for one more of this address")
	errAgentFull = errors.New("every connected agent is at its limit of tunnels or about to leave")
)

// agents are the sessions that can be used.
type agents struct {
	limit int

	mu   sync.Mutex
	list []*session
	// checking marks sessions with a ping under way, so that failed attempts don't start one each.
	checking map[*session]bool
	// joined is closed when an agent joins, and then made anew.
	joined chan struct{}
	// hope is until when an agent is likely to join. known is whether that has anything to go by: an agent, or somebody who asked for one. Agents look for
	// a server that comes in another's place when that one begins to end, which may be long after this one has started.
	hope  time.Time
	known bool
	wait  time.Duration // for an agent, at most
	now   func() time.Time
}

func newAgents(limit int, now func() time.Time) *agents {
	return &agents{limit: limit, checking: map[*session]bool{}, joined: make(chan struct{}), hope: now().Add(hopeAtStart), wait: agentWait, now: now}
}

// add makes a session available. Two with the same id live beside each other: the certificate is the same for all agents, so
// an id proves nothing, and evicting the older would let any agent silence any other. Past the limit the source with most sessions gives its oldest one
// up, which is returned for the caller to end; that may be s itself.
func (a *agents) add(s *session) (evicted *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.list) >= a.limit {
		if evicted = a.heaviest(s); evicted == s {
			return s
		}
		a.list = slices.Delete(a.list, slices.Index(a.list, evicted), slices.Index(a.list, evicted)+1)
	}
	a.list, a.known = append(a.list, s), true
	close(a.joined)
	a.joined = make(chan struct{})
	return evicted
}

// takes says whether one more session of a source would be kept.
func (a *agents) takes(source netip.Addr) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.list) < a.limit {
		return true
	}
	next := &session{source: source}
	return a.heaviest(next) != next
}

// heaviest is the session that makes room for s: of the source that has most, and s when that is its own.
func (a *agents) heaviest(s *session) *session {
	held, oldest := map[netip.Addr]int{s.source: 1}, map[netip.Addr]*session{s.source: s}
	most := s.source
	for _, other := range a.list {
		if held[other.source]++; oldest[other.source] == nil {
			oldest[other.source] = other
		}
	}
	for source, n := range held {
		if n > held[most] {
			most = source
		}
	}
	return oldest[most]
}

func (a *agents) remove(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.list {
		if a.list[i] == s {
			last := len(a.list) - 1
			a.list[i], a.list[last] = a.list[last], nil
			a.list = a.list[:last]
			a.hope = a.now().Add(hopeAtLeave)
			break
		}
	}
	delete(a.checking, s)
}

func (a *agents) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.list)
}

func (a *agents) closeAll() {
	for _, s := range a.all() {
		s.closed()
	}
}

// farewell tells all agents at once that this server is about to end, and waits until they have heard it, for a bounded time.
func (a *agents) farewell(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, farewellTimeout)
	defer cancel()
	var told sync.WaitGroup
	for _, s := range a.all() {
		told.Go(func() { s.farewell(ctx) })
	}
	told.Wait()
}

func (a *agents) all() []*session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.list)
}

// candidates are up to maxAttempts sessions for a host in the order in which they are tried: the one that is on the host, then others; within each those
// that answered lately first, otherwise at random. pick(n) gives a number below n.
//
// All agents have one certificate, so what one says of itself proves nothing. Only the claim to be good for the very address that it comes from puts it
// before others: any other would let a worker draw the traffic of other nodes, of webhooks and of aggregated APIs to itself. For the same reason a source
// is picked first and then one of its sessions: many sessions get no more of the traffic than one.
func (a *agents) candidates(host string, pick func(int) int) []*session {
	a.mu.Lock()
	defer a.mu.Unlock()
	var ranks [4]bySource
	for _, s := range a.list {
		rank := 0
		switch {
		case s.ids.Hosts[host] && s.address == host:
		case s.ids.Default || s.ids.Hosts[host]:
			rank = 2
		default:
			continue
		}
		if s.suspect.Load() {
			rank++
		}
		ranks[rank].add(s)
	}
	// A suspect that claims the host goes after healthy default ones: another way there may exist.
	var out []*session
	for _, rank := range []int{0, 2, 1, 3} {
		group := &ranks[rank]
		for len(group.sources) > 0 && len(out) < maxAttempts {
			out = append(out, group.take(pick))
		}
	}
	return out
}

// bySource are sessions, grouped by where they come from, in the order in which they were added.
type bySource struct {
	sources  []netip.Addr
	sessions map[netip.Addr][]*session
}

func (b *bySource) add(s *session) {
	if b.sessions == nil {
		b.sessions = map[netip.Addr][]*session{}
	}
	if len(b.sessions[s.source]) == 0 {
		b.sources = append(b.sources, s.source)
	}
	b.sessions[s.source] = append(b.sessions[s.source], s)
}

// take removes one session of one source. The other sessions of that source go, too, while there are other sources: an agent that swallows what it is
// given should not be asked again under another number.
func (b *bySource) take(pick func(int) int) *session {
	i := pick(len(b.sources))
	source := b.sources[i]
	sessions := b.sessions[source]
	j := pick(len(sessions))
	chosen := sessions[j]
	if len(b.sources) > 1 || len(sessions) == 1 {
		b.sources = slices.Delete(b.sources, i, i+1)
	} else {
		b.sessions[source] = slices.Delete(sessions, j, j+1)
	}
	return chosen
}

// dial opens a tunnel through the first agent that is able to. When none is and one is likely to come, it waits for it: a webhook
// that is called while the control plane or an agent is being replaced is answered late, and not refused.
func (a *agents) dial(ctx context.Context, to target) (*tunnel, error) {
	deadline := a.now().Add(a.patience())
	for {
		joined := a.next()
		t, err := a.try(ctx, to)
		if err == nil || !agentsFailed(err) {
			return t, err
		}
		hope := a.hopeful()
		left := min(deadline.Sub(a.now()), hope.Sub(a.now()))
		if left <= 0 {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-joined:
		case <-time.After(min(left, agentRecheck)):
		}
	}
}

// agentsFailed tells failures that another agent could mend from those of the target.
func agentsFailed(err error) bool {
	var dial *dialError
	if errors.As(err, &dial) {
		return dial.agentFailed()
	}
	return errors.Is(err, errNoAgent) || errors.Is(err, errAgentFull)
}

// patience is how long a request waits for an agent.
func (a *agents) patience() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.wait
}

// next is closed when the next agent joins.
func (a *agents) next() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.joined
}

// hopeful says until when an agent is likely to join.
func (a *agents) hopeful() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.known {
		a.known, a.hope = true, a.now().Add(hopeAtStart)
	}
	return a.hope
}

// try asks each candidate once.
func (a *agents) try(ctx context.Context, to target) (*tunnel, error) {
	candidates := a.candidates(to.host, rand.IntN)
	if len(candidates) == 0 {
		return nil, errNoAgent
	}
	var last error = errAgentFull
	for _, s := range candidates {
		if !s.conn.CanTakeNewRequest() {
			continue
		}
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		t, err := s.open(attempt, to)
		cancel()
		if err == nil {
			s.suspect.Store(false)
			return t, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		last = err
		if !err.agentFailed() {
			return nil, err
		}
		if err.status == 0 {
			a.doubt(ctx, s)
		}
	}
	return nil, last
}

// doubt asks a session last until it has answered a ping, and ends it when it doesn't.
func (a *agents) doubt(ctx context.Context, s *session) {
	s.suspect.Store(true)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hope = a.now().Add(hopeAtLeave) // it may be about to be replaced
	if a.checking[s] {
		return
	}
	a.checking[s] = true
	go func() {
		s.check(context.WithoutCancel(ctx))
		a.mu.Lock()
		delete(a.checking, s)
		a.mu.Unlock()
	}()
}
