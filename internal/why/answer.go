package why

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxLinks is the longest chain of an Answer. Of a longer one the links in the middle are left out.
const MaxLinks = 5

// Object names what a link is about. Kind is as in manifests, such as HostedCluster.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is "Pod clusters-demo/etcd-1", and "Node worker-1" for what has no namespace.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// State says how it stands with an object.
type State string

// States, the worst last.
const (
	// Well: nothing is wrong, and nothing is waited for.
	Well State = "Well"
	// Waiting: it is under way, or heals by itself.
	Waiting State = "Waiting"
	// Held: nothing happens because somebody wants it so, or because of an order or a budget.
	Held State = "Held"
	// Broken: somebody has to do something.
	Broken State = "Broken"
)

func (s State) rank() int {
	switch s {
	case Broken:
		return 3
	case Held:
		return 2
	case Waiting:
		return 1
	}
	return 0
}

// Link is a piece of evidence.
type Link struct {
	Object Object `json:"object"`
	// Field is where it stands: a path such as status.conditions[Available], "event" or "log".
	Field string `json:"field"`
	// Text is what stands there, on one line.
	Text string `json:"text"`
	// Since is when it came to be so; nil: not known.
	Since *metav1.Time `json:"since,omitempty"`
}

// Answer is why an object is as it is.
type Answer struct {
	Object Object `json:"object"`
	State  State  `json:"state"`
	// Deleting: the object is being deleted, and the answer is about what still holds it.
	Deleting bool `json:"deleting,omitempty"`
	// Cause is the root cause in a sentence that names the object at fault; for State Well, that nothing is wrong.
	Cause string `json:"cause"`
	// Since is that of the cause, or where that is not known of the nearest symptom; nil: not known.
	Since *metav1.Time `json:"since,omitempty"`
	// Chain leads from the object to the cause, the cause last. At most MaxLinks; empty for State Well.
	Chain []Link `json:"chain,omitempty"`
	// Do is what to do about it; empty for State Well.
	Do string `json:"do,omitempty"`
	// Heals: it ends by itself.
	Heals bool `json:"heals"`
	// Rule is the rule that found it, a heading in docs/why.md; empty for State Well.
	Rule string `json:"rule,omitempty"`
	// Notes are what else one should know, such as that nothing is changed because of a pause, or what could not be read.
	Notes []string `json:"notes,omitempty"`
}

// Explain finds the root cause for an object of the snapshot. An object that is not in it gives a Broken answer that says so.
func Explain(s *Snapshot, of Object) Answer {
	scene := newScene(s)
	it := scene.find(of)
	if it == nil {
		return absent(s, of)
	}
	out := scene.answer(it, of)
	out.Notes = scene.notes(it)
	if out.State != Held && out.State != Well {
		out.Notes = append(out.Notes, scene.held(it)...)
	}
	return out
}

// answer is what the rules find, without notes.
func (s *scene) answer(it *item, of Object) Answer {
	out := Answer{Object: of, State: Well, Deleting: it.deleted != nil}
	chain := s.ask(it)
	if chain == nil {
		out.Cause, out.Heals = "nothing is wrong", true
		if out.Deleting {
			out.State, out.Cause, out.Do = Waiting, "it is being deleted, and nothing that was read holds it", "wait"
			out.Since = at(*it.deleted)
		}
		return out
	}
	root := chain[len(chain)-1]
	out.State, out.Rule, out.Do, out.Heals = root.state, root.rule, root.do, root.state == Waiting
	out.Cause = sentence(root, of)
	for _, s := range shorten(chain) {
		out.Chain = append(out.Chain, s.link)
	}
	for i := len(chain) - 1; i >= 0 && out.Since == nil; i-- {
		out.Since = chain[i].link.Since
	}
	return out
}

// absent is the answer for what was not found.
func absent(s *Snapshot, of Object) Answer {
	out := Answer{Object: of, State: Broken, Cause: "there is no " + of.String(), Rule: "not-found", Do: "check the name and the namespace; -n names the namespace"}
	if why, ok := s.Unread[of.Kind]; ok {
		out.Rule, out.Do = "unreadable", "see that this API server answers, and that you may read there"
		out.Cause = fmt.Sprintf("%s could not be read: %s", of, Clean(why))
	}
	return out
}

// sentence is the cause with the object at fault before it, unless the text names it or it is the one that was asked about.
func sentence(root step, asked Object) string {
	text := root.cause
	if text == "" {
		text = root.link.Text
	}
	if root.link.Object == asked || strings.Contains(text, root.link.Object.Name) {
		return text
	}
	return root.link.Object.String() + ": " + text
}

// shorten keeps the first links and the last ones.
func shorten(chain []step) []step {
	if len(chain) <= MaxLinks {
		return chain
	}
	const first = 2
	return append(append([]step{}, chain[:first]...), chain[len(chain)-(MaxLinks-first):]...)
}

func at(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}
