package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/console/access"
)

var eventObjects = access.Resource{Name: "events"}

const (
	// maxPending bounds what waits for the next message. A reader to whom more happens reads the list anew.
	maxPending = 500
	// watchTime is how long a watch lives, in seconds; it is then opened anew, so that a right that was taken away ends it.
	watchTime = 300
)

// eventPatch is what happened.
type eventPatch struct {
	Events []event `json:"events,omitempty"`
}

// eventFlow is a stream of events that is open.
type eventFlow struct {
	*Server
	*request
	w      http.ResponseWriter
	out    *http.ResponseController
	query  eventQuery
	pieces []*piece
}

// piece is one of the places that are watched, and how far.
type piece struct {
	eventPlace
	version string
	watch   watch.Interface
}

// eventStream sends events as they happen, to who has read the list (see events) and says with since how far. The watch is that of whoever looks, by their own
// rights, and ends with the page: nothing is kept here for events that nobody looks at.
func (s *Server) eventStream(w http.ResponseWriter, r *request) {
	query, err := parseEvents(r.URL.Query())
	since := strings.Split(r.URL.Query().Get("since"), ".")
	if err == nil && len(since) != len(query.places) {
		err = badRequest("since: must be that of the list of events")
	}
	f := &eventFlow{Server: s, request: r, w: w, query: query}
	defer f.stop()
	if err == nil {
		for i, p := range query.places {
			f.pieces = append(f.pieces, &piece{eventPlace: p, version: since[i]})
		}
		err = f.open(r.viewer)
	}
	if err != nil {
		code, text := explain(err)
		fail(w, code, text)
		return
	}
	closed, ok := s.limits.open(r.viewer.ID)
	if !ok {
		fail(w, http.StatusTooManyRequests, "too many streams are open: close a tab")
		return
	}
	defer closed()
	f.out = begin(w)
	if f.send("hello", eventPatch{}) == nil {
		f.follow()
	}
}

// open begins the watches that are not open.
func (f *eventFlow) open(viewer *access.Viewer) error {
	for _, p := range f.pieces {
		if p.watch != nil {
			continue
		}
		var err error
		p.watch, err = viewer.Client.Watch(f.Context(), &corev1.EventList{}, client.InNamespace(p.namespace), p.fields,
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: p.version, AllowWatchBookmarks: true, TimeoutSeconds: ptr.To(int64(watchTime))}})
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *eventFlow) stop() {
	for _, p := range f.pieces {
		if p.watch != nil {
			p.watch.Stop()
		}
	}
}

// what one of the watches said; ok false: it has ended.
type heard struct {
	of    *piece
	event watch.Event
	ok    bool
}

// follow sends what happens until the reader goes, or may not see it any more.
func (f *eventFlow) follow() {
	beat, tick := time.NewTicker(heartbeat), time.NewTicker(pace)
	defer beat.Stop()
	defer tick.Stop()
	said := make(chan heard)
	for _, p := range f.pieces {
		go listen(f.Context(), p, p.watch, said)
	}
	var pending []event
	for {
		select {
		case <-f.Context().Done():
			return
		case h := <-said:
			e, again := f.take(h)
			if again || len(pending) >= maxPending {
				_ = f.send("reset", eventPatch{}) // it ends in any case
				return
			}
			if e != nil && f.query.matches(*e) {
				pending = append(pending, *e)
			}
			if !h.ok {
				if !f.resume(h.of) {
					return
				}
				go listen(f.Context(), h.of, h.of.watch, said)
			}
		case <-tick.C:
			if len(pending) > 0 && f.send("patch", eventPatch{newest(pending)}) != nil {
				return
			}
			pending = nil
		case <-beat.C:
			if !f.still() || f.send("ping", eventPatch{}) != nil {
				return
			}
		}
	}
}

func listen(ctx context.Context, p *piece, from watch.Interface, to chan<- heard) {
	for {
		e, ok := <-from.ResultChan()
		select {
		case to <- heard{p, e, ok}:
		case <-ctx.Done():
			return
		}
		if !ok {
			return
		}
	}
}

// take notes how far a watch is. again: the reader has to read the list anew, because what came in between is not known any more.
func (f *eventFlow) take(h heard) (e *event, again bool) {
	if !h.ok {
		return nil, false
	}
	obj, isEvent := h.event.Object.(*corev1.Event)
	if h.event.Type == watch.Error || !isEvent {
		return nil, true
	}
	h.of.version = obj.ResourceVersion
	if h.event.Type != watch.Added && h.event.Type != watch.Modified {
		return nil, false // events that are forgotten stay on the page; bookmarks tell how far it is
	}
	return ptr.To(eventOf(obj)), false
}

// resume opens a watch anew that has ended, with the rights that the person has now.
func (f *eventFlow) resume(p *piece) bool {
	p.watch.Stop()
	p.watch = nil
	select { // one that ends at once must not be opened all the time
	case <-f.Context().Done():
		return false
	case <-time.After(summaryPace):
	}
	viewer, err := f.Gate.Viewer(f.Request)
	if err == nil {
		err = f.open(viewer)
	}
	if err != nil {
		kind := "reset" // such as a number that is too old
		if code, _ := explain(err); code == http.StatusForbidden || code == http.StatusUnauthorized {
			kind = "denied"
		}
		_ = f.send(kind, eventPatch{}) // it ends in any case
		return false
	}
	return true
}

// still tells whether the person may see what is sent.
func (f *eventFlow) still() bool {
	viewer, err := f.Gate.Viewer(f.Request)
	for _, p := range f.pieces {
		if err != nil {
			break
		}
		var ok bool
		if ok, err = viewer.May(f.Context(), "watch", eventObjects, p.namespace); err == nil && !ok {
			err = access.ErrRefused
		}
	}
	if err != nil {
		_ = f.send("denied", eventPatch{}) // it ends in any case
	}
	return err == nil
}

// newest are those of each object as they were last.
func newest(list []event) []event {
	seen, out := map[string]bool{}, []event{}
	for _, e := range slices.Backward(list) {
		id := ""
		for id = range e.Parts { // there is one
		}
		if !seen[id] {
			seen[id] = true
			out = append(out, e)
		}
	}
	slices.Reverse(out)
	return out
}

func (f *eventFlow) send(kind string, p eventPatch) error {
	var at []string
	for _, p := range f.pieces {
		at = append(at, p.version)
	}
	return message(f.w, f.out, kind, strings.Join(at, "."), p)
}
