package server

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/console/world"
	"hcp.internal/platform/internal/why"
)

const (
	// maxRead bounds what is read of events at a time, maxWarnings what a page about something else shows of them.
	maxRead     = 2000
	eventPage   = 500
	maxShown    = 500
	maxWarnings = 50
	// maxParts bounds the objects that a row remembers.
	maxParts = 50
)

// event is one for people. Repeats are one, with Count.
type event struct {
	At        time.Time `json:"at"` // the last time
	First     time.Time `json:"first"`
	Type      string    `json:"type"`
	Reason    string    `json:"reason"`
	Kind      string    `json:"kind"`
	Namespace string    `json:"ns"`
	Name      string    `json:"name"`
	Message   string    `json:"message"`
	Count     int32     `json:"count"`
	// Parts are the objects that were put together, with how often each of them happened: a change of one is added up anew.
	Parts map[string]int32 `json:"parts,omitempty"`
}

func eventOf(e *corev1.Event) event {
	out := event{Type: clip.Line(e.Type), Reason: clip.Line(e.Reason), Kind: clip.Line(e.InvolvedObject.Kind), Namespace: e.Namespace, Name: clip.Line(e.InvolvedObject.Name),
		Message: why.Clean(e.Message), Count: max(1, e.Count), At: e.LastTimestamp.Time, First: e.FirstTimestamp.Time}
	if e.Series != nil {
		out.At, out.Count = e.Series.LastObservedTime.Time, max(1, e.Series.Count)
	}
	if out.At.IsZero() {
		out.At = cmp.Or(e.EventTime.Time, e.CreationTimestamp.Time)
	}
	if out.First.IsZero() {
		out.First = cmp.Or(e.EventTime.Time, out.At)
	}
	out.At, out.First = out.At.UTC(), out.First.UTC()
	out.Parts = map[string]int32{string(e.UID): out.Count}
	return out
}

// grouped puts the newest first, and repeats of the same together.
func grouped(list []event) []event {
	type same struct{ kind, namespace, name, reason, message string }
	at, out := map[same]int{}, []event{}
	slices.SortStableFunc(list, func(a, b event) int { return b.At.Compare(a.At) })
	for _, e := range list {
		key := same{e.Kind, e.Namespace, e.Name, e.Reason, e.Message}
		if i, ok := at[key]; ok {
			out[i].Count += e.Count
			for id, n := range e.Parts {
				if len(out[i].Parts) < maxParts {
					out[i].Parts[id] = n
				}
			}
			if e.First.Before(out[i].First) {
				out[i].First = e.First
			}
			continue
		}
		at[key] = len(out)
		out = append(out, e)
	}
	return out
}

func warningsOf(snap *why.Snapshot) []event {
	out := []event{}
	for i := range snap.Warnings {
		out = append(out, eventOf(&snap.Warnings[i]))
	}
	out = grouped(out)
	return out[:min(len(out), maxWarnings)]
}

// eventQuery is which events somebody wants to see.
type eventQuery struct {
	kind   string   // Warning, Normal or empty
	words  []string // in the object, reason or message
	places []eventPlace
}

// eventPlace is a namespace, or all of them, and what is read of it.
type eventPlace struct {
	namespace string
	fields    client.MatchingFields
}

func parseEvents(v url.Values) (eventQuery, error) {
	q := eventQuery{kind: v.Get("type"), words: strings.Fields(strings.ToLower(v.Get("q")))}
	if q.kind != "" && q.kind != corev1.EventTypeWarning && q.kind != corev1.EventTypeNormal {
		return q, badRequest("type: must be Warning or Normal")
	}
	q.places = []eventPlace{{v.Get("ns"), client.MatchingFields{}}}
	if of := v.Get("hc"); of != "" {
		ns, name, ok := strings.Cut(of, "/")
		if !ok || ns == "" || name == "" {
			return q, badRequest("hc: write it as namespace/name")
		}
		q.places = []eventPlace{{ns, client.MatchingFields{"involvedObject.name": name}}, {world.Key{Namespace: ns, Name: name}.ControlPlane(), client.MatchingFields{}}}
	}
	if q.kind != "" {
		for _, p := range q.places {
			p.fields["type"] = q.kind
		}
	}
	return q, nil
}

func (q eventQuery) matches(e event) bool {
	text := strings.ToLower(e.Kind + " " + e.Namespace + "/" + e.Name + " " + e.Reason + " " + e.Message)
	return !slices.ContainsFunc(q.words, func(w string) bool { return !strings.Contains(text, w) })
}

// events are those of a namespace (ns), of a hosted cluster with its control plane (hc=NAMESPACE/NAME), or of all namespaces; type restricts them to
// Warning or Normal, and q to those that contain each word. They are read with the rights of whoever asks. The answer says with what to follow them.
func (s *Server) events(r *request) (any, error) {
	q, err := parseEvents(r.URL.Query())
	if err != nil {
		return nil, err
	}
	ctx, done, err := s.detail(r)
	if err != nil {
		return nil, err
	}
	defer done()
	all, more, since := []event{}, false, []string{}
	for _, p := range q.places {
		list, read := &corev1.EventList{}, 0
		for {
			if err := r.viewer.Client.List(ctx, list, client.InNamespace(p.namespace), p.fields, client.Limit(eventPage), client.Continue(list.Continue)); err != nil {
				return nil, err
			}
			for i := range list.Items {
				if e := eventOf(&list.Items[i]); q.matches(e) {
					all = append(all, e)
				}
			}
			if read += len(list.Items); list.Continue == "" || read >= maxRead {
				more = more || list.Continue != ""
				break
			}
		}
		since = append(since, list.ResourceVersion)
	}
	all = grouped(all)
	more = more || len(all) > maxShown
	return map[string]any{"rows": all[:min(len(all), maxShown)], "more": more, "since": strings.Join(since, ".")}, nil
}
