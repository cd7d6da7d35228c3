package quiet

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// auditEvent is what is needed of a line of an audit log, audit.k8s.io/v1.
type auditEvent struct {
	AuditID    string
	Stage      string
	Verb       string
	RequestURI string
	UserAgent  string
	User       struct{ Username string }
	ObjectRef  *struct {
		Resource, Namespace, Name, APIGroup, Subresource string
	}
	ResponseStatus           *struct{ Code int }
	RequestReceivedTimestamp time.Time
}

// maxLine is how long a line of an audit log may be; at the level Metadata they have about 1 kB.
const maxLine = 1 << 20

// readAudit reads what was asked within [from, to) from an audit log. Each request counts once, though watches are logged at their begin and end.
// Lines that can't be read are left out: a log may begin and end within one.
func readAudit(log io.Reader, from, to time.Time) ([]auditEvent, error) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, maxLine)
	seen := map[string]bool{}
	var found []auditEvent
	for lines.Scan() {
		e := auditEvent{}
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.AuditID == "" || seen[e.AuditID] {
			continue
		}
		if e.RequestReceivedTimestamp.Before(from) || !e.RequestReceivedTimestamp.Before(to) || strings.Contains(e.UserAgent, userAgent) {
			continue
		}
		seen[e.AuditID] = true
		found = append(found, e)
	}
	return found, lines.Err()
}

// ReadRequests counts what was asked of server within [from, to) by its audit log, the busiest client first.
func ReadRequests(log io.Reader, server string, from, to time.Time) ([]Requests, error) {
	events, err := readAudit(log, from, to)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log of the API server %s: %w", server, err)
	}
	return byClient(server, events), nil
}

// Client is somebody who asks an API server.
type Client struct {
	Server string `json:"server"`
	User   string `json:"user"`
	// Agent is the start of its User-Agent, without versions.
	Agent string `json:"agent"`
}

func (c Client) String() string { return c.Server + " ← " + c.User + " (" + c.Agent + ")" }

// Requests are what a client asked for during an observation.
type Requests struct {
	Client
	Count int `json:"count"`
	// Leases of them read or renew leases.
	Leases int `json:"leases"`
	// Writes of them may have stored something, leases and events about them aside.
	Writes int `json:"writes"`
	// What says how often the client asked what, the most frequent first.
	What []string `json:"what"`
}

// PerMinute is the rate during an observation of that length.
func (r Requests) PerMinute(length time.Duration) float64 { return float64(r.Count) / length.Minutes() }

var writeVerbs = []string{"create", "update", "patch", "delete", "deletecollection"}

// write says that a request may store something. Reviews, tokens and dry runs are answered without.
func (e auditEvent) write() bool {
	if e.ObjectRef == nil || e.ResponseStatus != nil && e.ResponseStatus.Code >= 300 || strings.Contains(e.RequestURI, "dryRun=") {
		return false
	}
	switch r := e.ObjectRef; {
	case r.Resource == "leases", strings.HasSuffix(r.Resource, "reviews"), r.Subresource == "token", r.Resource == "events":
		// Events are judged by what is stored, where it can be seen what they are about.
		return false
	case r.Subresource == "exec", r.Subresource == "portforward", r.Subresource == "attach", r.Subresource == "proxy":
		return false
	}
	return slices.Contains(writeVerbs, e.Verb)
}

func (e auditEvent) what() string {
	if e.ObjectRef == nil {
		path, _, _ := strings.Cut(e.RequestURI, "?")
		return e.Verb + " " + path
	}
	r := e.ObjectRef
	what := e.Verb + " " + r.Resource
	if r.APIGroup != "" {
		what += "." + r.APIGroup
	}
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	if r.Name != "" {
		what += " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
	} else if r.Namespace != "" {
		what += " in " + r.Namespace
	}
	return what
}

// agent cuts a User-Agent down to the program and, in parentheses, nothing that changes with each build.
func agent(full string) string {
	first, rest, _ := strings.Cut(full, " ")
	name, _, _ := strings.Cut(first, "/")
	if _, task, ok := strings.Cut(rest, ") "); ok { // kube-controller-manager/v1.36.3 (linux/amd64) kubernetes/abc/leader-election
		if parts := strings.Split(task, "/"); len(parts) > 2 {
			name += "/" + strings.Join(parts[2:], "/")
		}
	}
	return cmp.Or(name, "unknown")
}

// byClient counts requests of one server, the busiest client first.
func byClient(server string, events []auditEvent) []Requests {
	clients := map[Client]*Requests{}
	kinds := map[Client]map[string]int{}
	for _, e := range events {
		c := Client{server, e.User.Username, agent(e.UserAgent)}
		if clients[c] == nil {
			clients[c], kinds[c] = &Requests{Client: c}, map[string]int{}
		}
		r := clients[c]
		r.Count++
		if e.ObjectRef != nil && e.ObjectRef.Resource == "leases" {
			r.Leases++
		}
		if e.write() {
			r.Writes++
		}
		kinds[c][e.what()]++
	}
	var out []Requests
	for c, r := range clients {
		for _, what := range slices.SortedFunc(maps.Keys(kinds[c]), func(a, b string) int {
			return cmp.Or(cmp.Compare(kinds[c][b], kinds[c][a]), cmp.Compare(a, b))
		}) {
			r.What = append(r.What, fmt.Sprintf("%d× %s", kinds[c][what], what))
		}
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b Requests) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.String(), b.String()))
	})
	return out
}
